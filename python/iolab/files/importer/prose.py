"""Sentences that state a change: `bandwidth is improved from 466KB/s to 477KB/s`, `4K randread: 235k -> 251k IOPS`,
`randread 312k IOPS vs 287k IOPS before`; and figures under several conditions.

What stands before a change says what was measured; its settings are *before* and *after*."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from iolab.base.plain_text import counted
from iolab.files.importer.columns import MEASURED, OF_TEST
from iolab.files.importer.conditions import EXPECTED, Stated, stated_in
from iolab.files.importer.format import Format
from iolab.files.importer.listed import OF_NO_NAME, OF_SETTING, Entry, named, time_of
from iolab.files.importer.quantity_cell import SPACED_NUMBER, Quantity, quantity
from iolab.files.importer.results import Results
from iolab.files.importer.source import Line, Source

PARAGRAPH_MAX = 2000
NAME_MAX = 80
_VERB = (
    r"improv\w*|increas\w*|decreas\w*|reduc\w*|drop(?:s|ped)?|rais\w+|ris(?:es|en)|rose|went|goes|grew|fell|falls|jump\w*"
    r"|chang\w*|boost\w*|sp(?:eed(?:s|ed)? up|ed)|lower\w*|cut|up|down|regress\w*|degrad\w*"
)
"""A range has none of these: `from 120MB/s to 160MB/s`."""
_FIGURE = (
    r"(?:~|about |roughly |around |approximately )?"
    rf"(?:{SPACED_NUMBER}|\d[\d.,]{{0,20}}(?<![.,]))"
    r"(?: ?[kKMG](?= ?IOPS\b|\b))? ?"
    r"(?:[a-zA-Zµ]{0,12}(?:/s(?:ec)?\b)|[a-zA-Zµ]{1,5}\b)?"
)
_CHANGE = re.compile(
    rf"(?P<what>(?:[^.;!?]|\.(?=\d)){{1,160}}?)\s(?:(?P<verb>{_VERB})\b(?P<object>[^.;:\d]{{0,40}}?)\bfrom\s+(?P<before>{_FIGURE})\s+to\s+"
    rf"|(?P<first>{_FIGURE})\s*(?:-{{1,2}}>|=>|→)\s*)(?P<after>{_FIGURE})",
    re.IGNORECASE,
)
_PATCH = r"(?:(?:the|this|my|these|that) )?(?:patch(?:es|set)?|series|change|commits?|fix)"
_VERSUS = re.compile(
    rf"(?P<what>(?:[^.;!?]|\.(?=\d)){{1,160}}?)(?P<verb>)(?P<object>)(?P<first>)\s(?P<after>{_FIGURE})"
    rf"(?:,? now|,? (?:with|after) {_PATCH})?"
    r"(?:,? (?P<versus>vs\.?|versus|against|instead of|compared (?:to|with))|,? \(?(?:up|down) from"
    r"|,? \(?(?:was|previously))"
    rf" (?P<before>(?>{_FIGURE}))(?!\s*(?:slower|faster|higher|lower|better|worse|more|less|below|above|behind)\b)"
    rf"(?(versus)(?:(?<= )|\s)(?:before|previously|earlier|originally|without)(?: (?:it|{_PATCH}))?"
    r"(?=\s*(?:[.,;:!?()]|$|(?:and|but|so|on|in|for|at|which|while)\b)))",
    re.IGNORECASE,
)
"""A change whose later figure stands first."""
_AND = re.compile(
    rf"(?:,?\s+and|,)\s+(?P<what>(?:[^.;:!?]|\.(?=\d)){{3,80}}?)?(?P<verb>)(?P<object>)(?P<first>)\s*\bfrom\s+"
    rf"(?P<before>{_FIGURE})\s+to\s+(?P<after>{_FIGURE})",
    re.IGNORECASE,
)
"""What goes on behind such a change, without its verb: `, and the p99 latency from 8.3ms to 4.1ms`; without what was
measured, too: `and from 5 to 5.5 for writes`."""
_OF = re.compile(
    r"\s+(?:for|on|in|at|of)\s+(?:the\s+)?(?P<of>[^.,;:!?()]{2,40}?)(?=\s*(?:[.,;:!?()]|$|\band\b|\bwith(?:out)?\b))",
    re.IGNORECASE,
)
"""What was measured, behind a change: `from 10 to 12 GB/s for reads`."""
_VERB_LAST = re.compile(rf"\s+(?:{_VERB})\s*$", re.IGNORECASE)
_SIGN = re.compile(r"\bfrom\s|->|=>|→|\b(?:vs|versus|against|instead|compared|was|previously)\b", re.IGNORECASE)
"""Each change has one, and most paragraphs have none, which is found out sooner."""
_FILLER = re.compile(
    r"\b(?:the|up|down|an?|is|are|was|were|be|been|has|have|can|will|by|in|of|on|for|this|that|it|its|which|and|we|i|see|saw|patch"
    r"|commit|change|with|performance|results?|shows?|showed|about|significantly|slightly|also|now|then|nearly|almost|over"
    r"|roughly|around|does|do|get|got|gets|reach\w*|fine|though|here|there|while)\b|~?\d[\d.]*+ ?%",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\A\s*(?:[-*+•]+|\d{1,2}[.)])\s+")
_LABELLED = re.compile(r"\s*[^\s:.][^:.]{0,30}:\s+[^\s\d]{0,20}\s?\d")
"""`clients=16: 5200 tps ...`."""
_MEASURED = re.compile(rf"(?<![\w.])\d[\d.,]*+(?<=\d)(?:{MEASURED.pattern[2:]})")
_UNIT = re.compile(r"[a-zA-Zµ/]+$")


class _Change(NamedTuple):
    before: Entry
    after: Entry


class _Paragraph(NamedTuple):
    first: int
    """The number of its first line."""
    last: int
    text: str


def _paragraphs(lines: Iterable[Line]) -> Iterator[_Paragraph]:
    """What goes on from line to line; an item of a list begins anew."""
    first, last, text = 0, 0, ""
    for line in lines:
        # What is drawn is a table's.
        line = Line(line.number, "") if line.text.lstrip().startswith(("\u2502", "\u2551")) else line
        is_item = bool(_BULLET.match(line.text) or _LABELLED.match(line.text))
        begins = not line.text.strip() or is_item or len(text) > PARAGRAPH_MAX
        if begins and text:
            yield _Paragraph(first, last, text)
            text = ""
        if not text:
            first = line.number
        last = line.number
        text = f"{text} {line.text.strip()}".strip()
    if text:
        yield _Paragraph(first, last, text)


class _Read(NamedTuple):
    """What a paragraph states."""

    paragraph: _Paragraph
    changes: list[_Change]
    stated: list[Stated]
    unread: int
    """Its figures with units that are none of these."""


def _read(lines: Iterable[Line]) -> Iterator[_Read]:
    above = ""
    for paragraph in _paragraphs(lines):
        plain = _BULLET.sub("", paragraph.text, count=1)
        changes, bare, unread = [], plain, 0
        for match, change in _of_paragraph(plain, above) if _SIGN.search(plain) else ():
            bare = _without(bare, match)
            if change is not None:
                changes.append(change)
            elif match.re is _VERSUS or _has_units(match):
                unread += 2
        stated = stated_in(bare)
        if changes or stated:
            known = {f"{entry.value:.6g}" for _, entry in stated}
            measured = (quantity(found[0]) for found in _MEASURED.finditer(bare))
            unread += sum(one is not None and f"{one.value:.6g}" not in known for one in measured)
            yield _Read(paragraph, changes, stated, unread)
        else:
            above = "" if plain.rstrip().endswith(".") else plain.strip(" :*_`")[-NAME_MAX:]


def _has_units(match: re.Match[str]) -> bool:
    figures = (quantity((match[name] or "").strip()) for name in ("before", "first", "after"))
    return any(one is not None and one.metric is not None for one in figures)


def _without(text: str, match: re.Match[str]) -> str:
    return f"{text[: match.start()]}{' ' * (match.end() - match.start())}{text[match.end() :]}"


def _of_paragraph(text: str, above: str) -> Iterator[tuple[re.Match[str], _Change | None]]:
    """`above`: what the last paragraph said, for what names only the metric here. None: not known of what."""
    matches = list(_with_what_follows(text))
    unit = label = ""
    for match in matches:
        of = _of(text, match)
        goes_on = not match["what"]
        label = label if goes_on else _label(match)
        # What tells such changes apart stands behind them.
        are_apart = goes_on or any(not other["what"] for other in matches)
        here = f"{label} {of}" if are_apart or (OF_TEST.search(of) and not OF_TEST.search(label)) else label
        inherits = goes_on or (match.re is _VERSUS and bool(OF_TEST.search(label)))
        change = _change(match, here, above, unit if inherits else "")
        yield match, change
        if change is not None:
            unit, above = _unit_of(match) or unit, change.before.name if change.before.name != OF_NO_NAME else above


def _with_what_follows(text: str) -> Iterator[re.Match[str]]:
    place = 0
    while found := [match for one in (_CHANGE, _VERSUS) if (match := one.search(text, place))]:
        following: re.Match[str] | None = min(found, key=re.Match.end)
        while following is not None:
            yield following
            place = _end(following)
            of = _OF.match(text, place)
            following = _AND.match(text, of.end() if of else place)


def _end(found: re.Match[str]) -> int:
    """Where the change ends: a word behind a figure may be none of it, `5.5 for writes`."""
    after = found["after"]
    is_last = found.end("after") == found.end()
    if is_last and quantity(after) is None and quantity(bare := after.rpartition(" ")[0]) is not None:
        return found.start("after") + len(bare)
    return found.end()


def _of(text: str, found: re.Match[str]) -> str:
    of = _OF.match(text, _end(found))
    return of["of"] if of else ""


def _unit_of(found: re.Match[str]) -> str:
    """The unit of a change, for the next, which may leave it out."""
    unit = _UNIT.search(found["after"].strip())
    return unit[0] if unit else ""


def _label(found: re.Match[str]) -> str:
    what = _VERB_LAST.sub("", found["what"]).rstrip()
    *before, label = re.split(r"[,:(]\s", what) if ":" not in what[-2:] else [what]
    if not OF_TEST.search(label):
        # `With random 4k writes, 16 jobs, IOPS went ...`
        label = f"{next(filter(OF_TEST.search, reversed(before)), '')} {label}".strip()
    return f"{label} {(found['object'] or '').strip(' ,')}"


def _change(found: re.Match[str], label: str, above: str, unit: str) -> _Change | None:
    """`unit`: that of the change before, for one that states none."""
    if EXPECTED.search(label):
        return None
    before, after = (found["before"] or found["first"]).strip(), found["after"].strip()
    whole = f"1 {unit}" if unit else ""
    pair = [_with_unit(before, whole or after), _with_unit(after, whole or before)]
    plain = " ".join(_FILLER.sub(" ", label).split())
    entries = [
        None if one is None else named(label, one, is_result=_is_done(label, one)) or time_of(plain, one)
        for one in pair
    ]
    if entries[0] is None or entries[1] is None or entries[0].metric != entries[1].metric:
        return None
    name = " ".join(_FILLER.sub(" ", entries[0].name).strip(" :,-*_`").split())
    name = above if not name or entries[0].name == OF_NO_NAME else name
    first, second = (entry._replace(name=name[-NAME_MAX:] or OF_NO_NAME) for entry in entries if entry is not None)
    return _Change(first, second)


def _is_done(label: str, one: Quantity) -> bool:
    """Whether operations per second are such as were done, and none that were asked for."""
    return one.metric == "operations_per_s" and not OF_SETTING.search(label)


def _with_unit(text: str, other: str) -> Quantity | None:
    """The figure, with the other's unit if it has none."""
    # A word behind the figure may be none of it: `120K on nvme`.
    bare = text if quantity(text) else text.rpartition(" ")[0]
    own, unit = quantity(bare), _UNIT.search(other)
    if own is not None and own.metric is None and unit is not None:
        return quantity(f"{bare} {unit[0]}") or own
    return own


