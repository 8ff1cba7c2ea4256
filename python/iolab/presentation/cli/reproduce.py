"""`iolab reproduce`: published figures beside the simulated machine's."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.base.errors import EXIT_CONDITION, InputError, unknown
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import Json
from iolab.presentation.cli.output import print_json

if TYPE_CHECKING:
    from iolab.studies.reproduction import Publication, Reproduction

CONDITIONS = ("aim",)


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="The name of published figures that come with iolab, or a file FIGURES.toml.  [default: all that "
            "come with iolab]",
            autocompletion=complete.figures,
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Number of rounds, instead of the file's or the experiment's.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the runs, instead of the experiment's.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Keep the runs, each in a run directory DIR/NAME.  [default: they are not kept]"
        ),
    ] = None,
    from_: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="Run nothing; compare the runs that --out kept in DIR.")
    ] = None,
    fail_on: Annotated[
        list[str] | None, typer.Option(metavar="CONDITION", help="aim: exit with status 1 if an aim is missed.")
    ] = None,
    json: Json = False,
) -> None:
    """Print published figures beside the figures of a simulated machine, with the error of each cell.

    Each table marks the cells that a parameter was fitted to. All others are predictions, with a mean error of their
    own. Claims in words are judged as by `iolab compare`. Published means with deviations are judged without a run. A
    run on a simulated machine is a function of its files and its seed: it prints the same everywhere.
    """
    _check(fail_on or [])
    if from_ is not None:
        _refuse_without_run({"--rounds": rounds, "--seed": seed, "--out": out})
    from iolab.studies.reproduction import load, names, objects

    wanted = [load(one) for one in (names() if name is None else [name])]
    found = _compared(wanted, from_) if from_ else _run(wanted, out, rounds, seed, as_json=json)
    if json:
        print_json([each for one in found for each in objects(one)])
    else:
        from iolab.presentation.table.reproduction import reproductions
        from iolab.presentation.terminal import show

        show(reproductions(found))
    if fail_on:
        _exit_if_missed(found)


def _run(
    wanted: Sequence[Publication], out: Path | None, rounds: int | None, seed: int | None, *, as_json: bool
) -> list[Reproduction]:
    from iolab.presentation.progress import display
    from iolab.studies.reproduction import reproduce
    from iolab.studies.run.machine_executor import MachineExecutor

    with MachineExecutor() as executor, _directory(out) as directory:
        return [
            reproduce(
                published,
                directory / published.name,
                executor=executor,
                progress=display(as_json=as_json),
                rounds=rounds,
                seed=seed,
            )
            for published in wanted
        ]


def _compared(wanted: Sequence[Publication], kept: Path) -> list[Reproduction]:
    from iolab.studies.reproduction import compare_kept

    return [compare_kept(published, kept / published.name) for published in wanted]


@contextmanager
def _directory(out: Path | None) -> Iterator[Path]:
    from tempfile import TemporaryDirectory

    if out is not None:
        yield out
        return
    with TemporaryDirectory(prefix="iolab-reproduce-") as made:
        yield Path(made)


def _check(conditions: Sequence[str]) -> None:
    for word in conditions:
        if word not in CONDITIONS:
            raise InputError(f"{word}: {unknown('condition', word, CONDITIONS)}", where="--fail-on")


def _refuse_without_run(given: dict[str, object]) -> None:
    for option, value in given.items():
        if value is not None:
            raise InputError("with --from nothing is run", where=option, remedy="leave one of the two out")


def _exit_if_missed(found: Sequence[Reproduction]) -> None:
    missed = [f"{name}: {claim.text}" for one in found for name, claim in one.claims() if not claim.met]
    if missed:
        print(f"iolab: --fail-on holds: {'; '.join(missed)}", file=sys.stderr)
        raise typer.Exit(EXIT_CONDITION)
