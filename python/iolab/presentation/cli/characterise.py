"""`iolab characterise`: a workload with the characteristics of a trace."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import Json, size_bytes
from iolab.presentation.cli.output import print_json, print_lines
from iolab.presentation.cli.trace import Columns, Gaps, Separator, TraceFiles

if TYPE_CHECKING:
    from iolab.base.trace_files import Trace
    from iolab.studies.trace.synthetic import Difference


def characterise(
    files: TraceFiles,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.toml", help="The experiment to write. `-`: standard output.")
    ] = Path("characterised.toml"),
    size: Annotated[str, typer.Option(metavar="SIZE", help="The most that each stream's file takes.")] = "1GiB",
    check: Annotated[
        str | None,
        typer.Option(
            metavar="model:NAME",
            help="Run the trace and the workload on this simulated machine, and report how far apart they are there.",
            autocompletion=complete.machines,
        ),
    ] = None,
    columns: Columns = None,
    separator: Separator = None,
    gaps: Gaps = None,
    json: Json = False,
) -> None:
    """Write an experiment whose workload has the characteristics of a trace, small enough to send to somebody.

    Each of the tasks with most requests becomes a stream: share of reads, sizes, pattern (sequential, random, Zipf),
    mean rate, flushes. It holds no file names, no content and no times of the traced machine. A line states what the
    workload misses.
    """
    from iolab.base import output_file
    from iolab.studies.trace import study, trace_of
    from iolab.studies.trace.characterise import characterise as streams_of
    from iolab.studies.trace.characterise import experiment

    file_bytes = size_bytes("--size", size)
    source = trace_of(files, columns, separator, gaps)
    streams = streams_of(source)
    text = experiment(streams, study(source)["elapsed_ns"] / 1e9, file_bytes)
    to_stdout = output_file.is_stdout(output)
    if json and to_stdout:
        raise InputError("prints on standard output, and so does the experiment", where="--json")
    output_file.write(output, text.encode(), source.paths)
    misses = [line for stream in streams for line in stream.misses()]
    differences = [] if check is None else _differences(source, text, check, as_json=json)
    if json:
        found = {"experiment": str(output), "streams": len(streams), "misses": misses}
        print_json(found if check is None else {**found, "differences": [asdict(one) for one in differences]})
    elif not to_stdout:
        print(f"Experiment: {output}, {counted(len(streams), 'stream')}")
        print_lines(misses, "! ")
    if differences and not json and not to_stdout:
        from iolab.presentation.table.trace import beside
        from iolab.presentation.terminal import show

        show(*beside(differences, str(check)))


def _differences(trace: Trace, text: str, machine: str, *, as_json: bool) -> list[Difference]:
    from iolab.presentation.progress import display
    from iolab.studies.trace.synthetic import beside

    return beside(trace, text, machine, display(as_json=as_json))
