"""`iolab show`: a run as a table."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from iolab.base.errors import InputError
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import Baseline, ByJob, From, Json, Metrics, OneJob, RunOrFile, jobs_of
from iolab.presentation.cli.output import print_lines
from iolab.presentation.table import FORMATS


def show(
    run: RunOrFile,
    as_: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORMAT",
            autocompletion=complete.tables,
            help="; ".join(f"{name}: {purpose}" for name, purpose in FORMATS.items()) + ".",
        ),
    ] = "plain",
    metric: Metrics = None,
    baseline: Baseline = None,
    by_job: ByJob = False,
    job: OneJob = None,
    from_: From = None,
    json: Json = False,
) -> None:
    """Print a run, or a file of another tool, as a table with verdicts.

    The table has a row per workload and metric, and a column per setting; jobs that run side by side, and reads and
    writes, have rows of their own before all together. What the workload waits for comes first.

    For a sweep, it prints a grid: a row per machine, a verdict in each cell; `--as csv` and `--as json` give the grid
    to programs. For a search (`iolab tune`, `iolab bisect`), it prints the answer.

    Values are typical ones over the rounds (Hodges-Lehmann); changes are against the baseline, with a 95 % interval.
    """
    from iolab.files.importer.run_import import open_run
    from iolab.files.store.sweep_directory import is_sweep
    from iolab.presentation.cli.directories import answer_lines, one_run
    from iolab.presentation.table import render, render_json, verdict_grid

    if baseline is not None and (as_ == "grid" or is_sweep(run)):
        raise InputError("a grid has the baselines of its experiments", where="--baseline", remedy="leave it out")
    if as_ == "grid" or is_sweep(run):
        sys.stdout.write(verdict_grid.rendered(run, "json" if json else as_, metric or ()))
        return
    if as_ == "plain" and not json and baseline is None and (answer := answer_lines(run)) is not None:
        print_lines(answer)
        return
    run = one_run(run)
    jobs = jobs_of(job, by_job=by_job)
    opened = open_run(run, from_)
    shown = opened if baseline is None else opened.against(baseline)
    sys.stdout.write((render_json if json else render)(shown, as_, metric or (), jobs))
