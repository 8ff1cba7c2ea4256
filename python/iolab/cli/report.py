"""`iolab report`: a run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iolab.cli.options import Json, Metrics, RunDirectory
from iolab.cli.output import print_json


def report(
    run: RunDirectory,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.html", help="The file to write; replaced if it exists.")
    ] = Path("report.html"),
    metric: Metrics = None,
    json: Json = False,
) -> None:
    """Write a run as one HTML file that opens without a network.

    It holds the verdicts in words, the table, throughput over rounds and over time, latency distributions, the machine,
    the exact experiment, and what went wrong.
    """
    from iolab.report import write
    from iolab.store import read

    write(read(run), output, metric or ())
    if json:
        print_json({"report": str(output), "bytes": output.stat().st_size})
    else:
        print(f"Report: {output}")
