"""`iolab tag`: words to find a run by."""

from __future__ import annotations

from typing import Annotated

import typer

from iolab.base.errors import InputError
from iolab.presentation.cli.options import Json, RunDirectory
from iolab.presentation.cli.output import print_json


def tag(
    run: RunDirectory,
    tags: Annotated[
        list[str] | None,
        typer.Argument(metavar="TAG...", help="Words such as nightly or accepted.  [default: print the run's]"),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take these tags away instead.")] = False,
    json: Json = False,
) -> None:
    """Give a run tags, by which `iolab ls` and the pages find it. They lie in the run's directory, in labels.json."""
    from iolab.files.collection import labels

    if remove and not tags:
        raise InputError("which tags?", where="--remove", remedy="name them behind the run")
    if not tags:
        from iolab.files.store import RunDirectory as Opened

        Opened.open(run)
        given = labels.read(run)
    else:
        given = labels.tag(run, tuple(tags), remove=remove)
    if json:
        print_json({"run": str(run), "tags": list(given.tags), "note": given.note})
    else:
        print(*(given.tags or ["no tags"]))
