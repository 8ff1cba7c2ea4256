"""A history: many runs of the same experiment over time, and which of its metrics changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median

from iolab.base.strict_json import JsonObject
from iolab.domain.conditions import differences
from iolab.domain.definition import DIFFERENCES, LOSSES, Verdict
from iolab.domain.history.changes import FEWEST, Change, changes_in, detection_limit, newest_unseen
from iolab.domain.history.moving_as_one import independent_count
from iolab.domain.metric import describe

APART = 0.5
"""How far beyond all runs before them the newest lie that are named, as a share of the range of those. Chosen: of noise
alone, fewer than one series in 1,000 has such a run."""
MADE_UP_FOR = 0.5
"""A change stands while so much of it is left, as a share."""


@dataclass(frozen=True)
class Moment:
    """A run of the history. `when_unix_ns`: when it began, None if unknown; `facts`: what is on record of its machine,
    target and options."""

    name: str
    when_unix_ns: int | None
    facts: Mapping[str, str]

    def __str__(self) -> str:
        if self.when_unix_ns is None:
            return self.name
        date = datetime.fromtimestamp(self.when_unix_ns / 1e9, UTC).date().isoformat()
        return self.name if date in self.name else f"{date} ({self.name})"


@dataclass(frozen=True)
class Series:
    """A metric of a workload under a setting, a value per moment; None if it has none."""

    workload: str
    setting: str
    metric: str
    values: Sequence[float | None]
    lost: Sequence[int] = ()
    """The newest moments, if they measured the workload under the setting and have no value, and if no such gap before
    them is as long."""
    why_lost: str = ""

    def lost_as_dict(self, moments: Sequence[Moment]) -> JsonObject:
        """One JSON object: the schema stands in docs/history.md."""
        return {
            "workload": self.workload,
            "setting": self.setting,
            "metric": self.metric,
            "runs": len(self.lost),
            "since": moments[self.lost[0]].name,
            "reason": self.why_lost or None,
        }


@dataclass(frozen=True)
class History:
    """Runs, oldest first. `ordered_by`: how the order is known; `problems`: what is wrong with them, a line each."""

    moments: Sequence[Moment]
    series: Sequence[Series]
    ordered_by: str
    problems: Sequence[str]


@dataclass(frozen=True)
class HistoryFinding:
    """A change in a series. Places are moments. `differs`: what else changed between the moment before its earliest
    place and its latest; `stands`: later changes have not made up for half of it."""

    series: Series
    change: Change
    verdict: Verdict
    differs: list[tuple[str, str, str]]
    stands: bool

    @property
    def regressed(self) -> bool:
        """Whether it is for the worse, and stands."""
        return self.verdict in LOSSES and self.stands

    def as_dict(self, moments: Sequence[Moment]) -> JsonObject:
        """One JSON object: the schema stands in docs/history.md."""
        change = self.change
        return {
            "workload": self.series.workload,
            "setting": self.series.setting,
            "metric": self.series.metric,
            "verdict": self.verdict,
            "since": moments[change.at].name,
            "since_unix_ns": moments[change.at].when_unix_ns,
            "earliest": moments[change.earliest].name,
            "latest": moments[change.latest].name,
            "before": change.before,
            "after": change.after,
            "difference_low": change.low,
            "difference_high": change.high,
            "p": change.p,
            "may_be_drift": change.may_be_drift,
            "stands": self.stands,
            "differs": [{"what": what, "before": ours, "after": theirs} for what, ours, theirs in self.differs],
        }


@dataclass(frozen=True)
class UnchangedSeries:
    """A series without a change. `below`: a smaller step in its middle would not be seen, in the metric's unit;
    `newest`: none would be seen in so many of its newest runs; `runs`: its values; `level`: their median; `apart`: how
    many of the newest lie far beyond all before them, at which level; `alone`: the largest change that it would show if
    it were the only series."""

    series: Series
    below: float
    newest: int
    runs: int
    level: float
    apart: int
    newest_level: float
    alone: HistoryFinding | None

    def as_dict(self, moments: Sequence[Moment]) -> JsonObject:
        """One JSON object: the schema stands in docs/history.md."""
        return {
            "workload": self.series.workload,
            "setting": self.series.setting,
            "metric": self.series.metric,
            "runs": self.runs,
            "level": self.level,
            "unseen_below": self.below,
            "unseen_newest": self.newest,
            "newest_apart": self.apart,
            "newest_level": self.newest_level,
            "alone_since": self.alone and moments[self.alone.change.at].name,
        }


def unchanged_series(
    history: History, found: Sequence[HistoryFinding], *, false_alarms: float, looks: int
) -> list[UnchangedSeries]:
    """Every series in which no change was found, and how small a step could hide there: first those that show one by
    themselves, then what hides most."""
    varying = _varying(history)
    count = independent_count([one.values for one in varying], false_alarms, looks=looks)
    changed = [one.series for one in found]
    hidden = []
    for series in varying:
        values = [value for value in series.values if value is not None]
        if len(values) < FEWEST or any(series is one for one in changed):
            continue
        below = detection_limit(values, series=count, looks=looks, false_alarms=false_alarms)
        newest = newest_unseen(len(values), series=count, looks=looks, false_alarms=false_alarms)
        apart = _apart(values, newest)
        level = median(values[: len(values) - apart])
        newest_level = median(values[-max(1, apart) :])
        alone = max(
            _changes(history, series, 1, looks, false_alarms) if count > 1 else [],
            key=lambda one: abs(one.change.after - one.change.before),
            default=None,
        )
        hidden.append(UnchangedSeries(series, below, newest, len(values), level, apart, newest_level, alone))
    return sorted(hidden, key=lambda one: (one.alone is None, -one.below / (abs(one.level) or 1.0)))


def _apart(values: Sequence[float], most: int) -> int:
    """How many of the newest values, `most` at most, lie far on one side of all before them."""
    for count in range(min(most, len(values) // 2), 0, -1):
        before, newest = values[:-count], values[-count:]
        far = APART * (max(before) - min(before))
        if min(newest) > max(before) + far or max(newest) < min(before) - far:
            return count
    return 0


def _varying(history: History) -> list[Series]:
    return [one for one in history.series if len({value for value in one.values if value is not None}) > 1]


def found_in(history: History, *, false_alarms: float, looks: int, same_within: float) -> list[HistoryFinding]:
    """Every change in the history that is larger than `same_within`, a share of the level; the newest first.

    `false_alarms`: the probability that a history without a change shows one in any of `looks` looks."""
    varying = _varying(history)
    count = independent_count([one.values for one in varying], false_alarms, looks=looks)
    found = [
        one
        for series in varying
        for one in _changes(history, series, count, looks, false_alarms)
        if abs(one.change.after - one.change.before) > same_within * abs(one.change.before)
    ]
    return sorted(found, key=lambda one: -one.change.at)


def _changes(history: History, series: Series, count: float, looks: int, false_alarms: float) -> list[HistoryFinding]:
    places = [place for place, value in enumerate(series.values) if value is not None]
    values = [value for value in series.values if value is not None]
    changes = [
        replace(one, at=places[one.at], earliest=places[one.earliest], latest=places[one.latest])
        for one in changes_in(values, series=count, looks=looks, false_alarms=false_alarms)
    ]
    higher, lower = DIFFERENCES[describe(series.metric).nature]
    facts = [moment.facts for moment in history.moments]
    return [
        HistoryFinding(
            series,
            one,
            higher if one.after > one.before else lower,
            differences(facts[places[max(0, places.index(one.earliest) - 1)]], facts[one.latest]),
            (changes[-1].after - one.before) / (one.after - one.before) > MADE_UP_FOR,
        )
        for one in changes
    ]
