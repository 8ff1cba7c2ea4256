"""Counts over time for a plot: as many points as are drawn at first, and all that were counted for who zooms in, which
the page's `zoom.js` draws by the same rules."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from iolab.base.strict_json import JsonObject

Numbers = np.ndarray[Any, np.dtype[Any]]
POINTS = 1024
"""Drawn at once, at most."""
How = Literal["count", "rate", "mean", "max"]
"""What several intervals together are: their sum, that per second, their mean, the largest of them."""


@dataclass(frozen=True)
class Counts:
    """Rows of whole numbers by interval, drawn together: the one of a line, all of a map."""

    values: np.ndarray[Any, np.dtype[np.uint32]]
    how: How
    scale: float
    """Factor on what is drawn."""

    @staticmethod
    def of(rows: Sequence[Sequence[float]] | Numbers, how: How, scale: float = 1.0) -> Counts:
        """Larger numbers than 32 bits hold lose what is small in them."""
        values = np.asarray(rows, dtype=np.float64)
        too_large = max(1.0, float(values.max(initial=0)) / (2**32 - 1))
        return Counts(np.floor(values / too_large).astype(np.uint32), how, scale * too_large)

    @property
    def length(self) -> int:
        """How many intervals there are."""
        return int(self.values.shape[1])

    def drawn(self, step_s: float, until_s: float) -> list[list[float | None]]:
        """The rows in at most POINTS points; `step_s`: the length of an interval in seconds; `until_s`: when the trace
        ends. A point that reaches further has no rate and no mean: it would look like an outage."""
        step = step_of(self.length)
        padded = np.pad(self.values.astype(np.float64), ((0, 0), (0, -self.length % step)))
        parts = padded.reshape(len(padded), -1, step)
        together = parts.max(axis=2) if self.how == "max" else parts.sum(axis=2)
        divisor = {"rate": step * step_s, "mean": float(step)}.get(self.how, 1.0)
        rows: list[list[float | None]] = (together * (self.scale / divisor)).tolist()
        points = together.shape[1]
        if self.how in ("rate", "mean") and points > 1 and points * step * step_s > until_s:
            for row in rows:
                row[-1] = None
        return rows


def step_of(length: int) -> int:
    """How many of this many intervals make a point: a power of two."""
    step = 1
    while -(-length // step) > POINTS:
        step *= 2
    return step


def times(length: int, step_s: float) -> list[float]:
    """The middle of each point, in seconds."""
    step = step_of(length)
    return [step_s * step * (number + 0.5) for number in range(-(-length // step))]


def fine(of_traces: Sequence[Counts], step_s: float, until_s: float) -> JsonObject | None:
    """All intervals of a plot's traces, in their order, as `zoom.js` reads them; None if all of them are drawn."""
    if not of_traces:
        return None
    length = of_traces[0].length
    if step_of(length) == 1:
        return None
    packed = zlib.compress(b"".join(counts.values.astype("<u4").tobytes() for counts in of_traces), 9)
    return {
        "step_s": step_s,
        "until_s": until_s,
        "length": length,
        "lines": [
            {
                "rows": len(counts.values),
                "how": counts.how,
                "scale": counts.scale,
                "axis": "z" if counts.how == "count" else "y",
            }
            for counts in of_traces
        ],
        "packed": b64encode(packed).decode(),
    }
