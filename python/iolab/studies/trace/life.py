"""The life of single requests: those of a trace that hold a sector, with the time of each step."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iolab import _native
from iolab.base.errors import InputError
from iolab.base.trace_files import Trace, attended
from iolab.studies.trace.export import BATCH_ROWS, frame
from iolab.studies.trace.figures import unreadable

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class RequestLives:
    """Requests in the order of arrival, as rows of `export.frames` with the name of the process."""

    rows: list[dict[str, Any]]
    more: int
    """How many further ones there are."""
    began_ns: int
    """When the trace began, on its clock."""


LIVES_MAX = 100


def lives(trace: Trace, sector: int | None = None, *, failed: bool = False) -> RequestLives:
    """The requests that hold the sector, of 512 bytes, on any device; of flushes and other requests without data none.

    Args:
        sector: None: requests at any place.
        failed: only those that failed.

    Raises:
        InputError: the trace can't be read, or there is no such request.
    """
    import polars as pl

    end = pl.col("sector") + pl.col("sectors")
    wanted = pl.lit(value=True) if sector is None else (pl.col("sector") <= sector) & (pl.lit(sector) < end)
    if failed:
        wanted &= pl.col("error") != 0
    kept: list[pl.DataFrame] = []
    try:
        reader = attended(trace, lambda: _native.TraceRows.open(json.dumps(trace.spec)))
        while (columns := attended(trace, lambda: reader.next(BATCH_ROWS))) is not None:
            kept.append(frame(columns, reader).filter(wanted))
    except ValueError as error:
        raise unreadable(error, trace) from error
    if not sum(len(rows) for rows in kept):
        what = "no request failed" if failed else "no request"
        place = "" if sector is None else f"{' that' if failed else ''} holds sector {sector}"
        raise InputError(what + place, where=trace.name, remedy="--to parquet has all")
    found = pl.concat(kept).sort("arrived_ns")
    names = reader.names()
    rows = [{**row, "process": names.get(row["pid"])} for row in found.head(LIVES_MAX).iter_rows(named=True)]
    return RequestLives(rows, max(0, len(found) - LIVES_MAX), reader.began_ns() or 0)
