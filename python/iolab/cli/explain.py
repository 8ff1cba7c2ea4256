"""`iolab explain`: why? What moved together with the result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.cli.options import (
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
from iolab.cli.output import print_json
from iolab.errors import InputError

if TYPE_CHECKING:
    from iolab.explain.inputs import Inputs


def explain(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN|FILE...",
            help="A run directory, or a file of another tool, any CSV too; a second one: its settings as candidates "
            "against those of the same name in the first; several files: as `iolab import` takes them together.",
            show_default=False,
        ),
    ],
    metric: Metrics = None,
    workload: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of this workload only.", show_default=False)
    ] = None,
    setting_column: SettingColumn = None,
    round_column: RoundColumn = None,
    workload_column: WorkloadColumn = None,
    baseline: Baseline = None,
    lower_is_better: LowerIsBetter = None,
    higher_is_better: HigherIsBetter = None,
    from_: From = None,
    json: Json = False,
) -> None:
    """Say what moved together with each metric that is faster or slower, and what did not.

    Two kinds of evidence are told apart: what moved with the setting, by its own verdict, and what moves with the
    result within settings, from round to round. Neither shows a cause; what did not move is no explanation.
    Explained is what the experiment compares, of other tools' numbers the first metric; --metric chooses another.
    """
    columns = CsvColumns(setting_column, round_column, workload_column, lower_is_better, higher_is_better)
    if columns and runs[0].is_file():
        if len(runs) > 1:
            raise InputError("another file goes without columns named by hand", where=str(runs[1]))
        from iolab.explain.inputs import of_csv

        needed = columns.required(runs[0], baseline)
        inputs = of_csv(runs[0], *needed, metric or (), workload_column=workload_column, better=columns.better)
    else:
        columns.refuse_for(runs[0])
        inputs = _inputs(runs, metric or [], baseline, from_)
    _tell(inputs.of_workload(workload), json=json)


def _inputs(paths: list[Path], metrics: list[str], baseline: str | None, from_: str | None) -> Inputs:
    from iolab.explain.inputs import of_run, of_two_runs
    from iolab.importer import open_files, open_run

    if len(paths) == 2:
        if baseline is not None:
            raise InputError("two runs are compared setting by setting", where="--baseline", remedy="leave it out")
        first, second = (open_run(path, from_ if path.is_file() else None) for path in paths)
        return of_two_runs(first, second, metrics)
    run = open_run(paths[0], from_) if len(paths) == 1 else open_files(paths, from_)
    return of_run(run, metrics, baseline)


def _tell(inputs: Inputs, *, json: bool) -> None:
    from iolab.explain import explain

    explained = explain(inputs.frame, inputs.results)
    if json:
        print_json(
            {
                "explanations": [one.as_dict() for one in explained],
                "probes_off": inputs.probes_off,
                "problems": inputs.problems,
            }
        )
        return
    from iolab.table.explanation import explanations, more_to_see
    from iolab.terminal import show

    show(explanations(explained))
    for line in more_to_see(explained, inputs.probes_off, inputs.first_only):
        print(line)
    for problem in inputs.problems:
        print(f"! {problem}")
