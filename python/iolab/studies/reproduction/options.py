"""The words of a file of published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

from iolab.base.errors import InputError, unknown
from iolab.base.option import Options, option, shown
from iolab.base.problem import Problems
from iolab.base.toml import TomlTable
from iolab.domain.definition import DIFFERENCES, NO_DIFFERENCE, Nature
from iolab.domain.metric import parse_key
from iolab.files.experiment.options import Share

KeyPath = tuple[str, ...]
OptionsT = TypeVar("OptionsT", bound=Options)


def by_name(
    model: type[OptionsT], tables: Mapping[str, Any], path: KeyPath, subject: str, problems: Problems
) -> dict[str, OptionsT]:
    """Each of `tables` that is right, as a `model`."""
    found: dict[str, OptionsT] = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            problems.add((*path, name), f"{shown(table)} given; expected a table")
        elif options := problems.validated(model, table, (*path, name), subject):
            found[name] = options
    return found


def check_metric(key: str, path: KeyPath, problems: Problems) -> None:
    """Notes a problem at `path` if there can be no metric of this key."""
    try:
        parse_key(key)
    except InputError as error:
        problems.add(path, str(error))


def check_verdicts(words: Sequence[str], nature: Nature, path: KeyPath, problems: Problems) -> None:
    """Notes a problem at `path` for each word that is no verdict on a metric of this nature, and if there is none."""
    possible = (*DIFFERENCES[nature], *sorted(NO_DIFFERENCE))
    for word in words:
        if word not in possible:
            problems.add(path, f"{word}: {unknown('verdict', word, possible)}")
    if not words:
        problems.add(path, "an empty list; expected at least one verdict")


SHARE = 'a share such as "8%" or 0.08'


class FileOptions(Options):
    """The top of a file of published figures."""

    title: str = option(..., "What was published.")
    case_study: str | None = option(
        None,
        "The number of the case study that it belongs to.",
        default_is="none; tables, claims and distributions need it",
    )
    source: str = option(..., "Who published it where and when.")
    experiment: str | None = option(
        None,
        "The experiment that reproduces it, relative to this file.",
        default_is="none; tables and statements need it",
    )
    rounds: int | None = option(None, "Number of rounds of the experiment.", default_is="the experiment's", ge=1)
    setup: dict[str, str] = option({}, "Facts about machine, kernel and load, [setup].", default_is="nothing")
    fitted: TomlTable = option({}, "Parameters that were fitted to cells, [fitted.NAME].", default_is="none")
    chosen: TomlTable = option(
        {}, "What else was chosen with published figures in sight, [chosen.NAME].", default_is="nothing"
    )
    cell: TomlTable = option({}, "How to find a cell in the run, for every table.", default_is="each table has its own")
    tables: TomlTable = option({}, "Published tables, [tables.NAME].", default_is="none")
    claims: TomlTable = option({}, "Claims without figures, [claims.NAME].", default_is="none")
    distributions: TomlTable = option({}, "Published distributions, [distributions.NAME].", default_is="none")
    date: str | None = option(
        None, "The day, month or year of the mail or commit.", default_is="none", expected='such as "2022-11-02"'
    )
    commit: str | None = option(
        None, "The commit that it is about, in hexadecimal.", default_is="none", expected='such as "39d42fa96ba1"'
    )
    effects: TomlTable = option({}, "What is claimed, [effects.NAME].", default_is="nothing beside tables and claims")
    asks: TomlTable = option({}, "Where an effect can be asked here, and how, [asks.NAME].", default_is="nowhere")
    not_asked: dict[str, str] = option(
        {},
        "By place (count, paced, model, host; others), why an effect is not asked there.",
        default_is="none; each place needs an ask or a reason",
    )


Direction = Literal["more", "less", "same"]


class EffectOptions(Options):
    """What a mail or a commit claims, [effects.NAME]."""

    text: str = option(..., "The claim, in your own words.")
    of: str = option(..., "The amount that changes.", expected='a text such as "IOPS of random reads"')
    direction: Direction = option(..., "How it changes.")
    size: float | None = option(None, "By how much, without a sign.", default_is="not claimed", ge=0)
    unit: str | None = option(
        None, 'The unit of size, before and after, such as "%".', default_is="must be given with them"
    )
    before: float | None = option(None, "The amount without the change.", default_is="not claimed")
    after: float | None = option(None, "The amount with it.", default_is="not claimed")


class AskOptions(Options):
    """An experiment that asks an effect here, [asks.NAME]."""

    effect: str = option("", "The effect that it asks.", default_is="the only one")
    by: Literal["count", "paced", "model", "host"] = option(
        ...,
        "count: counts of a guest machine; paced: a guest's drive of known latency; model: a simulated machine; host: "
        "this machine.",
    )
    why: str = option(..., "How the measure stands for the effect.")
    expect: Direction | None = option(None, "How the measure changes if the claim holds.", default_is="the effect's")
    confounded: str | None = option(None, "What else differs between the two sides.", default_is="nothing known")
    cause: str | None = option(
        None, "Why the answer disagrees, once it does; said nowhere else.", default_is="not known, or it agrees"
    )
    statement: str | None = option(None, "By the model: the claim of this file, [claims.NAME], that asks it.")
    path: str | None = option(None, "By count: the path of iolab cost (iolab list paths), under two kernels.")
    base: str | None = option(None, "With path: the kernel without the change.")
    tip: str | None = option(None, "With path: the kernel with it.")
    measure: str | None = option(None, "With path: an amount of iolab cost.", default_is="kernel with path")
    function: str | None = option(None, "With path: the kernel's function whose calls are counted, not a measure.")
    experiment: str | None = option(None, "Else: an experiment, relative to this file.")
    workload: str | None = option(None, "With experiment: the workload.", default_is="its first")
    metric: str | None = option(
        None,
        "With experiment: the metric's key, [phase/][op.]metric.",
        default_is="by count kernel_instructions_per_op, else it must be given",
    )
    baseline: str | None = option(None, "With experiment: the setting without the change.")
    setting: str | None = option(None, "With experiment: the setting with it.")


SERVES = 'a table such as { rate = ["1/*"], claims = ["alike"] }'


class FittedOptions(Options):
    """A physical parameter of the machine that was set so that some cells come out."""

    machine: str = option(..., "The machine's file, its device's file, or, from ../ on, the experiment's.")
    parameter: str = option(..., "The dotted key.")
    value: float = option(..., "The fitted value.")
    serves: dict[str, list[str]] = option(
        ...,
        "The cells that it was fitted to: by table, patterns of ROW/COLUMN; of claims their names.",
        expected=SERVES,
    )
    why: str = option(..., "Why it could not be taken from a data sheet.")


class ChosenOptions(Options):
    """A constant or a mechanism that was picked with published figures in sight, without a search for its value."""

    what: str = option(..., "What was chosen, and what it was chosen from.")
    machine: str | None = option(None, "As of a fitted parameter.", default_is="the mechanism has no key of a file")
    parameter: str | None = option(None, "The dotted key.", default_is="none; must be given with machine")
    value: float | bool | str | None = option(
        None,
        "The value of that key.",
        default_is="none; must be given with machine",
        expected="a number, a text, true or false",
    )
    serves: dict[str, list[str]] = option(
        ..., "The cells that the choice helps, whether or not it was made for them; as of a fit.", expected=SERVES
    )
    why: str = option(..., "How the published figures came into the choice.")


class FollowsOptions(Options):
    """Which cells follow from other cells."""

    source: list[str] = option(
        ...,
        "The cells that these follow from, ROW/COLUMN, of another table TABLE:ROW/COLUMN; {row} and {column} are the "
        "cell's own.",
        expected='a list such as ["{row}/rate"] or ["write_rate:{row}/{column}"]',
    )
    why: str = option(..., "How they follow: a quotient, a complement, a repeated control, a copy.")


class NullOptions(Options):
    """A prediction without a model. The best one that applies counts."""

    baseline_row: str | None = option(None, "Each cell is as published in this row.", default_is="no such predictor")
    baseline_column: str | None = option(
        None, "Each cell is as published in this column.", default_is="no such predictor"
    )
    value: float | None = option(None, "Each cell is this number.", default_is="no such predictor", gt=0)
    total: str | None = option(
        None, "The column that is divided by weight.", default_is="no such predictor; must be given with weights"
    )
    weights: dict[str, float] = option(
        {}, "By column, the weight.", default_is="none", expected="a table such as { test1 = 100, test2 = 200 }"
    )
    constant: Literal["table", "row", "column"] = option(
        "table", "One constant for the table, each row, or each column, the best in hindsight."
    )


class TableOptions(Options):
    """A published table, [tables.NAME]."""

    title: str = option(..., "What the rows, the columns and the figures are.")
    unit: str = option(..., "The unit of the figures.")
    columns: list[str] = option(..., "The columns' names.", expected='a list such as ["test1", "total"]')
    rows: dict[str, list[float]] = option(
        ..., "By row name, a figure for each column.", expected="a table such as { 1 = [10.5, 20] }"
    )
    cell: TomlTable = option({}, "How to find a cell in the run.", default_is="the file's")
    cells: TomlTable = option({}, "By pattern, how to find these cells instead.", default_is="none")
    follows: TomlTable = option({}, "By pattern, the cells that these follow from.", default_is="none")
    null: TomlTable = option({}, "The null predictors beside the model.", default_is="one constant")
    not_compared: dict[str, str] = option(
        {}, "By pattern, why these cells are no test of the model.", default_is="none"
    )
    notes: dict[str, str] = option({}, "By pattern, what is doubtful about these cells.", default_is="none")
    aim: TomlTable = option({}, "By pattern, the aim for the predictions.", default_is="no aim")


class CellOptions(Options):
    """Where a cell lies in a run; `{row}` and `{column}` stand for the names of its row and column."""

    workload: str | None = option(None, "The workload, as the experiment names it.")
    setting: str | None = option(None, "The setting.")
    metric: str | None = option(None, "The metric's key, [phase/][op.]metric.")
    per: str | None = option(None, "Another metric to divide it by.")
    against: str | None = option(None, "Another setting, whose value it is divided by.")
    job: str | None = option(None, "The job or group that it belongs to.", default_is="all together")
    divide_by: float = option(1.0, "Divisor that converts the metric's unit into the table's.", gt=0)
    runs: int = option(1, "Runs that the published figure is the sum of; the simulated one is of as many.", ge=1)


class AimOptions(Options):
    """What the predictions among some cells are to reach; what is not given is not asked."""

    date: str = option(..., "The day on which the aim was set.", expected='a day such as "2026-11-22"')
    mean_error: Share | None = option(None, "Highest mean of the absolute errors.", gt=0, lt=1, expected=SHARE)
    cell_error: Share | None = option(None, "Highest absolute error of any cell.", gt=0, lt=1, expected=SHARE)
    factor: float | None = option(None, "A cell within this factor, up or down, is good.", gt=1)
    factor_share: Share = option(1.0, "Share of the cells that must be within the factor.", gt=0, le=1, expected=SHARE)
    order_beyond: float | None = option(
        None, "If two published cells of a row differ by more than this factor, the same one must be larger.", ge=1
    )


class StatementOptions(Options):
    """A claim in words about two settings."""

    text: str = option(..., "The claim, in your own words.")
    who: str = option(..., "Who made the claim.")
    workload: str = option(..., "The workload, as the experiment names it.")
    metric: str = option(..., "The metric's key, [phase/][op.]metric, that it is about.")
    per: str | None = option(
        None, "For a limit: another metric of the setting to divide it by.", default_is="the metric alone"
    )
    job: str | None = option(None, "The job or group that it is about.", default_is="all together")
    baseline: str | None = option(None, "The setting to compare with.", default_is="must be given, or above or below")
    setting: str = option(..., "The setting to compare.")
    verdict: list[str] = option(
        [],
        "The verdicts that confirm it.",
        default_is="must be given with baseline",
        expected='a list such as ["slower"] or ["same", "undecided"]',
    )
    above: float | None = option(None, "The setting's value is above this in each round.", default_is="no limit")
    below: float | None = option(None, "The setting's value is below this in each round.", default_is="no limit")


class DistributionOptions(Options):
    """Published summaries of repeated measurements, judged by themselves."""

    title: str = option(..., "What was measured.")
    unit: str = option(..., "The unit of the figures.")
    better: Literal["higher", "lower"] = option("lower", "Which direction is better.")
    rounds: int = option(..., "How often each row was measured.", ge=2)
    independent: dict[str, int] = option(
        ...,
        "Each reading of what was independent, with the number of such values in a round.",
        expected='a table such as { "each disk" = 12, "each round" = 1 }',
    )
    rows: dict[str, list[float]] = option(
        ...,
        "By row name: lowest, mean, highest, standard deviation.",
        expected="a table such as { q0 = [17.8, 30.3, 33.3, 4.6] }",
    )
    same_within: Share = option(0.02, "Margin of the verdict same.", gt=0, lt=1, expected=SHARE)
    compare: TomlTable = option(..., "The comparisons, [distributions.NAME.compare.QUESTION].")


class QuestionOptions(Options):
    """Rows of a distribution that are compared."""

    baseline: str = option(..., "The row, or a pattern of rows, to compare with.")
    candidate: str = option(..., "A pattern of the rows to compare.")
    pooled: bool = option(False, "Compare the mean of the candidates with the mean of the baselines, not each row.")
    text: str | None = option(None, "The claim about it, in your own words.")
    who: str | None = option(None, "Who made the claim.", default_is="must be given with text")
    verdict: list[str] = option(
        [],
        "The verdicts that confirm it.",
        default_is="must be given with text",
        expected='a list such as ["same", "undecided"]',
    )
