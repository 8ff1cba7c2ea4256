"""Sentences that state a change: `bandwidth is improved from 466KB/s to 477KB/s`, `4K randread: 235k -> 251k IOPS`.

What stands before it says what was measured; the settings are *before* and *after*."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from iolab.files.importer.format import Format
from iolab.files.importer.listed import OF_NO_NAME, OF_SETTING, Entry, named
from iolab.files.importer.quantity_cell import Quantity, quantity
from iolab.files.importer.results import Results
from iolab.files.importer.source import Line, Source

PARAGRAPH_MAX = 2000
NAME_MAX = 80
_VERB = (
    r"improv\w*|increas\w*|decreas\w*|reduc\w*|drop(?:s|ped)?|rais\w+|ris(?:es|en)|rose|went|goes|grew|fell|falls|jump\w*"
    r"|chang\w*|boost\w*|sp(?:eed\w*|ed)|lower\w*|cut|up|down|regress\w*|degrad\w*"
)
"""A range has none of these: `from 120MB/s to 160MB/s`."""
_FIGURE = (
    r"(?:~|about |roughly |around |approximately )?\d[\d.,]{0,20}(?<![.,])(?: ?[kKMG](?= ?IOPS\b|\b))? ?"
    r"(?:[a-zA-Zµ]{0,5}(?:/s(?:ec)?\b)|[a-zA-Zµ]{1,5}\b)?"
)
_CHANGE = re.compile(
    rf"(?P<what>[^.;!?]{{3,160}}?)\s(?:(?P<verb>{_VERB})\b(?P<object>[^.;:\d]{{0,40}}?)\bfrom\s+(?P<before>{_FIGURE})\s+to\s+"
    rf"|(?P<first>{_FIGURE})\s*(?:-{{1,2}}>|=>|→)\s*)(?P<after>{_FIGURE})",
    re.IGNORECASE,
)
_AND = re.compile(
    rf"(?:,|,?\s+and)\s+(?P<what>(?:[^.;:!?]|\.(?=\d)){{3,80}}?)(?P<verb>)(?P<object>)(?P<first>)\s+from\s+(?P<before>{_FIGURE})"
    rf"\s+to\s+(?P<after>{_FIGURE})",
    re.IGNORECASE,
)
"""What goes on behind such a change, without its verb: `, and the p99 latency from 8.3ms to 4.1ms`."""
_SIGN = re.compile(r"\bfrom\s|->|=>|→", re.IGNORECASE)
"""Each change has one, and most paragraphs have none, which is found out sooner."""
_FILLER = re.compile(
    r"\b(?:the|up|down|an?|is|are|was|were|be|been|has|have|can|will|by|in|of|on|for|this|that|it|its|which|and|we|i|see|saw|patch"
    r"|commit|change|with|performance|results?|shows?|showed|about|significantly|slightly|also|now|then)\b",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\A\s*(?:[-*+•]+|\d{1,2}[.)])\s+")
_UNIT = re.compile(r"[a-zA-Zµ/]+$")


class _Change(NamedTuple):
    line: int
    before: Entry
    after: Entry


def _paragraphs(lines: Iterable[Line]) -> Iterator[tuple[int, str]]:
    """What goes on from line to line, each with the number of its first; an item of a list begins anew."""
    number, text = 0, ""
    for line in lines:
        begins = not line.text.strip() or bool(_BULLET.match(line.text)) or len(text) > PARAGRAPH_MAX
        if begins and text:
            yield number, text
            text = ""
        if not text:
            number = line.number
        text = f"{text} {line.text.strip()}".strip()
    if text:
        yield number, text


def _changes(lines: Iterable[Line]) -> Iterator[_Change]:
    above = ""
    for number, text in _paragraphs(lines):
        plain = _BULLET.sub("", text, count=1)
        matches = _with_what_follows(plain) if _SIGN.search(plain) else ()
        found = [one for match in matches if (one := _change(number, match, above)) is not None]
        yield from found
        if not found:
            above = plain.strip(" :*_`")[-NAME_MAX:]


def _with_what_follows(text: str) -> Iterator[re.Match[str]]:
    for match in _CHANGE.finditer(text):
        following: re.Match[str] | None = match
        while following is not None:
            yield following
            following = _AND.match(text, following.end())


def _change(line: int, found: re.Match[str], above: str) -> _Change | None:
    """`above`: what the last paragraph said, if this one only names the metric."""
    before, after = (found["before"] or found["first"]).strip(), found["after"].strip()
    pair = [_with_unit(before, after), _with_unit(after, before)]
    label = re.split(r"[,:(]\s", found["what"])[-1] if ":" not in found["what"][-2:] else found["what"]
    label = f"{label} {(found['object'] or '').strip(' ,')}"
    entries = [None if one is None else named(label, one, is_result=_is_done(label, one)) for one in pair]
    if entries[0] is None or entries[1] is None or entries[0].metric != entries[1].metric:
        return None
    name = " ".join(_FILLER.sub(" ", entries[0].name).strip(" :,-*_`").split())
    name = above if not name or entries[0].name == OF_NO_NAME else name
    first, second = (entry._replace(name=name[-NAME_MAX:] or OF_NO_NAME) for entry in entries if entry is not None)
    return _Change(line, first, second)


def _is_done(label: str, one: Quantity) -> bool:
    """Whether operations per second are such as were done, and none that were asked for."""
    return one.metric == "operations_per_s" and not OF_SETTING.search(label)


def _with_unit(text: str, other: str) -> Quantity | None:
    """The figure, with the other's unit if it has none."""
    # A word behind the figure may be none of it: `120K on nvme`.
    own = quantity(text) or quantity(text.rpartition(" ")[0])
    unit = _UNIT.search(other)
    if own is not None and own.metric is None and unit is not None:
        return quantity(f"{text} {unit[0]}") or own
    return own


def _parse(source: Source, results: Results) -> None:
    for one in _changes(source.lines(results.problem)):
        table = results.table(one.line)
        for setting, entry in (("before", one.before), ("after", one.after)):
            table.row(setting, entry.name).add(entry.metric, entry.value, op=entry.op)
    results.problem("changes that sentences state are read; check them against the text")


def _recognises(source: Source) -> bool:
    return any(True for _ in _changes(Line(number, text) for number, text in enumerate(source.text_lines, 1)))


FORMAT = Format(
    name="prose",
    help="sentences that state a change from one figure to another",
    recognises=_recognises,
    parse=_parse,
    words=("improved from", "reduced from", "IOPS to"),
)
