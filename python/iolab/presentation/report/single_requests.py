"""The requests of a trace one by one, for a zoom in which few are in sight."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from iolab.base.strict_json import JsonObject

if TYPE_CHECKING:
    import polars

REQUESTS_MAX = 2**15
"""Of a trace with more, a page holds intervals alone: half a megabyte of numbers is enough."""
DRAWN_MAX = 1024
"""At once."""
STEPS = 2**32 - 1


def packed(frames: Iterable[polars.DataFrame], began_ns: int) -> JsonObject | None:
    """Arrival and completion in seconds, latency in µs and place in GiB of each request, as `zoom.js` reads them; None
    if no request has a latency."""
    import polars as pl

    parts = [frame.select("arrived_ns", "completed_ns", "issued_ns", "queued_ns", "sector") for frame in frames]
    if not parts:
        return None
    found = pl.concat(parts)
    first = pl.coalesce("queued_ns", "issued_ns", "arrived_ns")
    rows = found.drop_nulls("completed_ns").select(
        ((pl.col("arrived_ns").cast(pl.Float64) - began_ns) / 1e9).alias("arrived_s"),
        ((pl.col("completed_ns").cast(pl.Float64) - began_ns) / 1e9).alias("completed_s"),
        ((pl.col("completed_ns") - first).cast(pl.Float64) / 1e3).alias("latency_us"),
        (pl.col("sector").cast(pl.Float64) * 512 / 2**30).alias("place_gib"),
    )
    if not rows.height:
        return None
    columns = [_whole(rows[name].to_numpy()) for name in rows.columns]
    content = zlib.compress(b"".join(values.tobytes() for values, _ in columns), 9)
    return {
        "count": rows.height,
        "most": DRAWN_MAX,
        "scales": [scale for _, scale in columns],
        "packed": b64encode(content).decode(),
    }


def _whole(values: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[np.ndarray[Any, np.dtype[np.uint32]], float]:
    """In 32 bits, and what one of them is."""
    values = np.maximum(values, 0.0)
    scale = float(values.max(initial=0.0)) / STEPS or 1.0
    return np.round(values / scale).astype("<u4"), scale
