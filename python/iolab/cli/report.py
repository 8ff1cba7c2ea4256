"""`iolab report`: a run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iolab.cli.options import From, Json, Metrics, RunOrFile
from iolab.cli.output import print_json


def report(
    run: RunOrFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.html", help="The file to write; replaced if it exists.")
    ] = Path("report.html"),
    metric: Metrics = None,
    from_: From = None,
    json: Json = False,
) -> None:
    """Write a run as one HTML file that opens without a network.

    It holds the verdicts in words, the table, throughput over rounds and over time, latency distributions, the machine,
    the exact experiment, and what went wrong.
    """
    from iolab.importer import open_run
    from iolab.report import write

    write(open_run(run, from_), output, metric or ())
    if json:
        print_json({"report": str(output), "bytes": output.stat().st_size})
    else:
        print(f"Report: {output}")
