"""`iolab compare`: is the difference real?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.base.errors import InputError
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import (
    Baseline,
    CsvColumns,
    FailOn,
    From,
    HigherIsBetter,
    Json,
    LowerIsBetter,
    Metrics,
    RoundColumn,
    SettingColumn,
    WorkloadColumn,
)
from iolab.presentation.cli.outcome import check_conditions, exit_if_met
from iolab.presentation.cli.output import print_json

if TYPE_CHECKING:
    from iolab.domain.compare import Comparison


def compare(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|FILE",
            autocompletion=complete.runs_and_files,
            help="A run directory, or a file of another tool, including any CSV.",
            show_default=False,
        ),
    ],
    run2: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN2|FILE2]",
            autocompletion=complete.runs_and_files,
            help="A second run or file. Its settings are compared with the settings of the same name in the first.",
            show_default=False,
        ),
    ] = None,
    setting_column: SettingColumn = None,
    round_column: RoundColumn = None,
    workload_column: WorkloadColumn = None,
    baseline: Baseline = None,
    metric: Metrics = None,
    lower_is_better: LowerIsBetter = None,
    higher_is_better: HigherIsBetter = None,
    same_within: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Margin of the verdict `same`, such as 2%.  [default: the experiment's, else 2%]",
            show_default=False,
        ),
    ] = None,
    from_: From = None,
    fail_on: FailOn = None,
    json: Json = False,
) -> None:
    """Judge for each metric whether a setting is faster or slower, the same within a margin, or undecided.

    Settings are compared within rounds. Each comparison shows both typical values, the change with its 95 %
    interval, p, q (p adjusted for the number of comparisons), the verdict, and how many more rounds would decide.
    Rounds of two runs are paired by their number. Rates and times are faster or slower, other metrics better or worse;
    those of which neither way is better are higher or lower.
    """
    conditions = check_conditions(fail_on)
    margin = _share(same_within)
    columns = CsvColumns(setting_column, round_column, workload_column, lower_is_better, higher_is_better)
    if run.is_file() and columns:
        if run2 is not None:
            raise InputError("a second run goes with a run, not with a file", where=str(run2))
        from iolab.domain.compare import compare_csv

        found = compare_csv(
            run,
            *columns.required(run, baseline),
            metric,
            same_within=0.02 if margin is None else margin,
            workload_column=workload_column,
            better=columns.better,
        )
        _finish(found, conditions, json=json)
        return
    columns.refuse_for(run)

    from iolab.adapters.importer import open_run
    from iolab.domain.validity import lines

    data = open_run(run, from_ if run.is_file() else None)
    if run2 is None:
        from iolab.domain.summary import summarise

        summary = summarise(data, metrics=metric or (), baseline=baseline, same_within=margin)
        _finish(
            summary.comparisons,
            conditions,
            json=json,
            trials_not_ok=summary.trials_not_ok,
            problems=[*data.problems, *lines(data)],
        )
        return
    if baseline is not None:
        raise InputError("two runs are compared setting by setting", where="--baseline", remedy="leave it out")
    from iolab.domain.across import compare_runs

    other = open_run(run2, from_ if run2.is_file() else None)
    found = compare_runs(data, other, metrics=metric or (), same_within=margin)
    not_ok = sum(int((~one.trials["status"].is_in(["ok", "impossible"])).sum()) for one in (data, other))
    problems = [*data.problems, *other.problems, *lines(data), *lines(other)]
    _finish(found, conditions, json=json, trials_not_ok=not_ok, problems=problems)


def _finish(
    comparisons: Sequence[Comparison],
    conditions: list[str],
    *,
    json: bool,
    trials_not_ok: int = 0,
    problems: Sequence[str] = (),
) -> None:
    if json:
        print_json({"comparisons": [comparison.as_dict() for comparison in comparisons], "problems": list(problems)})
    else:
        from iolab.presentation.table.verdicts import verdicts
        from iolab.presentation.terminal import show

        show(verdicts(comparisons, problems))
    exit_if_met(conditions, comparisons, trials_not_ok=trials_not_ok)


def _share(text: str | None) -> float | None:
    """`2%` or `0.02` -> 0.02."""
    if text is None:
        return None
    from pydantic import ValidationError

    from iolab.adapters.experiment.options import CompareOptions

    try:
        given = text if text.endswith("%") else float(text)
        return CompareOptions.model_validate({"same_within": given}).same_within
    except (ValidationError, ValueError):
        raise InputError(
            f"{text!r} given; expected a share such as 2% or 0.02, above 0 and below 1", where="--same-within"
        ) from None
