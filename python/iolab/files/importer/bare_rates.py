"""Rates without a thing, such as `1.2 M/s`, where the text says what they count: operations, or bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence

_COUNTED = (
    r"(?:iops|i/os?|op(?:eration)?s|requests|reqs|queries|lookups|creates|deletes|inserts|transactions|txns?|commits"
    r"|events|f?syncs|messages|msgs|keys|records|rows|objects|files)"
)
_BESIDE = re.compile(
    rf"(?P<before>\b{_COUNTED}\b[^,;\d]{{0,20}}?(?:[\d.,]+ ?)?)(?<![A-Za-z])(?P<prefix>[kKMG])/s(?:ec)?(?![\w/])"
    rf"|(?P<figure>\d ?)(?P<other>[kKMG])/s(?:ec)?(?= (?:of )?{_COUNTED}\b)",
    re.IGNORECASE,
)
"""`lookups (M/s)`, `lookups: 1.2 M/s`, `1.2 M/s lookups`."""
_SPELLED = re.compile(
    rf"\b(?P<thing>{_COUNTED}|op|file|message|request|transaction|event|object|record|operation)(?<!s)s?/second\b",
    re.IGNORECASE,
)
"""`messages/second`."""
_PER_SECOND = re.compile(r"(?<=[(\[])(?P<unit>[kKMG]i?B)ps(?=[)\]])")
"""`(KBps)`, where it is a unit alone."""
_LEGEND = re.compile(
    r"(?<![\w/])[kKMG]/s\b[\"'`]?\s*(?:=|:|is|are|means?|stands for)\s*(?P<what>[^.;,]{1,40})", re.IGNORECASE
)
_ANY = re.compile(r"(?<=[\d\s(\[])(?P<prefix>[kKMG])/s(?:ec)?(?![\w/])")
_THINGS = (
    (re.compile(rf"\b{_COUNTED}\b", re.IGNORECASE), "ops"),
    (re.compile(r"MiB|mebibytes?|2\^20", re.IGNORECASE), "iB"),
    (re.compile(r"MB|megabytes?|bytes?|10\^6", re.IGNORECASE), "B"),
)


def thing_of(lines: Sequence[str]) -> str:
    """What the text says that all such rates count: `ops`, `iB` or `B`; empty if it does not say."""
    said = {thing for line in lines if (found := _LEGEND.search(line)) and (thing := _thing_in(found["what"]))}
    return said.pop() if len(said) == 1 else ""


def _thing_in(text: str) -> str:
    return next((thing for pattern, thing in _THINGS if pattern.search(text)), "")


def spelled_out(text: str, thing: str) -> str:
    """The line with what its bare rates count, and with `/s` for a second in units."""
    if "/s" not in text and "Bps" not in text:
        return text
    text = _SPELLED.sub(r"\g<thing>s/s", _PER_SECOND.sub(r"\g<unit>/s", text))
    text = _BESIDE.sub(lambda one: f"{one['before'] or one['figure']}{one['prefix'] or one['other']}ops/s", text)
    return _ANY.sub(rf"\g<prefix>{thing}/s", text) if thing and not _LEGEND.search(text) else text
