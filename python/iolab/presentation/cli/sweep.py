"""`iolab sweep`: experiments on many machines, as one matrix."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.base.errors import EXIT_CONDITION, InputError
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import Json, Metrics, On, Patience, seconds
from iolab.presentation.cli.output import print_json
from iolab.presentation.cli.where import executor_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolab.adapters.run.sweep import Source


def sweep(
    experiments: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[EXPERIMENT...]",
            help="Experiments, fio job files, or names of experiments that come with iolab.",
            show_default=False,
            autocompletion=complete.experiments,
        ),
    ] = None,
    machine: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MACHINE",
            help="A machine of the matrix: model:NAME, a machine's file FILE.toml, or guest:KERNEL. May be given "
            "several times.  [default: each experiment's own]",
            show_default=False,
            autocompletion=complete.machines,
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Number of rounds, instead of the experiments'.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of every run, so that all machines see the same offsets.  [default: drawn and recorded]",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The sweep's directory.  [default: a new one in iolab-runs]", show_default=False
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Continue the sweep in DIR. Finished trials are kept.", show_default=False),
    ] = None,
    on: On = None,
    patience: Patience = None,
    metric: Metrics = None,
    json: Json = False,
) -> None:
    """Run experiments on many simulated machines and guests: every experiment on every machine, a run for each.

    Trials of all runs go side by side, on all cores. Each is on disk as soon as it ends, so a sweep that was killed
    goes on with --resume and repeats nothing. The grid of verdicts at the end is that of `iolab show DIR`.
    """
    given = {"EXPERIMENT": experiments, "--machine": machine, "--rounds": rounds, "--seed": seed, "--out": out}
    if resume is not None:
        for option, value in given.items():
            if value:
                raise InputError("a sweep that goes on keeps its own", where=option, remedy="leave it out")
    elif not experiments:
        raise InputError("name experiments, or a sweep to go on with (--resume DIR)", where="iolab sweep")

    from iolab.adapters.run import sweep as runner
    from iolab.adapters.store.sweep import SweepDirectory
    from iolab.presentation.progress import display

    sources = [_source(path) for path in experiments or ()]
    machines = [_machine(name) for name in machine or ()]
    with executor_on(on, seconds(patience)) as executor:
        if resume is not None:
            directory = SweepDirectory.open(resume)
        else:
            directory = runner.create(sources, machines, out, rounds=rounds, seed=seed)
        swept = runner.complete(directory, executor=executor, progress=display(as_json=json))
    _show(swept.path, metric or (), as_json=json)
    if set(swept.trials_by_status) <= {"failed", "impossible"}:
        print(f"iolab: no trial was measured to its end; why: iolab show {swept.path}/RUN", file=sys.stderr)
        raise typer.Exit(EXIT_CONDITION)


def _source(path: Path) -> Source:
    """What the file, or the experiment of that name, says. InputError if there is none."""
    from iolab.adapters.experiment.from_fio import is_job_file, text_of
    from iolab.adapters.experiment.parse import find, read_text
    from iolab.adapters.run.sweep import Source

    found = find(path)
    text = read_text(found)
    return Source(found, text_of(found, text)[0] if is_job_file(found, text) else text)


def _machine(name: str) -> str:
    """As an experiment names it. A file's path counts from the current directory here."""
    from iolab.adapters.machine_file import PREFIX, is_model
    from iolab.domain.trial.guest import is_guest

    if is_guest(name) or (is_model(name) and not name.endswith(".toml")):
        return name
    if name.endswith(".toml"):
        return f"{PREFIX}{Path(name.removeprefix(PREFIX)).absolute()}"
    raise InputError(
        f"{name}: a sweep is of simulated machines and guests",
        where="--machine",
        remedy="expected model:NAME, FILE.toml or guest:KERNEL; see: iolab list machines",
    )


def _show(path: Path, metrics: Sequence[str], *, as_json: bool) -> None:
    from dataclasses import asdict

    from iolab.presentation.table import verdict_grid

    if as_json:
        print_json({"sweep": str(path), "cells": [asdict(cell) for cell in verdict_grid.cells_of(path, metrics)]})
        return
    sys.stdout.write(verdict_grid.render(path, metrics))
    print(f"\nSweep:  {path}")
    print(f"Next:   iolab show {path} --as csv")
