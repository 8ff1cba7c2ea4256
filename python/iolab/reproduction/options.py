"""The words of a file of published figures."""

from __future__ import annotations

from typing import Any, Literal

from iolab.experiment.options import Share
from iolab.option import Options, option

SHARE = 'a share such as "8%" or 0.08'


class FileOptions(Options):
    title: str = option(..., "What was published.")
    seed: str = option(..., "The number of the investigation that it is part of.")
    source: str = option(..., "Who published it where and when.")
    experiment: str | None = option(
        None, "The experiment that asks again, relative to this file.", default_is="none; tables and statements need it"
    )
    rounds: int | None = option(None, "How many rounds of it.", default_is="the experiment's", ge=1)
    setup: dict[str, str] = option({}, "What is known of machine, kernel and load, [setup].", default_is="nothing")
    fitted: dict[str, Any] = option({}, "Parameters that were fitted to cells, [fitted.NAME].", default_is="none")
    cell: dict[str, Any] = option({}, "How a cell is found in the run, of every table.", default_is="each table says")
    tables: dict[str, Any] = option({}, "Published tables, [tables.NAME].", default_is="none")
    said: dict[str, Any] = option({}, "Statements without figures, [said.NAME].", default_is="none")
    distributions: dict[str, Any] = option({}, "Published distributions, [distributions.NAME].", default_is="none")


class FittedOptions(Options):
    """A physical parameter of the machine that was chosen so that some cells come out."""

    machine: str = option(..., "The machine's file, its device's, or from ../ on the experiment's.")
    parameter: str = option(..., "The dotted key.")
    value: float = option(..., "What was found.")
    to: str = option(..., "The table and the cells that it was fitted to.")
    why: str = option(..., "Why it could not be taken from a data sheet.")


class TableOptions(Options):
    title: str = option(..., "What the rows, the columns and the figures are.")
    unit: str = option(..., "The unit of the figures.")
    columns: list[str] = option(..., "The columns' names.", expected='a list such as ["test1", "total"]')
    rows: dict[str, list[float]] = option(
        ..., "By the row's name, a figure for each column.", expected="a table such as { 1 = [10.5, 20] }"
    )
    cell: dict[str, Any] = option({}, "How a cell is found in the run.", default_is="the file's")
    cells: dict[str, Any] = option({}, "By pattern, how these cells are found instead.", default_is="none")
    fit: list[str] = option(
        [],
        "Patterns of the cells that a parameter was fitted to; all others are predictions.",
        default_is="none",
        expected='a list of patterns such as ["1/total"]',
    )
    not_compared: dict[str, str] = option(
        {}, "By pattern, why these cells are no test of the model.", default_is="none"
    )
    notes: dict[str, str] = option({}, "By pattern, what is doubtful about these cells.", default_is="none")
    aim: dict[str, Any] = option({}, "By pattern, how good the predictions are to be.", default_is="no aim")


class CellOptions(Options):
    """Where a cell lies in a run; `{row}` and `{column}` stand for the names of its row and column."""

    workload: str | None = option(None, "The workload, as the experiment names it.")
    setting: str | None = option(None, "The setting.")
    metric: str | None = option(None, "The metric's key, [phase/][op.]metric.")
    per: str | None = option(None, "Another metric that it is divided by.")
    job: str | None = option(None, "The job or group that it is of.", default_is="all together")
    divide_by: float = option(1.0, "What turns the metric's unit into the table's.", gt=0)


class AimOptions(Options):
    """What the predictions among some cells are to reach; what is not given is not asked."""

    mean_error: Share | None = option(None, "Highest mean of the errors' sizes.", gt=0, lt=1, expected=SHARE)
    cell_error: Share | None = option(None, "Highest size of any cell's error.", gt=0, lt=1, expected=SHARE)
    factor: float | None = option(None, "Within this factor, up or down, is good.", gt=1)
    factor_share: Share = option(1.0, "How many of the cells are to be within the factor.", gt=0, le=1, expected=SHARE)
    order_beyond: float | None = option(
        None, "Of two cells of a row that differ by more than this factor, the same is to be larger.", ge=1
    )


class StatementOptions(Options):
    """What somebody said in words of two settings."""

    text: str = option(..., "What was said, in words of one's own.")
    who: str = option(..., "Who said it.")
    workload: str = option(..., "The workload, as the experiment names it.")
    metric: str = option(..., "The metric's key, [phase/][op.]metric, that it is about.")
    job: str | None = option(None, "The job or group that it is about.", default_is="all together")
    baseline: str = option(..., "The setting that is compared with.")
    setting: str = option(..., "The setting that is compared.")
    verdict: list[str] = option(
        ..., "The verdicts that it agrees with.", expected='a list such as ["slower"] or ["same", "undecided"]'
    )


class DistributionOptions(Options):
    """Published summaries of repeated measurements, judged by themselves."""

    title: str = option(..., "What was measured.")
    unit: str = option(..., "The unit of the figures.")
    better: Literal["higher", "lower"] = option("lower", "Which way is better.")
    rounds: int = option(..., "How often each row was measured.", ge=2)
    independent: dict[str, int] = option(
        ...,
        "Each reading of what was independent: how many such values a round has.",
        expected='a table such as { "each disk" = 12, "each round" = 1 }',
    )
    rows: dict[str, list[float]] = option(
        ...,
        "By the row's name: lowest, mean, highest, standard deviation.",
        expected="a table such as { q0 = [17.8, 30.3, 33.3, 4.6] }",
    )
    same_within: Share = option(0.02, "Margin of the verdict same.", gt=0, lt=1, expected=SHARE)
    compare: dict[str, Any] = option(..., "What is compared, [distributions.NAME.compare.QUESTION].")


class QuestionOptions(Options):
    """Rows of a distribution that are compared."""

    baseline: str = option(..., "The row, or a pattern of rows, that is compared with.")
    candidate: str = option(..., "A pattern of the rows that are compared.")
    pooled: bool = option(False, "Compare the mean of these rows with the mean of those, not each.")
    text: str | None = option(None, "What was said of it, in words of one's own.")
    who: str | None = option(None, "Who said it.", default_is="must be given with text")
    verdict: list[str] = option(
        [],
        "The verdicts that it agrees with.",
        default_is="must be given with text",
        expected='a list such as ["same", "undecided"]',
    )
