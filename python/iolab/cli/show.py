"""`iolab show`: a run as a table."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from iolab.cli.options import Json, Metrics, RunDirectory
from iolab.table import FORMATS


def show(
    run: RunDirectory,
    as_: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="; ".join(f"{name}: {purpose}" for name, purpose in FORMATS.items()) + ".",
        ),
    ] = "plain",
    metric: Metrics = None,
    json: Json = False,
) -> None:
    """Print a run as a table: a line per workload and metric, a column per setting, with verdicts.

    Values are typical ones over the rounds (Hodges-Lehmann); changes are against the baseline, with a 95 % interval.
    """
    from iolab.store import read
    from iolab.table import render

    sys.stdout.write(render(read(run), "json" if json else as_, metric or ()))
