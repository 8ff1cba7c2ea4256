"""`iolab note`: a line to remember about a run."""

from __future__ import annotations

from typing import Annotated

import typer

from iolab.presentation.cli.options import Json, RunDirectory
from iolab.presentation.cli.output import print_json, print_lines


def note(
    run: RunDirectory,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help='One line; "" removes the note.  [default: print the run\'s]')
    ] = None,
    json: Json = False,
) -> None:
    """Give a run a note, which `iolab ls` and the pages show. It lies in the run's directory, in labels.json."""
    from iolab.files.collection import labels

    if text is None:
        from iolab.files.store import RunDirectory as Opened

        Opened.open(run)
        given = labels.read(run)
    else:
        given = labels.note(run, text)
    if json:
        print_json({"run": str(run), "tags": list(given.tags), "note": given.note})
    else:
        print_lines([given.note or "no note"])
