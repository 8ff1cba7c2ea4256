"""`iolab characterise`: a workload with the characteristics of a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iolab.base.errors import InputError
from iolab.presentation.cli.options import Json
from iolab.presentation.cli.output import print_json, print_lines
from iolab.presentation.cli.trace import Columns, Separator, TraceFiles


def characterise(
    files: TraceFiles,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.toml", help="The experiment to write. `-`: standard output.")
    ] = Path("characterised.toml"),
    size: Annotated[str, typer.Option(metavar="SIZE", help="The most that each stream's file takes.")] = "1GiB",
    columns: Columns = None,
    separator: Separator = None,
    json: Json = False,
) -> None:
    """Write an experiment whose workload offers what a trace shows, small enough to send to somebody.

    Each process of most requests becomes a stream: share of reads, sizes, pattern (sequential, random, Zipf), mean
    rate, flushes. No name of a file, no content and no time of the traced machine is in it.
    What the workload misses is told.
    """
    from iolab.adapters.trace import study, trace_of
    from iolab.adapters.trace.characterise import characterise as streams_of
    from iolab.adapters.trace.characterise import experiment
    from iolab.base import output_file
    from iolab.base.quantity import parse_bytes

    try:
        size_bytes = parse_bytes(size)
    except ValueError as error:
        raise InputError(str(error), where="--size", remedy="a size such as 1GiB") from error
    source = trace_of(files, columns, separator)
    streams = streams_of(source)
    text = experiment(streams, study(source)["elapsed_ns"] / 1e9, size_bytes)
    to_stdout = output_file.is_stdout(output)
    if json and to_stdout:
        raise InputError("prints on standard output, and so does the experiment", where="--json")
    output_file.write(output, text.encode())
    misses = [line for stream in streams for line in stream.misses()]
    if json:
        print_json({"experiment": str(output), "streams": len(streams), "misses": misses})
    elif not to_stdout:
        print(f"Experiment: {output}, {len(streams)} streams")
        print_lines(misses, "! ")
