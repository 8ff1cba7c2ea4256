"""`iolab report`: a run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iolab.base.errors import InputError
from iolab.presentation.cli.options import From, Json, Metrics, RunOrFile
from iolab.presentation.cli.output import print_json


def report(
    run: RunOrFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            help="The file to write; replaced if it exists. `-`: standard output.",
        ),
    ] = Path("report.html"),
    metric: Metrics = None,
    from_: From = None,
    json: Json = False,
) -> None:
    """Write a run as one HTML file that opens without a network.

    It holds the conclusion, doubts about the numbers, metrics that moved together, the table (also as CSV), sweeps,
    throughput over rounds and over time, latency distributions, the machine, the exact experiment, and what went wrong.
    For a sweep, it has the comparisons of all cells; for `iolab tune`, the fresh rounds of the finalists; for a search
    among commits, the answer.
    """
    from iolab.base import output_file
    from iolab.files.importer.run_import import open_run
    from iolab.presentation.cli.directories import answer_lines, one_run, sweep_comparisons
    from iolab.presentation.report import comparison, write
    from iolab.studies.run.commits import is_search

    to_stdout = output_file.is_stdout(output)
    if json and to_stdout:
        raise InputError("prints on standard output, and so does the page", where="--json", remedy="leave one out")
    if (cells := sweep_comparisons(run, metric or ())) is not None:
        page = comparison.render(f"Sweep {run.name}", [], *cells).encode()
        output_file.write(output, page, [run / "sweep.json"])
        size = len(page)
    elif is_search(run) and (answer := answer_lines(run)) is not None:
        page = comparison.render(f"Search {run.name}", [], [], [], answer=answer).encode()
        output_file.write(output, page, [run / "search.jsonl"])
        size = len(page)
    else:
        size = write(open_run(one_run(run), from_), output, metric or ())
    if json:
        print_json({"report": str(output), "bytes": size})
    elif not to_stdout:
        print(f"Report: {output}")
