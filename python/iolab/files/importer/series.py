"""A time series of bounded length: when it outgrows that, neighbours are merged and intervals become twice as long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

INTERVALS_MAX = 256
"""As in the records of iolab's own runs."""


@dataclass
class _Interval:
    total: float = 0.0
    weight: float = 0.0


@dataclass
class Series:
    """Samples one after another, each with its weight; keeps their mean, and means of equal numbers of neighbours."""

    count: int = 0
    per_interval: int = 1
    _intervals: list[_Interval] = field(default_factory=list)

    def add(self, value: float, weight: float = 1.0) -> None:
        """Takes in the next sample; `weight` is its share in means, such as the requests that it stands for."""
        if self.count == self.per_interval * INTERVALS_MAX:
            self._intervals = [_merged(pair) for pair in _pairs(self._intervals)]
            self.per_interval *= 2
        if self.count % self.per_interval == 0:
            self._intervals.append(_Interval())
        self._intervals[-1].total += value * weight
        self._intervals[-1].weight += weight
        self.count += 1

    @property
    def mean(self) -> float | None:
        """None if nothing weighs anything: the latency of no request."""
        whole = _merged(self._intervals)
        return whole.total / whole.weight if whole.weight else None

    def intervals(self) -> Iterator[tuple[int, float]]:
        """First sample of the interval, and the mean of its samples."""
        for place, interval in enumerate(self._intervals):
            if interval.weight:
                yield place * self.per_interval, interval.total / interval.weight


def _pairs(intervals: list[_Interval]) -> Iterator[list[_Interval]]:
    return (intervals[place : place + 2] for place in range(0, len(intervals), 2))


def _merged(intervals: list[_Interval]) -> _Interval:
    return _Interval(sum(one.total for one in intervals), sum(one.weight for one in intervals))
