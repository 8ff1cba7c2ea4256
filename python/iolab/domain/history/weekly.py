"""Whether a metric goes with the day of the week: such a cycle counts as noise, and hides steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median

from iolab.base.strict_json import JsonObject
from iolab.domain.history.history import History, HistoryFinding, Series

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WEEKS_LEAST = 3
"""Runs on each day of the week that it takes to tell a cycle."""
P_MAX = 0.001
"""Of all series together. Chosen: a cycle is a remark, which is worth nothing if it is wrong."""


@dataclass(frozen=True)
class WeeklyCycle:
    """A series that goes with the day of the week: the days on which it is lowest and highest, and their medians."""

    series: Series
    lowest_day: str
    highest_day: str
    lowest: float
    highest: float

    def as_dict(self) -> JsonObject:
        """One JSON object: the schema stands in docs/history.md."""
        return {
            "workload": self.series.workload,
            "setting": self.series.setting,
            "metric": self.series.metric,
            "lowest_day": self.lowest_day,
            "highest_day": self.highest_day,
            "lowest": self.lowest,
            "highest": self.highest,
        }


def weekly_cycles(history: History, found: Sequence[HistoryFinding]) -> list[WeeklyCycle]:
    """The series of dated runs that have one, by Kruskal and Wallis's test of what the changes leave."""
    from scipy.stats import kruskal

    times = [moment.when_unix_ns for moment in history.moments]
    days = [None if one is None else datetime.fromtimestamp(one / 1e9, UTC).weekday() for one in times]
    cycles = []
    for series in history.series:
        steps = sorted(one.change.at for one in found if one.series is series)
        left = _without_steps(series.values, steps)
        by_day = [
            [value for value, of in zip(left, days, strict=True) if of == day and value is not None]
            for day in range(len(DAYS))
        ]
        if min(map(len, by_day)) < WEEKS_LEAST or len({value for one in by_day for value in one}) < 2:
            continue
        if float(kruskal(*by_day).pvalue) * len(history.series) <= P_MAX:
            medians = [median(one) for one in by_day]
            low, high = medians.index(min(medians)), medians.index(max(medians))
            cycles.append(WeeklyCycle(series, DAYS[low], DAYS[high], medians[low], medians[high]))
    return cycles


def _without_steps(values: Sequence[float | None], steps: Sequence[int]) -> list[float | None]:
    """All on the newest level."""
    levels = [slice(*ends) for ends in pairwise([0, *steps, len(values)])]
    medians = [median([value for value in values[one] if value is not None] or [0.0]) for one in levels]
    return [
        None if value is None else value + medians[-1] - of_level
        for one, of_level in zip(levels, medians, strict=True)
        for value in values[one]
    ]
