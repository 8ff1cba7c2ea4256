"""What a history shows, for people: a line per change, newest first, with what else changed there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from iolab.base.plain_text import counted
from iolab.base.quantity import change, plain, scale_for
from iolab.domain.history.changes import FEWEST, MOST, Change
from iolab.domain.history.history import History, HistoryFinding, Series, UnchangedSeries
from iolab.domain.history.weekly import WeeklyCycle
from iolab.presentation.table.words import label, unit_of

DIFFERENCES_MAX = 6
UNSEEN_MAX = 6
FACT_CHARACTERS_MAX = 60


def lines(
    history: History,
    found: Sequence[HistoryFinding],
    unseen: Sequence[UnchangedSeries],
    cycles: Sequence[WeeklyCycle],
    false_alarms: float,
    looks: int,
) -> Iterator[str]:
    """Each change, what could hide in series without one, then what the history is of."""
    moments = history.moments
    text = f"{counted(len(moments), 'run')} in the order of their {history.ordered_by}, {moments[0]} to {moments[-1]}"
    newest = f" The newest {MOST} are looked at." if len(moments) > MOST else ""
    text = f"{text}; {len(history.series)} series.{newest}"
    if len(moments) < FEWEST:
        yield f"Too few runs to show a change: it takes {FEWEST}."
        yield from _lost(history)
        yield text
        return
    often = "one look" if looks == 1 else counted(looks, "look")
    share = f"{false_alarms * 100:.3g} % of histories without a change"
    yield from _lost(history)
    if not found:
        yield "No change was found."
    yield from _apart(history, unseen)
    for number, group in enumerate(together(found)):
        yield from [""] if number else []
        yield from _group(history, group)
    if unseen:
        yield ""
    for hidden in unseen[:UNSEEN_MAX]:
        yield f"{_unchanged(hidden)}{_alone(history, hidden)}"
    if (more := len(unseen) - UNSEEN_MAX) > 0:
        yield f"and {more} more series without a change"
    yield from _cycles(cycles)
    yield ""
    yield text
    yield f"The limits are set for false alarms in {share}, in {often}."


def _lost(history: History) -> Iterator[str]:
    """A line for each series of which the newest runs have no value."""
    for series in history.series:
        if series.lost:
            first = history.moments[series.lost[0]]
            runs = f"{counted(len(series.lost), 'run')}, since" if len(series.lost) > 1 else "run,"
            why = f": {series.why_lost}" if series.why_lost else ""
            yield f"{label(series.metric)}{_place(series)}: no value in the newest {runs} {first}{why}"


def _apart(history: History, unseen: Sequence[UnchangedSeries]) -> Iterator[str]:
    """A line for each series whose newest runs are too few for a change, and far from all others."""
    for one in unseen:
        if one.apart:
            places = [place for place, value in enumerate(one.series.values) if value is not None]
            what = f"{label(one.series.metric)}{_place(one.series)}"
            scale = scale_for(unit_of(one.series.metric), [one.level, one.newest_level])
            by = f", {change(one.newest_level / one.level)}" if one.level > 0 < one.newest_level else ""
            newest = f"newest {counted(one.apart, 'run')}" if one.apart > 1 else "newest run"
            yield (
                f"{what}: {scale.number(one.level)} -> {scale.with_unit(one.newest_level)}{by}, in the {newest} "
                f"({history.moments[places[-one.apart]]}{' on' if one.apart > 1 else ''}), beyond all "
                f"{one.runs - one.apart} before: an outlier, or a change that further runs confirm"
            )


def _unchanged(one: UnchangedSeries) -> str:
    scale = scale_for(unit_of(one.series.metric), [one.below])
    size = scale.with_unit(one.below) if one.level <= 0 else f"{plain(100 * one.below / one.level, 2)} %"
    what = f"{label(one.series.metric)}{_place(one.series)}"
    newest = f", nor any yet in the newest {one.newest}" if one.newest > 1 else ""
    return f"{what}: none found; a step below {size} would not be seen in {counted(one.runs, 'run')}{newest}"


def _cycles(cycles: Sequence[WeeklyCycle]) -> Iterator[str]:
    """A line for each series that goes with the day of the week, whose steps are seen less well."""
    for one in cycles[:UNSEEN_MAX]:
        scale = scale_for(unit_of(one.series.metric), [one.lowest, one.highest])
        low, high = scale.number(one.lowest), scale.with_unit(one.highest)
        yield (
            f"{label(one.series.metric)}{_place(one.series)}: has a cycle of seven days, from {low} on "
            f"{one.lowest_day}s to {high} on {one.highest_day}s: it counts as noise, which hides steps of its size"
        )
    if (more := len(cycles) - UNSEEN_MAX) > 0:
        yield f"and {more} more series have a cycle of seven days"


def _alone(history: History, one: UnchangedSeries) -> str:
    """What a series without a change shows if it is the only one that is looked at."""
    if one.alone is None:
        return ""
    since = history.moments[one.alone.change.at]
    return f"; by itself, as with --metric, it would be {one.alone.verdict} since {since}{_share(one.alone.change)}"


def together(found: Sequence[HistoryFinding]) -> list[list[HistoryFinding]]:
    """The changes that may have happened at one place, as all their intervals share a place; in their order."""
    groups: list[list[HistoryFinding]] = []
    for one in found:
        if groups and _earliest([*groups[-1], one]) <= _latest([*groups[-1], one]):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _earliest(group: Sequence[HistoryFinding]) -> int:
    return max(one.change.earliest for one in group)


def _latest(group: Sequence[HistoryFinding]) -> int:
    return min(one.change.latest for one in group)


def _group(history: History, group: Sequence[HistoryFinding]) -> Iterator[str]:
    """What changed at one place: of several a sentence, what else changed beside all of them, and a line each."""
    if len(group) == 1:
        yield _change(history, group[0])
        yield from _drifts(group[0])
        yield from _differs(group[0].differs)
        return
    earliest, latest = _earliest(group), _latest(group)
    known = earliest if earliest == latest else None
    where = f"between {history.moments[earliest]} and {history.moments[latest]}"
    if known is not None:
        where = f"at {history.moments[known]}"
    counts = Counter(one.verdict for one in group)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    shared = [each for each in group[0].differs if all(each in one.differs for one in group)]
    yield f"{len(group)} series changed {where}: {verdicts}"
    yield from _differs(shared)
    for one in group:
        yield _change(history, one, known)
        yield from _drifts(one)
        yield from _differs([each for each in one.differs if each not in shared])


def _drifts(one: HistoryFinding) -> Iterator[str]:
    if one.change.may_be_drift:
        yield "it may be drift: a level that wanders explains it as well"


def _change(history: History, one: HistoryFinding, known: int | None = None) -> str:
    """`known`: the place that the reader knows already, if there is but one."""
    moments, it = history.moments, one.change
    since = "" if it.at == known else f" since {moments[it.at]}"
    if it.earliest < it.latest:
        since += f" (between {moments[it.earliest]} and {moments[it.latest]})"
    scale = scale_for(unit_of(one.series.metric), [it.before, it.after])
    levels = f"{scale.number(it.before)} -> {scale.with_unit(it.after)}"
    undone = "" if one.stands else "; undone since"
    return f"{label(one.series.metric)}{_place(one.series)}: {one.verdict}{since}: {levels}{_share(it)}{undone}"


def _place(series: Series) -> str:
    of = [part for part in (series.workload, series.setting) if part not in ("", "all")]
    return f" of {' under '.join(of)}" if of else ""


def _share(it: Change) -> str:
    if it.from_zero or it.before <= 0 or it.before + it.low <= 0:
        return ""
    low, middle, high = (change(1 + part / it.before) for part in (it.low, it.after - it.before, it.high))
    return f", {middle} [{low}, {high}]"


def _differs(differs: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    for what, ours, theirs in differs[:DIFFERENCES_MAX]:
        yield f"changed there too: {what}: {_short(ours)} -> {_short(theirs)}"
    if (more := len(differs) - DIFFERENCES_MAX) > 0:
        yield f"and {more} more"


def _short(text: str) -> str:
    return text if len(text) <= FACT_CHARACTERS_MAX else f"{text[: FACT_CHARACTERS_MAX - 3]}..."
