"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

RunDirectory = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run directory, as `iolab run` leaves it.", show_default=False)
]

RunOrFile = Annotated[
    Path,
    typer.Argument(
        metavar="RUN|FILE",
        help="A run directory, or a file of another tool: fio, tiobench, iozone, fs_mark, mmtests, any CSV ...",
        show_default=False,
    ),
]

From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        help="The format of a file, instead of the one that its content is recognised by. See `iolab import --help`.",
        show_default=False,
    ),
]

Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="KEY",
        help="A metric, as [phase/][op.]metric: latency_ns_p99, read.iops, random_read/rate_bytes_per_s. May be given "
        "several times. See `iolab list metrics`.",
        show_default=False,
    ),
]

FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="CONDITION",
        help="slower, faster or undecided: exit with status 1 when any comparison has this verdict; faulty: when any "
        "trial had I/O errors, wrong data, or failed. May be given several times.",
        show_default=False,
    ),
]