def _parse(source: Source, results: Results) -> None:
    known: set[tuple[str, ...]] = set()
    for one in _read(source.lines(results.problem)):
        first = one.paragraph.first
        table = results.table(first)
        pairs = [pair for change in one.changes for pair in (("before", change.before), ("after", change.after))]
        entries = [*pairs, *one.stated]
        keys = {(setting, entry.name, entry.op, entry.metric) for setting, entry in entries}
        # What another paragraph states is no round of it.
        again = f" in line {first}" if keys & known else ""
        known |= keys
        for setting, entry in entries:
            table.row(setting, f"{entry.name}{again}").add(entry.metric, entry.value, op=entry.op)
        results.lines_read |= set(range(one.paragraph.first, one.paragraph.last + 1))
        if one.unread:
            of = counted(one.unread, "figure of these sentences is", "figures of these sentences are")
            results.problem(f"{of} not read", first)
    results.problem("figures that sentences state are read; check them against the text")


def _recognises(source: Source) -> bool:
    return any(True for _ in _read(Line(number, text) for number, text in enumerate(source.text_lines, 1)))


FORMAT = Format(
    name="prose",
    help="sentences that state a change from one figure to another, or figures under several conditions",
    recognises=_recognises,
    parse=_parse,
    words=("improved from", "reduced from", "IOPS to"),
    is_written=True,
)
