"""`iolab compare`: is the difference real?"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.base.errors import InputError
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import (
    ByJob,
    CsvColumns,
    FailOn,
    From,
    GroupBy,
    HigherIsBetter,
    Json,
    LowerIsBetter,
    Metrics,
    OneJob,
    RoundColumn,
    SettingColumn,
    WorkloadColumn,
    ways,
)
from iolab.presentation.cli.outcome import check_conditions, exit_if_met
from iolab.presentation.cli.output import print_json

if TYPE_CHECKING:
    from iolab.presentation.side_by_side import ComparisonResult


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN|FILE|DIR...",
            autocompletion=complete.runs_and_files,
            help="A run directory, a file of another tool, including any CSV, or a directory of these. The first of "
            "several is the baseline, or the one with old, before or base in its name. Names such as old-1, old-2, "
            "new-1, new-2 are rounds of the settings old and new.",
        ),
    ],
    group_by: GroupBy = None,
    setting_column: SettingColumn = None,
    round_column: RoundColumn = None,
    workload_column: WorkloadColumn = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The setting to compare the others with, or the run or file if there are several.  "
            "[default: the first; in a run, its experiment's]",
            autocompletion=complete.settings,
        ),
    ] = None,
    metric: Metrics = None,
    by_job: ByJob = False,
    job: OneJob = None,
    lower_is_better: LowerIsBetter = None,
    higher_is_better: HigherIsBetter = None,
    same_within: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE", help="Margin of the verdict `same`, such as 2%.  [default: the experiment's, else 2%]"
        ),
    ] = None,
    from_: From = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            help="Write the comparison as one HTML page too; replaced if it exists.",
        ),
    ] = None,
    fail_on: FailOn = None,
    json: Json = False,
) -> None:
    """Judge for each metric whether a setting is faster or slower, the same within a margin, or undecided.

    Within a run, settings are compared within rounds. Each comparison shows both typical values, the change with its 95
    % interval, p, q (p adjusted for the number of comparisons), the verdict, and how many more rounds would decide. If
    there are several runs or files, lines below the conclusion list what differs between them: machine, kernel,
    options. Their rounds are not interleaved, so they are not paired, and drift is in the difference. Rates and times
    are faster or slower, other metrics better or worse; those without a better direction are higher or lower.
    """
    conditions = check_conditions(fail_on)
    margin = _share(same_within)
    columns = CsvColumns(setting_column, round_column, workload_column, None, None)
    better = ways(lower_is_better, higher_is_better)
    if runs[0].is_file() and columns:
        columns = replace(columns, lower_is_better=lower_is_better, higher_is_better=higher_is_better)
        if len(runs) > 1:
            raise InputError(
                "columns can be named by hand for one CSV file, and there are more",
                where=str(runs[1]),
                remedy="call the columns setting, round and workload in the files, or put all rows into one",
            )
        _refuse_for_csv({"--group-by": group_by, "--job": job, "--by-job": by_job or None, "--output": output})
        from iolab.domain.comparison import compare_csv
        from iolab.presentation.side_by_side import ComparisonResult
        from iolab.presentation.table.words import undirected

        read = columns.read(runs[0], baseline, metric)
        found = compare_csv(
            runs[0],
            read.setting,
            read.round,
            read.baseline,
            read.metrics or None,
            same_within=0.02 if margin is None else margin,
            workload_column=read.workload,
            better=read.better,
            text=read.text,
        )
        doubts = [f"columns of text are left out: {', '.join(read.left_out)}"] if read.left_out else []
        doubts += undirected(found)
        _finish(ComparisonResult(found, doubts=doubts), conditions, None, json=json)
        return
    columns.refuse_for(runs[0])
    if len(runs) == 2 and _compare_histograms(runs, conditions, json=json):
        return
    if len(runs) == 2 and _are_traces(runs):
        given = {"--group-by": group_by, "--job": job, "--by-job": by_job or None, "--output": output}
        _refuse_for_traces(given | {"--metric": metric, "--baseline": baseline, "--fail-on": fail_on})
        _compare_traces(runs, 0.02 if margin is None else margin, json=json)
        return

    from iolab.presentation.side_by_side import ComparisonRequest, compare_paths

    wanted = ComparisonRequest(metric or (), baseline, margin, by_job, job, better)
    compared = compare_paths(runs, wanted, group_by=group_by, from_=from_)
    _finish(compared, conditions, output, runs, json=json)


def _are_traces(paths: list[Path]) -> bool:
    from iolab.studies.trace.stretches import is_trace

    return all(map(is_trace, paths))


def _refuse_for_traces(given: dict[str, object]) -> None:
    for option, value in given.items():
        if value is not None:
            raise InputError("is for runs and files of results, and these are traces", where=option)


def _compare_traces(paths: list[Path], same_within: float, *, json: bool) -> None:
    from iolab.studies.trace import trace_of
    from iolab.studies.trace.stretches import ONE_EACH, compare_traces

    found = compare_traces(trace_of(paths[:1]), trace_of(paths[1:]), same_within)
    if json:
        print_json({"comparisons": [asdict(one) for one in found], "problems": [ONE_EACH]})
        return
    from iolab.presentation.table.trace import compared
    from iolab.presentation.terminal import show

    show(*compared(found), f"! {ONE_EACH}")


def _compare_histograms(paths: list[Path], fail_on: list[str], *, json: bool) -> bool:
    """Whether both are histograms of latency as text, which have no rounds."""
    from iolab.studies.trace.histograms import compare_histograms, histograms_of

    both = [histograms_of([path]) for path in paths]
    if not all(both):
        return False
    if fail_on:
        raise InputError("a histogram has no rounds, so that no verdict can hold", where="--fail-on")
    found = compare_histograms(*both)
    if not found:
        names = [", ".join(sorted(one.name or "a histogram without a name" for one in of)) for of in both]
        raise InputError(
            f"nothing in common: {names[0]}; and {names[1]}",
            where=f"{paths[0]}, {paths[1]}",
            remedy="compare histograms of one name, of 20 I/Os or more; iolab trace FILE shows one",
        )
    from iolab.presentation.table.trace_histogram import NO_ROUNDS, compared

    if json:
        print_json({"percentiles": [one.as_dict() for one in found], "problems": [NO_ROUNDS]})
        return True
    from iolab.presentation.terminal import show

    show(*compared(found, paths[0].name, paths[1].name))
    return True


def _finish(
    compared: ComparisonResult, fail_on: list[str], output: Path | None, runs: list[Path] | None = None, *, json: bool
) -> None:
    from iolab.presentation.table.verdicts import condition_lines, verdicts

    lines = [compared.read_as] if compared.read_as else []
    lines += [] if compared.conditions is None else condition_lines(compared.conditions)
    if output is not None:
        from iolab.presentation.report import files_of
        from iolab.presentation.report.comparison import write

        inputs = [file for run in runs or () for file in files_of(run)]
        write(output, compared.title, lines, compared.comparisons, compared.remarks, inputs, swept=compared.swept)
    if json:
        conditions = None if compared.conditions is None else compared.conditions.as_dict()
        print_json(
            {
                **({} if conditions is None else conditions),
                **({"names": compared.read_as} if compared.read_as else {}),
                "sweeps": list(compared.sweeps),
                "comparisons": [comparison.as_dict() for comparison in compared.comparisons],
                "problems": list(compared.problems),
                "doubts": list(compared.doubts),
            }
        )
    else:
        from iolab.presentation.terminal import show

        show(verdicts(compared.comparisons, compared.remarks, compared.swept, lines, compared.left_out))
        _print_functions(runs or [])
        if compared.without_values:
            print(f"Measure longer, or name another metric: {compared.without_values}.")
        elif not compared.comparisons:
            print("A comparison takes two settings, or two runs; iolab show prints one alone.")
            if runs and runs[0].is_file():
                print("If a column of a CSV file holds the settings, name it: --setting-column NAME.")
        if output is not None:
            print(f"Report: {output}")
    exit_if_met(
        fail_on,
        compared.comparisons,
        trials_not_ok=compared.trials_not_ok,
        lacking=compared.lacking,
        without_values=compared.without_values,
    )


def _print_functions(paths: list[Path]) -> None:
    """Names the functions that take more or fewer instructions in the second of two runs of guest machines."""
    from iolab.files.store import read
    from iolab.presentation.table.symbols import across

    are_runs = len(paths) == 2 and all((path / "journal.jsonl").is_file() for path in paths)
    if are_runs and (functions := across(*map(read, paths))):
        print(f"\n{functions.rstrip()}")


def _refuse_for_csv(given: dict[str, object]) -> None:
    for option, value in given.items():
        if value is not None:
            raise InputError("does not go with columns named by hand", where=option, remedy="leave one of them out")


def _share(text: str | None) -> float | None:
    """`2%` or `0.02` -> 0.02."""
    if text is None:
        return None
    from pydantic import ValidationError

    from iolab.files.experiment.options import CompareOptions

    try:
        given = text if text.endswith("%") else float(text)
        return CompareOptions.model_validate({"same_within": given}).same_within
    except (ValidationError, ValueError):
        raise InputError(
            f"{text!r} given; expected a share such as 2% or 0.02, above 0 and below 1", where="--same-within"
        ) from None
