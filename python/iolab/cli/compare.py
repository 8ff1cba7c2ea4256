"""`iolab compare`: is the difference real?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.cli.fail_on import check_conditions, exit_if_met
from iolab.cli.options import FailOn, From, Json, Metrics
from iolab.cli.output import print_json
from iolab.errors import InputError

if TYPE_CHECKING:
    from iolab.compare import Better, Comparison


def compare(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|FILE", help="A run directory, or a file of another tool, any CSV too.", show_default=False
        ),
    ],
    run2: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN2|FILE2]",
            help="A second one: its settings as candidates against the settings of the same name in RUN.",
            show_default=False,
        ),
    ] = None,
    setting_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="CSV: the column that names the setting.", show_default=False)
    ] = None,
    round_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="CSV: the column that numbers the round.", show_default=False)
    ] = None,
    workload_column: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="CSV: the column that names the workload, if any.", show_default=False),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="SETTING",
            help="The setting that others are compared with.  [default of a run: its experiment's]",
            show_default=False,
        ),
    ] = None,
    metric: Metrics = None,
    lower_is_better: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="CSV: lower is faster in this column; else its name decides.", show_default=False
        ),
    ] = None,
    higher_is_better: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="CSV: higher is faster in this column.", show_default=False),
    ] = None,
    same_within: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Margin of the verdict same, such as 2%.  [default: the experiment's, else 2%]",
            show_default=False,
        ),
    ] = None,
    from_: From = None,
    fail_on: FailOn = None,
    json: Json = False,
) -> None:
    """Say of each metric whether a setting is faster, slower, the same within a margin, or undecided.

    Settings are compared within rounds. Each comparison shows both typical values, the change with its 95 %
    interval, p, q (p adjusted for the number of comparisons), the verdict, and how many more rounds would decide.
    The rounds of two runs are paired by their index.
    """
    conditions = check_conditions(fail_on)
    margin = _share(same_within)
    csv_options = {
        "--setting-column": setting_column,
        "--round-column": round_column,
        "--workload-column": workload_column,
        "--lower-is-better": lower_is_better,
        "--higher-is-better": higher_is_better,
    }
    if run.is_file() and any(csv_options.values()):
        if run2 is not None:
            raise InputError("a second run goes with a run, not with a file", where=str(run2))
        missing = [name for name, given in (*list(csv_options.items())[:2], ("--baseline", baseline)) if given is None]
        if missing:
            raise InputError(
                "a CSV file needs its columns named",
                where=str(run),
                remedy=f"give {', '.join(missing)}; see iolab compare --help",
            )
        assert setting_column and round_column and baseline is not None
        from iolab.compare import compare_csv

        better: dict[str, Better] = dict.fromkeys(lower_is_better or (), "lower")
        better |= dict.fromkeys(higher_is_better or (), "higher")
        found = compare_csv(
            run,
            setting_column,
            round_column,
            baseline,
            metric,
            same_within=0.02 if margin is None else margin,
            workload_column=workload_column,
            better=better,
        )
        _finish(found, conditions, json=json)
        return
    for name, given in csv_options.items():
        if given is not None:
            raise InputError("is for CSV files, and this is none", where=name, remedy=f"leave it out for {run}")

    from iolab.importer import open_run

    data = open_run(run, from_ if run.is_file() else None)
    if run2 is None:
        from iolab.table.summary import summarise

        summary = summarise(data, metrics=metric or (), baseline=baseline, same_within=margin)
        _finish(
            summary.comparisons,
            conditions,
            json=json,
            trials_not_ok=summary.trials_not_ok,
            problems=data.problems,
        )
        return
    if baseline is not None:
        raise InputError("two runs are compared setting by setting", where="--baseline", remedy="leave it out")
    from iolab.table.across import compare_runs

    other = open_run(run2, from_ if run2.is_file() else None)
    found = compare_runs(data, other, metrics=metric or (), same_within=margin)
    not_ok = sum(int((~one.trials["status"].is_in(["ok", "impossible"])).sum()) for one in (data, other))
    problems = [*data.problems, *other.problems]
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
        from iolab.table.verdicts import verdicts
        from iolab.terminal import show

        show(verdicts(comparisons))
        for problem in problems:
            print(f"! {problem}")
    exit_if_met(conditions, comparisons, trials_not_ok=trials_not_ok)


def _share(text: str | None) -> float | None:
    """`2%` or `0.02` -> 0.02."""
    if text is None:
        return None
    from pydantic import ValidationError

    from iolab.experiment.options import CompareOptions

    try:
        given = text if text.endswith("%") else float(text)
        return CompareOptions.model_validate({"same_within": given}).same_within
    except (ValidationError, ValueError):
        raise InputError(
            f"{text!r} given; expected a share such as 2% or 0.02, above 0 and below 1", where="--same-within"
        ) from None
