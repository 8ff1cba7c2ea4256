"""`iolab rm`: a run less."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from iolab.base.errors import InputError
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import Json
from iolab.presentation.cli.output import print_json, print_lines

NAMED_MAX = 10


def rm(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", autocompletion=complete.runs, help="Run directories.")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Remove runs, with all that is in their directories. Asks first.

    iolab refuses directories that are no runs, and runs that a process writes to. If it refuses one, it removes none.
    """
    from iolab.files.collection import removal

    for path in runs:
        removal.check(path)
    if not yes:
        _ask(runs)
    for path in runs:
        removal.remove(path)
    if json:
        print_json({"removed": [str(path) for path in runs]})
    else:
        print_lines(f"Removed: {path}" for path in runs)


def _ask(runs: list[Path]) -> None:
    if not sys.stdin.isatty():
        raise InputError("iolab cannot ask: standard input is no terminal", where="iolab rm", remedy="give --yes")
    print_lines(str(path) for path in runs[:NAMED_MAX])
    if len(runs) > NAMED_MAX:
        print(f"and {len(runs) - NAMED_MAX} more")
    if not typer.confirm(
        f"Remove {'this run' if len(runs) == 1 else f'these {len(runs)} runs'} for good?", default=False
    ):
        raise InputError("nothing was removed", where="iolab rm")
