"""`iolab sweep`: experiments on many machines, as one matrix."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.base.errors import EXIT_CONDITION, InputError
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import Json, Metrics, On, Patience, seconds
from iolab.presentation.cli.output import print_json
from iolab.presentation.cli.placement import executor_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolab.studies.run.cells import CellRequest


def sweep(
    experiments: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[EXPERIMENT...]",
            help="Experiments, fio job files, or names of experiments that come with iolab; or a sweep's file, which "
            "names experiments and machines.",
            autocompletion=complete.experiments,
        ),
    ] = None,
    machine: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MACHINE",
            help="A machine of the matrix: host, model:NAME, a machine's file FILE.toml, or guest:KERNEL. May be "
            "given several times.  [default: each experiment's own]",
            autocompletion=complete.machines,
        ),
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds, instead of the experiments'.")] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of every run, so that all machines see the same offsets.  [default: drawn and recorded]"
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The sweep's directory.  [default: a new one in iolab-runs]")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Continue the sweep in DIR. Finished trials are kept.")
    ] = None,
    on: On = None,
    patience: Patience = None,
    metric: Metrics = None,
    json: Json = False,
) -> None:
    """Run experiments on many machines: every experiment on every machine, a run for each.

    Trials of this machine itself come first, one at a time. Those of simulated machines and guests follow, side by
    side, on all cores. Each is on disk as soon as it ends, so a sweep that was killed continues with --resume and
    repeats nothing. The grid of verdicts at the end is that of `iolab show DIR`.
    """
    given = {"EXPERIMENT": experiments, "--machine": machine, "--rounds": rounds, "--seed": seed, "--out": out}
    if resume is not None:
        for option, value in given.items():
            if value:
                raise InputError("a resumed sweep keeps its own", where=option, remedy="leave it out")
    elif not experiments:
        raise InputError("name experiments, or a sweep to continue (--resume DIR)", where="iolab sweep")

    from iolab.files.store.sweep_directory import SweepDirectory
    from iolab.presentation.progress import display
    from iolab.studies.run import cells as runner

    asked, own_seed = ([], None) if resume else _requests(experiments or (), machine or (), rounds)
    with executor_on(on, seconds(patience)) as executor:
        if resume is not None:
            directory = SweepDirectory.open(resume)
        else:
            directory = runner.create(asked, out, seed=own_seed if seed is None else seed)
        swept = runner.complete(directory, executor=executor, progress=display(as_json=json))
    _show(swept.path, metric or (), as_json=json)
    if set(swept.trials_by_status) <= {"failed", "impossible"}:
        print(f"iolab: no trial was measured to its end; why: iolab show {swept.path}/RUN", file=sys.stderr)
        raise typer.Exit(EXIT_CONDITION)


def _requests(
    experiments: Sequence[Path], machines: Sequence[str], rounds: int | None
) -> tuple[list[CellRequest], int | None]:
    """The cells of the sweep, and the seed that a sweep's file names."""
    from iolab.studies.run import sweep_file
    from iolab.studies.run.cells import CellRequest

    sources = [sweep_file.source_of(path) for path in experiments]
    if not any(map(sweep_file.is_sweep_file, sources)):
        on: list[str | None] = [sweep_file.machine_named(name) for name in machines]
        return [CellRequest(source, machine, rounds) for source in sources for machine in on or [None]], None
    if len(sources) > 1:
        raise InputError(
            "is a sweep's file, which names all experiments", where=str(experiments[0]), remedy="give it alone"
        )
    if machines:
        raise InputError("the sweep's file names the machines", where="--machine", remedy="leave it out")
    cells, seed = sweep_file.cells_of(sources[0])
    return [cell if rounds is None else replace(cell, rounds=rounds) for cell in cells], seed


def _show(path: Path, metrics: Sequence[str], *, as_json: bool) -> None:
    from iolab.presentation.table import verdict_grid

    if as_json:
        print_json({"sweep": str(path), "cells": [asdict(cell) for cell in verdict_grid.cells_of(path, metrics)]})
        return
    sys.stdout.write(verdict_grid.render(path, metrics))
    print(f"\nSweep:  {path}")
    print(f"Next:   iolab show {path} --as csv")
