"""A trace in the forms that other programs read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolab import _native
from iolab.base import output_file
from iolab.base.errors import InputError, unknown
from iolab.base.trace_files import Trace, attended
from iolab.domain import native_types as native
from iolab.studies.trace.figures import study, unreadable

if TYPE_CHECKING:
    import polars as pl

FORMS = {
    "perfetto": "Perfetto: a slice per request with its stages, and the queue's depth",
    "blktrace": "files of blktrace, one per CPU, which blkparse and btt read",
    "iolog": "fio's log of I/Os, version 3",
    "parquet": "a row per request",
}
BATCH_ROWS = 1 << 16
_UNKNOWN = 2**64 - 1
_OPERATIONS = ("read", "write", "discard", "flush", "other")
_TIMES = ("queued_ns", "inserted_ns", "issued_ns", "completed_ns")


def export(trace: Trace, form: str, path: Path, *, queued: bool = False) -> native.TraceFigures | None:
    """Writes the trace as `form` to `path` (of blktrace: `path.blktrace.CPU`): whole, or not at all.

    Args:
        queued: of a log, the times of queueing instead of those of issue.

    Returns:
        What the trace shows, if it was read for the export.

    Raises:
        InputError: no such form, or the trace can't be read or the file not written, which is never one of its own.
    """
    if form not in FORMS:
        raise InputError(unknown("form", form, FORMS), where="--to")
    if form == "parquet":
        _write_parquet(trace, path)
        return None
    device = f"/dev/{trace.paths[0].name.split('.')[0]}"
    if form == "blktrace":
        output_file.check(path, "with places")
        with output_file.several(path.with_name(f"{path.name}.blktrace."), trace.paths) as descriptor:
            return study(trace, {"form": form, "descriptor": descriptor})
    with output_file.opened(path, inputs=trace.paths) as descriptor:
        return study(trace, {"form": form, "descriptor": descriptor, "queued": queued, "device": device})


def frames(trace: Trace, rows: int = BATCH_ROWS) -> Iterator[pl.DataFrame]:
    """The requests of a trace in the order of completion, about this many at a time; docs/traces.md has the columns.

    Raises:
        InputError: it can't be read.
    """
    try:
        reader = attended(trace, lambda: _native.TraceRows.open(json.dumps(trace.spec)))
        while (columns := attended(trace, lambda: reader.next(rows))) is not None:
            yield frame(columns, reader)
    except ValueError as error:
        raise unreadable(error, trace) from error


def task_names(trace: Trace) -> dict[int, str]:
    """What the tasks are called: read once more, for names stand anywhere."""
    reader = attended(trace, lambda: _native.TraceRows.open(json.dumps(trace.spec)))
    while attended(trace, lambda: reader.next(BATCH_ROWS)) is not None:
        pass
    return reader.names()


def frame(columns: list[bytes], reader: _native.TraceRows) -> pl.DataFrame:
    """What the reader yielded, as docs/traces.md has it."""
    import numpy as np
    import polars as pl

    arrays: dict[str, Any] = {
        name: np.frombuffer(column, dtype=f"<{kind[0]}{int(kind[1:]) // 8}")
        for (name, kind), column in zip(_native.trace_columns(), columns, strict=True)
    }
    rows = pl.DataFrame(arrays)
    operations = pl.Enum(_OPERATIONS)
    return rows.with_columns(
        *(pl.when(pl.col(name) != _UNKNOWN).then(pl.col(name)) for name in _TIMES),
        _devices(rows["device"], *reader.device_names()),
        pl.col("operation").replace_strict(dict(enumerate(_OPERATIONS)), return_dtype=operations),
        pl.col("split") != 0,
        *(
            ((pl.col("marks") // bit) % 2 == 1).alias(name)
            for name, bit in (
                ("sync", 1),
                ("read_ahead", 2),
                ("metadata", 4),
                ("fua", 8),
                ("preflush", 16),
                ("zeroes", 32),
            )
        ),
    ).drop("marks")


def _devices(numbers: pl.Series, names: dict[int, str], numbered: bool) -> pl.Series:
    """By the names that the trace has for them, else its own numbers, else `major:minor`."""
    import polars as pl

    def called(number: int) -> str:
        return names.get(number) or (str(number) if numbered else f"{number >> 20}:{number % 2**20}")

    found = {number: called(number) for number in numbers.unique().to_list()}
    return numbers.replace_strict(found, return_dtype=pl.String)


def _write_parquet(trace: Trace, path: Path) -> None:
    import polars as pl
    from polars.io.plugins import register_io_source

    batches = frames(trace)
    first = next(batches, None)
    if first is None:
        raise InputError("no request ended in it", where=trace.name)
    names = task_names(trace)
    named = pl.DataFrame(
        {"pid": list(names), "process": list(names.values())}, schema={"pid": pl.UInt32, "process": pl.String}
    )

    def scan(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        for batch in (first, *()) if n_rows == 0 else _chained(first, batches):
            joined = _named(batch, named)
            kept = joined if predicate is None else joined.filter(predicate)
            yield kept if columns is None else kept.select(columns)

    source: Callable[..., Iterator[pl.DataFrame]] = scan
    lazy = register_io_source(source, schema=_named(first, named).schema)
    with output_file.opened_as_file(path, "binary", trace.paths) as file:
        lazy.sink_parquet(file)


def _named(batch: pl.DataFrame, named: pl.DataFrame) -> pl.DataFrame:
    return batch.join(named, on="pid", how="left", maintain_order="left")


def _chained(first: pl.DataFrame, batches: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    yield first
    yield from batches
