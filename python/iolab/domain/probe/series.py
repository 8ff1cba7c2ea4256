"""A probe's time series as numbers: means weighted by time, maxima, and the part of it that a phase was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from iolab.domain.phase_record import series_of

if TYPE_CHECKING:
    from iolab.domain.observation import Observation

Json = dict[str, Any]
Span = tuple[float, float]
"""From and to, in ns since the probe's start."""


def mean(observation: Json, column: str, span: Span | None = None) -> float | None:
    """Of the machine as a whole, over the span (default: all of it); None where nothing was seen."""
    weighted = list(_weighted(observation, column, span))
    total_ns = sum(weight for weight, _ in weighted)
    return sum(weight * value for weight, value in weighted) / total_ns if total_ns else None


def highest(observation: Json, column: str) -> float | None:
    """Of the machine as a whole."""
    return max((value for _, value in _weighted(observation, column, None)), default=None)


def measured_span(seen: Observation, observation: Json) -> Span:
    """When the phase was measured, warm-up and transient left out. Two wall clocks are compared: on one machine."""
    offset_ns = max(0, seen.record["started_unix_ns"] - observation["times"]["started_unix_ns"])
    return offset_ns + seen.record["measured_from_ns"], offset_ns + seen.record["measured_to_ns"]


def _weighted(observation: Json, column: str, span: Span | None) -> Iterator[tuple[float, float]]:
    """The share of each interval that lies in the span, in ns, and its value."""
    series = series_of(observation).get("all", {"at_ns": [], "columns": {}})
    columns = series["columns"]
    if column not in columns:
        return
    for start_ns, length_s, value in zip(series["at_ns"], columns["length_s"], columns[column], strict=True):
        end_ns = start_ns + length_s * 1e9
        low, high = (start_ns, end_ns) if span is None else (max(start_ns, span[0]), min(end_ns, span[1]))
        if value is not None and high > low:
            yield high - low, value
