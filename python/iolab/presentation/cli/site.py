"""`iolab site`: many runs as pages, written as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.presentation.cli.ls import print_line, refresh
from iolab.presentation.cli.options import Collection as Directory
from iolab.presentation.cli.options import Json
from iolab.presentation.cli.output import print_json


def site(
    directory: Directory = Path("iolab-runs"),
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="PLACE",
            help="The directory to write: new, empty, or a site that iolab wrote, which is replaced.",
        ),
    ] = Path("iolab-site"),
    json: Json = False,
) -> None:
    """Write the pages of `iolab serve` as files for any web server: the same, except for what is computed on demand.

    Comparisons of any two runs, and runs in progress, need `iolab serve`.
    """
    from iolab.files.collection.collection import Collection
    from iolab.presentation.site.files import write

    here = Path.cwd()
    if out.resolve() in (here, *here.parents):
        what = "is the current directory, or holds it, and a site replaces its directory as a whole"
        raise InputError(what, where=str(out), remedy="name another, such as --out iolab-site")
    runs = Collection(directory, print_line)
    refresh(runs)
    written = write(runs, out)
    if json:
        print_json({"site": str(out), "files": written.files, "bytes": written.bytes})
    else:
        print(f"Site: {out}/index.html, {counted(written.files, 'file')}, {written.bytes / 1e6:.1f} MB")
