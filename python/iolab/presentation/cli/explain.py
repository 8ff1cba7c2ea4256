"""`iolab explain`: why? What moved together with the result."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.base.errors import InputError
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import (
    Baseline,
    CsvColumns,
    From,
    HigherIsBetter,
    Json,
    LowerIsBetter,
    Metrics,
    RoundColumn,
    SettingColumn,
    WorkloadColumn,
)
from iolab.presentation.cli.output import print_json, print_lines

if TYPE_CHECKING:
    from iolab.domain.explain.inputs import Inputs
    from iolab.files.store import RunData


def explain(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN|FILE...",
            autocompletion=complete.runs_and_files,
            help="A run directory, or a file of another tool, including any CSV. A second one: its settings are "
            "compared with those of the same name in the first. Several files are read together, as by `iolab import`. "
            "Or one or two traces of block I/O.",
        ),
    ],
    metric: Metrics = None,
    workload: Annotated[str | None, typer.Option(metavar="NAME", help="Explain only this workload.")] = None,
    setting_column: SettingColumn = None,
    round_column: RoundColumn = None,
    workload_column: WorkloadColumn = None,
    baseline: Baseline = None,
    lower_is_better: LowerIsBetter = None,
    higher_is_better: HigherIsBetter = None,
    from_: From = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Show every metric that moved, with its evidence, below the conclusion.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what changed first between two settings, where the time of an I/O goes under each, and what followed.

    The first change follows from what the settings changed and from the numbers, causes before effects. --all adds what
    moved together with each metric that differs, by two kinds of evidence: with the setting, by its own verdict; or
    with the result within settings, from round to round. Neither shows a cause. It explains the metrics that the
    experiment compares, or the first metric of other tools' numbers; --metric chooses another. For a trace, it shows
    what the slowest requests have in common, and in which stage they wait; for two traces, which stage and which
    requests make the difference.
    """
    if _are_traces(runs):
        _explain_traces(runs, json=json)
        return
    columns = CsvColumns(setting_column, round_column, workload_column, lower_is_better, higher_is_better)
    if columns and runs[0].is_file():
        if len(runs) > 1:
            raise InputError("another file goes without columns named by hand", where=str(runs[1]))
        from iolab.domain.explain.inputs import of_csv

        read = columns.read(runs[0], baseline, metric)
        inputs = of_csv(
            runs[0],
            read.setting,
            read.round,
            read.baseline,
            read.metrics,
            workload_column=read.workload,
            better=read.better,
            text=read.text,
        )
        run = None
    else:
        columns.refuse_for(runs[0])
        inputs, run = _inputs(runs, metric or [], baseline, from_)
    _print_explanation(inputs.of_workload(workload), run, everything=all_, json=json)


def _are_traces(paths: list[Path]) -> bool:
    """Whether they are traces beyond doubt, which are looked at by request."""
    from iolab.studies.trace.stretches import is_trace

    return not any(path.is_dir() for path in paths) and all(is_trace(path) for path in paths)


def _explain_traces(paths: list[Path], *, json: bool) -> None:
    from iolab.presentation.table import trace_explanation
    from iolab.presentation.terminal import show
    from iolab.studies.trace import trace_of
    from iolab.studies.trace.explain import explain_change, explain_slow

    if len(paths) > 2:
        raise InputError("one trace is explained, or the change from one to another", where="iolab explain")
    traces = [trace_of([path]) for path in paths]
    if len(traces) == 1:
        slow = explain_slow(traces[0])
        print_json(asdict(slow)) if json else show(*trace_explanation.slow(slow))
        return
    change = explain_change(*traces)
    print_json(asdict(change)) if json else show(*trace_explanation.change(change))


def _inputs(
    paths: list[Path], metrics: list[str], baseline: str | None, from_: str | None
) -> tuple[Inputs, RunData | None]:
    """And the run, if it is one."""
    from iolab.domain.explain.inputs import of_run, of_two_runs
    from iolab.files.importer.run_import import open_files, open_run
    from iolab.presentation.cli.directories import one_run

    if len(paths) == 2:
        if baseline is not None:
            raise InputError("two runs are compared setting by setting", where="--baseline", remedy="leave it out")
        first, second = (open_run(path, from_ if path.is_file() else None) for path in paths)
        return of_two_runs(first, second, metrics), None
    run = open_run(one_run(paths[0]), from_) if len(paths) == 1 else open_files(paths, from_)
    return of_run(run, metrics, baseline), run


def _print_explanation(inputs: Inputs, run: RunData | None, *, everything: bool, json: bool) -> None:
    from iolab.domain.explain import causes, explain
    from iolab.domain.explain.alone import stage_times
    from iolab.domain.explain.mechanism import INSTRUCTIONS

    found = causes(inputs.frame, inputs.results, inputs.changes)
    explained = explain(inputs.frame, inputs.results)
    if json:
        print_json(
            {
                "causes": [one.as_dict() for one in found],
                "explanations": [one.as_dict() for one in explained],
                "stage_times": [asdict(one) for one in stage_times(inputs.frame)] if inputs.is_one_setting else [],
                "probes_off": inputs.probes_off,
                "problems": inputs.problems,
            }
        )
        return
    from iolab.presentation.table import cause
    from iolab.presentation.table.explanation import explanations, folded, more_to_see
    from iolab.presentation.table.stage_times import lines
    from iolab.presentation.terminal import show

    if inputs.is_one_setting:
        print_lines(lines(inputs))
        print_lines(inputs.problems, "! ")
        return
    show(cause.causes(found))
    if run is not None:
        from iolab.presentation.table.symbols import dearest_changes

        for one in found:
            if any(moved.mechanism.name == INSTRUCTIONS for moved in one.moved):
                print_lines(dearest_changes(run, one.workload or "", one.against, one.setting))
    named = {(one.workload, one.against, one.setting) for one in found if one.first}
    is_folded = [
        not everything and (one.result.workload, one.result.against, one.result.setting) in named for one in explained
    ]
    shown = [one for one, fold in zip(explained, is_folded, strict=True) if not fold]
    if shown or not named:
        show(explanations(shown))
    print_lines(folded([one for one, fold in zip(explained, is_folded, strict=True) if fold]))
    print_lines(more_to_see(shown, inputs.probes_off, inputs.first_only))
    print_lines(inputs.problems, "! ")
