"""The life of single requests: those of a trace that hold a sector, with the time of each step."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iolab import _native
from iolab.adapters.trace.export import BATCH_ROWS, frame
from iolab.adapters.trace.figures import unreadable
from iolab.base.errors import InputError
from iolab.base.trace_files import Trace, attended

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Lives:
    """Requests in the order of arrival, as rows of `export.frames` with the name of the process."""

    rows: list[dict[str, Any]]
    more: int
    """How many further ones there are."""
    began_ns: int
    """When the trace began, on its clock."""


LIVES_MAX = 100


def lives_at(trace: Trace, sector: int) -> Lives:
    """The requests that hold the sector, of 512 bytes, on any device; of flushes and other requests without data none.

    Raises:
        InputError: the trace can't be read, or no request holds the sector.
    """
    import polars as pl

    kept: list[pl.DataFrame] = []
    try:
        reader = attended(trace, lambda: _native.TraceRows.open(json.dumps(trace.spec)))
        while (columns := attended(trace, lambda: reader.next(BATCH_ROWS))) is not None:
            end = pl.col("sector") + pl.col("sectors")
            kept.append(frame(columns).filter((pl.col("sector") <= sector) & (pl.lit(sector) < end)))
    except ValueError as error:
        raise unreadable(error, trace) from error
    if not sum(len(rows) for rows in kept):
        raise InputError(f"no request holds sector {sector}", where=trace.name, remedy="take one of --to parquet")
    found = pl.concat(kept).sort("arrived_ns")
    names = reader.names()
    rows = [{**row, "process": names.get(row["pid"])} for row in found.head(LIVES_MAX).iter_rows(named=True)]
    return Lives(rows, max(0, len(found) - LIVES_MAX), reader.began_ns() or 0)
