"""Durations as people and tools write them: `7m30s`, `1h2m`, `2 minutes 18.17 seconds`, `0:27.27`."""

from __future__ import annotations

import re

from iolab.files.importer.written_number import number

_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_PARTS = re.compile(
    rf"(?:(?P<days>\d{{1,4}}) ?d(?:ays?)?,? ?)?(?:(?P<hours>{_NUMBER}) ?h(?:(?:ou)?rs?)?,? ?)?"
    rf"(?:(?P<minutes>{_NUMBER}) ?(?:m|(?P<is_sure>min(?:ute)?s?)),? ?)?"
    rf"(?:(?:and )?(?P<seconds>{_NUMBER}) ?s(?:ec(?:ond)?s?)?)?"
)
_CLOCK = re.compile(r"(?:(?P<hours>\d{1,4}):)?(?P<minutes>\d{1,5}):(?P<seconds>\d\d(?:\.\d{1,9})?)(?P<unit> ?min)?")
_WITHIN = re.compile(
    r"(?<![\w.:/-])(?:(?:\d[\d.]{0,12} ?[dhm][a-z]{0,6},? {0,2}(?:and )?){1,3}\d[\d.]{0,12} ?s[a-z]{0,6}"
    r"|\d{1,5}h ?\d{1,2}m|\d{1,5}:\d\d\.\d{1,9})(?![\w.:/])"
)
_SECONDS = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
STATED = re.compile(r"(?:\b|_)(?:time|duration|elapsed|runtime|took)(?:\b|_)", re.IGNORECASE)
"""In a name: its figures are durations."""


def seconds(text: str, *, is_duration: bool = False) -> float | None:
    """A duration in seconds; None for anything else, and for what may be something else: `7m` may be seven millions,
    and `10:32:05` a time of day, if it is not known to be a duration (`is_duration`). `07:19` is never sure."""
    if clock := _CLOCK.fullmatch(text):
        is_sure = clock["unit"] or (clock["hours"] is None and "." in clock["seconds"])
        found, known = clock, is_sure or (is_duration and (clock["hours"] or "." in clock["seconds"]))
    elif parts := _PARTS.fullmatch(text):
        given = [name for name in _SECONDS if parts[name]]
        is_sure = len(given) > 1 or parts["is_sure"] or parts["hours"]
        found, known = parts, given != ["seconds"] and (is_sure or (is_duration and given))
    else:
        return None
    if not known:
        return None
    groups = found.groupdict()
    return sum(float(groups.get(name) or 0) * each for name, each in _SECONDS.items())


def clock_s(text: str) -> float | None:
    """`1:02:03` or `2:03.45` -> seconds."""
    seconds = 0.0
    for part in text.split(":"):
        value = number(part)
        if value is None:
            return None
        seconds = 60 * seconds + value
    return seconds


def in_seconds(text: str) -> str:
    """The text with the durations in it that are sure written as seconds: `borg: 7m30s` -> `borg: 450.0 s`."""
    return _WITHIN.sub(_spelled, text)


def _spelled(found: re.Match[str]) -> str:
    value = seconds(" ".join(found[0].split()))
    return found[0] if value is None else f"{value:.9g} s"
