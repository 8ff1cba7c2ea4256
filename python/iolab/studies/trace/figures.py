"""What a trace shows, from one pass over its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from iolab import _native
from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.base.strict_json import JsonObject
from iolab.base.trace_files import Trace, attended
from iolab.domain import native_types as native
from iolab.files.importer.formats import LOOKS_LIKE, formats_of
from iolab.files.importer.source import READ_AS_TRACE, Source

_LOOK_EVERY_S = 0.2


def study(
    trace: Trace,
    output: native.OutputSpec | None = None,
    *,
    intervals: int | None = None,
    queues: Sequence[Sequence[int]] = (),
) -> native.TraceFigures:
    """Reads the whole trace; with `output` it is written in another form on the way.

    Args:
        intervals: in the maps over time, at most; 1,024 if nothing is said.
        queues: the CPUs of each hardware queue, which no trace holds.

    Raises:
        InputError: it can't be read, or holds no block I/O.
    """
    try:
        spec = json.dumps({**trace.spec, "output": output, "intervals": intervals, "queues": queues})
        job = attended(trace, lambda: _native.TraceJob.start(spec))
        try:
            while (found := job.wait(_LOOK_EVERY_S)) is None:
                pass
        finally:
            job.stop()
    except ValueError as error:
        raise unreadable(error, trace) from error
    figures: native.TraceFigures = json.loads(found)
    if not figures["events"]:
        raise InputError(_empty(figures), where=trace.name, remedy="record the events of block/ (iolab record)")
    return figures


def shortened(figures: native.TraceFigures) -> JsonObject:
    """The same without histograms and without maps over time, which are most of it."""
    return {key: _without_histograms(value) for key, value in figures.items() if key != "maps"}


def _without_histograms(value: Any) -> Any:
    if isinstance(value, dict):
        left_out = ("histogram", "depth_ns")
        return {key: _without_histograms(inner) for key, inner in value.items() if key not in left_out}
    return [_without_histograms(inner) for inner in value] if isinstance(value, list) else value


def unreadable(error: ValueError, trace: Trace) -> InputError:
    """What the reader reports about the files."""
    what = str(error)
    known = any(str(path) in what for path in trace.paths)
    if "not a trace that iolab knows" in what:
        return _what_it_is(trace) or InputError(what, where=None if known else trace.name)
    return InputError(what, where=None if known else trace.name)


def _what_it_is(trace: Trace) -> InputError | None:
    """What is said of the trace's only file if it holds results, or a report of a tool that is known; None for a CSV
    file, which may be a table of I/Os, and for anything else."""
    if len(trace.paths) != 1 or not trace.paths[0].is_file():
        return None
    try:
        names = [one.name for one in formats_of(Source(trace.paths[0]))]
    except InputError as error:
        if LOOKS_LIKE not in error.what or error.remedy == READ_AS_TRACE:
            return None
        remedy = (error.remedy or "").removeprefix(f"{READ_AS_TRACE}; ")
        return InputError(error.what, where=error.where, remedy=remedy)
    if "csv" in names:
        return None
    return InputError(
        f"results in the format {names[0]}, and no trace", where=trace.name, remedy=f"iolab show {trace.name}"
    )


def _empty(figures: native.TraceFigures) -> str:
    if why := figures["first_malformed"]:
        return (
            f"no event of block I/O in {counted(figures['records'], 'record')} ({figures['format']}); the first: {why}"
        )
    return f"no event of block I/O in {counted(figures['records'], 'record')} ({figures['format']})"
