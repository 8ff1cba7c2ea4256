"""Dates as people and programs write them, read by what the whole column can be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAY = re.compile(r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6},?\s+", re.IGNORECASE)
_CLOCK = re.compile(
    r"(?<!\d)(\d{1,2}):(\d\d)(?::(\d\d(?:[.,]\d{1,9})?))?(?:\s?([ap])\.?m\b\.?)?"
    rf"(?:\s?([-+])(\d\d)(?::?(\d\d))?\b|\s?(?!{'|'.join(_MONTHS)})(?:Z|[A-Z]{{3,4}})\b)?(?:\s\([A-Z]{{2,5}}\))?",
    re.IGNORECASE,
)
_COMPACT_CLOCK = re.compile(r"(?:(?<=\d{8})[T_-]?|(?<=\d\d)[T_])(\d\d)[-.]?(\d\d)(?:[-.]?(\d\d))?Z?$")
_EPOCH = re.compile(r"(\d{10}|\d{13}|\d{16}|\d{19})(?:\.(\d{1,9}))?")
_EPOCH_UNIT_NS = {10: 10**9, 13: 10**6, 16: 10**3, 19: 1}
"""Nanoseconds of the unit in which a time since 1970 has so many digits, from 2001 on."""
_YEAR_FIRST = re.compile(r"(\d{4})([-/._ ]?)(\d\d)(?:\2(\d\d))?|(\d{4})([-/._ ])(\d{1,2})\6(\d{1,2})")
_YEAR_LAST = re.compile(r"(\d{1,2})([-/._ ])(\d{1,2})\2(\d{4})|(\d{1,2})(/)(\d{1,2})/(\d\d)")
_WITH_MONTH = re.compile(
    r"(?:(?P<year>\d{4})[-/._ ])?(?:(?P<day>\d{1,2})(?:st|nd|rd|th)?[-/._, ]{1,2})?(?P<month>[a-z]{3,9})\.?"
    r"(?:[-/._, ]{1,2}(?P<day_after>\d{1,2})(?:st|nd|rd|th)?(?!\d))?(?:[-/._, ]{1,2}(?P<year_after>\d{4}))?",
    re.IGNORECASE,
)
_IN_NAME = re.compile(
    r"(?<!\d)(?:\d{4}([-_.]?)\d\d\1\d\d|\d\d([-_.])\d\d\2\d{4}|\d\d?([-_.])[A-Za-z]{3,9}\3\d{4})(?!\d)"
    r"|(?<![A-Za-z])[A-Za-z]{3,9}([-_.])\d\d?\4\d{4}(?!\d)"
)

Reading = tuple[str, str]
MONTH_FIRST: Reading = ("month", "day")
DAY_FIRST: Reading = ("day", "month")
READINGS = (MONTH_FIRST, DAY_FIRST)


class Dates(NamedTuple):
    """Times of a column's entries, with day and month in the order of `reading`. `ambiguous`: an entry that the other
    order makes another day, where nothing in the column decides; None if nothing is."""

    unix_ns: list[int]
    ambiguous: str | None
    reading: Reading


def dates_of(entries: Sequence[str]) -> Dates | None:
    """The times of all entries; None if one is no date that exists. Day and month may stand in either order, the same
    in all entries: that in which all are dates, rather the one in which the column rises or falls, else the one that
    spans the shorter time."""
    found = [
        (not _goes_one_way(times), max(times) - min(times), place, times)
        for place, reading in enumerate(READINGS)
        if (times := _read(entries, reading)) is not None
    ]
    if not found:
        return None
    _, _, place, times = min(found)
    others = [other for *_, other_place, other in found if other_place != place and other != times]
    alike = [other for other in others if _goes_one_way(other) == _goes_one_way(times)]
    ambiguous = (entry for other in alike for entry, a, b in zip(entries, times, other, strict=True) if a != b)
    return Dates(times, next(ambiguous, None), READINGS[place])


def dates_in_names(names: Sequence[str]) -> list[int | None]:
    """The date that each name has, such as `2026-11-23`, `20261123` or `23.11.2026`; None without one."""
    written = [next((one[0] for one in _IN_NAME.finditer(name) if _is_date(one[0])), None) for name in names]
    dates = dates_of([one for one in written if one is not None])
    times = iter(dates.unix_ns if dates else [])
    return [None if one is None else next(times, None) for one in written]


def _is_date(text: str) -> bool:
    return any(_unix_ns(text, reading) is not None for reading in READINGS)


def _goes_one_way(times: Sequence[int]) -> bool:
    steps = [b >= a for a, b in pairwise(times) if a != b]
    return all(steps) or not any(steps)


def _read(entries: Sequence[str], reading: Reading) -> list[int] | None:
    times = []
    for entry in entries:
        if (time := _unix_ns(entry, reading)) is None:
            return None
        times.append(time)
    return times or None


def _unix_ns(entry: str, reading: Reading) -> int | None:
    """None if it is no date, or one that the calendar has not."""
    if since_1970 := _EPOCH.fullmatch(entry):
        unit_ns = _EPOCH_UNIT_NS[len(since_1970[1])]
        return int(since_1970[1]) * unit_ns + int(float(f"0.{since_1970[2] or 0}") * unit_ns)
    rest = _WEEKDAY.sub("", entry.strip(), count=1)
    clock = _CLOCK.search(rest) or _COMPACT_CLOCK.search(rest)
    if clock is not None:
        # A year may follow the clock, as `date` writes it.
        rest = f"{rest[: clock.start()].rstrip(' T,_-@')} {rest[clock.end() :].lstrip(' ,')}".strip()
    parts = _day_of(rest, reading)
    if parts is None:
        return None
    try:
        day = datetime(*parts, tzinfo=UTC)
        return int((day + _after_midnight(clock)).timestamp()) * 10**9
    except (ValueError, OverflowError):
        return None


def _day_of(text: str, reading: Reading) -> tuple[int, int, int] | None:
    """Year, month and day."""
    text = text.rstrip(" T,")
    if found := _YEAR_FIRST.fullmatch(text):
        year, _, month, day, *spaced = found.groups()
        if year is None:
            year, _, month, day = spaced
        elif day is None and not found[2]:
            return None
        return int(year), int(month), int(day or 1)
    if found := _YEAR_LAST.fullmatch(text):
        first, _, second, year = found.groups()[:4] if found[1] else found.groups()[4:]
        named = {reading[0]: int(first), reading[1]: int(second)}
        return int(year if len(year) == 4 else f"20{year}"), named["month"], named["day"]
    if found := _WITH_MONTH.fullmatch(text):
        month_name = found["month"].lower()[:3]
        year, day = found["year"] or found["year_after"], found["day"] or found["day_after"]
        if month_name in _MONTHS and year is not None:
            return int(year), _MONTHS.index(month_name) + 1, int(day or 1)
    return None


def _after_midnight(clock: re.Match[str] | None) -> timedelta:
    """The clock's time, in UTC. ValueError for one that no clock shows."""
    if clock is None:
        return timedelta()
    hours, minutes, seconds, *rest = clock.groups()
    half, sign, ahead_hours, ahead_minutes = rest or (None,) * 4
    hour = int(hours) % 12 + 12 * (half.lower() == "p") if half else int(hours)
    if hour > 24 or int(minutes) > 59:
        raise ValueError(clock[0])
    ahead = timedelta(hours=int(ahead_hours or 0), minutes=int(ahead_minutes or 0)) if sign else timedelta()
    of_day = timedelta(hours=hour, minutes=int(minutes), seconds=float((seconds or "0").replace(",", ".")))
    return of_day + ahead if sign == "-" else of_day - ahead
