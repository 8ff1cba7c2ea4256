"""Figures that a sentence states under several conditions: `it's 182 MB/s with mq-deadline and 179 MB/s with noop`,
`on 5.4 we got 1.2 GB/s, on 5.15 it is 900 MB/s`. The conditions are settings.

A condition stands right behind its figure, or before it; in all figures of a sentence alike, else it is not sure which
belongs to which."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from iolab.domain.metric import ALL
from iolab.files.importer.columns import CHANGES, OF_TEST, SETTINGS
from iolab.files.importer.durations import in_seconds
from iolab.files.importer.listed import OF_NO_NAME, OF_SETTING, Entry, named
from iolab.files.importer.quantity_cell import SPACED_NUMBER, Quantity, quantity

GAP_WORDS_MAX = 4
"""Between a figure and the condition right behind it: `95 MB/s of writes with ext4`. Chosen, as the words below are."""
NAME_MAX = 80
_UNIT = (
    r"(?:(?:[kKM] ?)?IOPS|[kKMGT]?i?(?:B(?:/s(?:ec)?|ps)|bits?/s)|[nuµm]s(?:ec)?|(?:milli|micro)seconds"
    r"|(?:ops|files|req)/s(?:ec)?"
    r"|(?:k ?)?[tqr]ps)\b"
)
_NUMBER = rf"(?P<number>{SPACED_NUMBER}|\d++(?>(?:[.,]\d++)*))"
_FIGURE = re.compile(rf"(?<![\w.-])~?{_NUMBER} ?(?P<unit>{_UNIT})", re.IGNORECASE)
_LONG = re.compile(rf"(?<![\w.-])~?{_NUMBER} ?(?P<unit>s(?:ec(?:ond)?s?)?|min(?:ute)?s?)\b", re.IGNORECASE)
_TOOK = re.compile(r"\b(?:took|takes?|needed|needs|finish\w*|complet\w*)\b", re.IGNORECASE)
"""Before a time that something lasted."""
_BARE_BEFORE = re.compile(
    rf"(?:\b(?:vs\.?|versus|against|and|but|or)|,)\s+(?:only |just |about )?{_NUMBER}(?P<prefix>[kM]?)\s+$",
    re.IGNORECASE,
)
"""A figure without a unit, right before a condition."""
_BARE = re.compile(
    r"(?>(?:\s|,|:|it'?s?\b|is\b|i get\b|we get\b|only\b|about\b|just\b|~)*)(?P<number>\d++(?>(?:[.,]\d++)*))"
    r"(?=\s*(?:[.,;!?)]|$|and\b))",
    re.IGNORECASE,
)
"""A figure without a unit, right behind a condition."""
_ENDS = (
    r"(?=\s*(?:[,;:!?()]|\.(?!\d)|$)|\s+(?:it|it's|that's|is|was|are|were|we|i|you|they|this|that|the|dd|fio|gives?|gets?|got|yields?"
    r"|reach\w*|does|did|do|has|have|had|and|or|with|without|using|under|on|in|for|vs|versus|but|while|whereas|compared|than|to|at|against|from|only|about"
    r"|around|roughly)\b|\s+~?\d[\d.,]* ?" + _UNIT + r"|\s+~?\d{2,}+(?=\s*(?:[,;!?)]|\.(?!\d)|$|and\b)))"
)
_NAME = r"[\w+/=-]+(?:\.[\w+/=-]+)*"
_ATTAINS = (
    r"gets?|got|reach(?:es|ed)|does|did|manages?d?|hits?|deliver(?:s|ed)|achieves?d?"
    r"|yields?|gives|gave|(?:peaks|runs|reads?|writes?) at"
)
_OF_SUBJECT = rf"(?!(?:with(?:out)?|using|under|on|in|for|via|over|i|we|it|you|they|get|gets|got)\b){_NAME}"
_CONDITION = re.compile(
    r"\b(?P<how>with(?:out)?|w/o|w/|using|under|on|in|for|via|over)\s+(?:(?:the|an?|my|our|this|same|linux)\s+)*"
    rf"(?P<name>{_NAME}(?: {_NAME}){{0,3}}?){_ENDS}"
    rf"|(?P<alone>\b(?:{CHANGES}|{SETTINGS})\b)(?!-)"
    r"|(?<=[\w)] )\((?P<inside>[^()\d][^()]{1,30})\)"
    r"|(?:(?<=^)|(?<=[,;] )|(?<=\band )|(?<=\bbut )|(?<=\bwhile ))"
    r"(?:(?:so|well|now|here|and|but|while|whereas),? )?(?:(?:the|an?|my|our|old|new) )?"
    rf"(?P<subject>{_OF_SUBJECT}(?: {_OF_SUBJECT}){{0,3}}?)"
    rf"(?= (?:(?:only|just|still) )?(?:{_ATTAINS}) (?:(?:only|about|around|just|up to|roughly) )?~?\d)",
    re.IGNORECASE,
)
_NO_SUBJECT = re.compile(r"(?:.* )?(?:i|we|it|you|they|he|she|that|this|which|fio|dd|test|drive|disk)", re.IGNORECASE)
_OF_WAY = re.compile(
    r"(?:(?:random|sequential|seq|rand) )?(?:reads?|writes?|reading|writing|both|average|comparison|total|example)",
    re.I,
)
"""What was measured, and no condition."""
_SENTENCE = re.compile(
    r"(?<=[^\d\s][.!?])(?<!\bvs\.)(?<!\bca\.)(?<!\bavg\.)(?<!\bapprox\.)\s+(?=[^a-z\s])|(?<=\d[.!?])\s+(?=[A-Z])"
)
_APART = re.compile(r"[,;:]|[.!?](?=\s|$)|\b(?:and|but|while|whereas|vs|versus|or)\b", re.IGNORECASE)
_LABEL = re.compile(r"\s*(?P<name>[^\s:.][^:.]{0,30}):\s*")
"""What stands alone before a sentence's figures."""
_SPEAKS = re.compile(r"\b(?:you|we|i|it|they|he|she)\b", re.IGNORECASE)
"""A clause, and no name."""
_FILLER = re.compile(
    r"\b(?:the|an?|is|are|was|were|be|i|we|it's|its|it|get|got|see|saw|with|in|on|of|for|by|my|our|about|around|test(?:ed|s)?|me|this"
    r"|that|results?|reach\w*|does|do|only|but|throughput|bandwidth|speed|performance|gives?|measured|shows?|and|so|now|then|here|have|has)\b",
    re.IGNORECASE,
)


EXPECTED = re.compile(
    r"\b(?:should|rated|spec(?:s|ification\w*)?|advertis\w*|expect\w*|theoretical\w*|up to|claim\w*|limit\w*"
    r"|supposed|hop(?:e|ing)|wants?|needs?|targets?|requir\w*|would|could|capable|capped|throttle\w*)\b",
    re.IGNORECASE,
)
"""A sentence of what was asked for, or wished."""
_KINDS = (
    ("with", "without", "using"),
    ("",),
    *((one,) for one in ("on", "in", "under", "for")),
    ("via", "over"),
    ("()",),
    ("on", "in"),
    ("subject",),
)
"""How conditions of one sentence stand in it."""


class Stated(NamedTuple):
    """A figure under a condition."""

    setting: str
    entry: Entry


class _Token(NamedTuple):
    start: int
    end: int
    condition: str | None
    how: str = ""
    figure: Quantity | None = None


def stated_in(paragraph: str) -> list[Stated]:
    """What the sentences of a paragraph say, where a measurement has figures under two conditions or more."""
    if not _FIGURE.search(paragraph) and not _TOOK.search(paragraph):
        return []
    found = [one for sentence in _SENTENCE.split(paragraph) for one in _of_sentence(sentence)]
    by_measurement: dict[tuple[str, str, str], list[Stated]] = {}
    for one in found:
        by_measurement.setdefault((one.entry.name, one.entry.op, one.entry.metric), []).append(one)
    known: list[Stated] = []
    for of_one in by_measurement.values():
        settings = [one.setting for one in of_one]
        if len(set(settings)) == len(settings) > 1:
            known += of_one
    return known


def _of_sentence(text: str) -> Iterator[Stated]:
    if EXPECTED.search(text):
        return
    text = in_seconds(text)
    tokens = _tokens(text)
    for kind in _KINDS:
        of_kind = [one for one in tokens if one.figure is not None or one.how in kind]
        if pairs := _pairs(text, of_kind):
            break
    else:
        return
    settings = _settings([of for of, _ in pairs])
    head = text[: min(min(of.start, of_kind[place].start) for of, place in pairs)]
    entries = [
        _entry(head, _before(text, of_kind, place), _tail(text, of_kind, place), of_kind[place].figure)
        for _, place in pairs
    ]
    # What stands behind one figure alone is said of all.
    known = {(one.name, one.op) for one in entries if one is not None and one.name != OF_NO_NAME}
    name, op = known.pop() if len(known) == 1 else (None, ALL)
    for setting, entry in zip(settings, entries, strict=True):
        if entry is not None:
            yield Stated(setting, entry if name is None else entry._replace(name=name, op=op))


def _pairs(text: str, tokens: list[_Token]) -> list[tuple[_Token, int]]:
    """The condition of each figure, with the figure's place; empty if it is not sure."""
    figures = [place for place, one in enumerate(tokens) if one.figure is not None]
    behind = [_is_behind(text, tokens, place) for place in figures]
    if len(figures) < 2 or len(set(behind)) > 1:
        return []
    pairs = []
    for place in figures:
        of = tokens[place + 1] if behind[0] else next((one for one in reversed(tokens[:place]) if one.condition), None)
        if of is None:
            return []
        pairs.append((of, place))
    return pairs if len({(of.condition, of.how) for of, _ in pairs}) > 1 else []


def _entry(head: str, before: str, tail: str, figure: Quantity | None) -> Entry | None:
    """What a figure is: by what stands around it, else by the beginning of its sentence."""
    if figure is None:
        return None
    around = f"{before} {tail}"
    if figure.metric == "ns" and (took := _TOOK.search(head)):
        plain = " ".join(_FILLER.sub(" ", head[: took.start()]).split()).strip(" :,-")
        return Entry(plain[-NAME_MAX:] or OF_NO_NAME, ALL, "elapsed_s", figure.value / 1e9)
    says = OF_TEST.search(tail) or OF_TEST.search(before)
    for label in (f"{head} {around}",) if not says and OF_TEST.search(head) else (around, f"{head} {around}"):
        is_result = figure.metric == "operations_per_s" and not OF_SETTING.search(label)
        if (entry := named(label, figure, is_result=is_result)) is not None:
            last = re.split(r"[,:(;]\s", entry.name)[-1]
            name = _FILLER.sub(" ", last if OF_TEST.search(last) else entry.name)
            name = " ".join(name.strip(" :;,.-*_`()").split())
            of_head = _LABEL.fullmatch(head)
            nameless = of_head["name"] if of_head and not _SPEAKS.search(of_head["name"]) else OF_NO_NAME
            return entry._replace(name=name[-NAME_MAX:] if OF_TEST.search(name) else nameless)
    return None


def _tail(text: str, tokens: list[_Token], place: int) -> str:
    """What follows a figure up to the next figure, condition or comma."""
    end = tokens[place + 1].start if place + 1 < len(tokens) else len(text)
    return _APART.split(text[tokens[place].end : end])[0]


def _before(text: str, tokens: list[_Token], place: int) -> str:
    """What stands before a figure since the figure, the condition or the comma before."""
    start = tokens[place - 1].end if place else 0
    return _APART.split(text[start : tokens[place].start])[-1]


def _is_behind(text: str, tokens: list[_Token], place: int) -> bool:
    """Whether a figure's condition stands right behind it."""
    if place + 1 == len(tokens) or tokens[place + 1].condition is None:
        return False
    between = text[tokens[place].end : tokens[place + 1].start]
    return not _APART.search(between) and len(between.split()) <= GAP_WORDS_MAX


def _settings(conditions: Iterable[_Token]) -> list[str]:
    """What they are called; `with` and `without` are part of the name if they are what differs."""
    found = list(conditions)
    names = {one.condition for one in found}
    ways = {one.how for one in found}
    by_way = len(names) < len(ways)
    return [f"{one.how.strip('()')} {one.condition}".strip() if by_way else str(one.condition) for one in found]


def _tokens(text: str) -> list[_Token]:
    figures = [
        _Token(found.start(), found.end(), None, figure=one)
        for found in (*_FIGURE.finditer(text), *(_LONG.finditer(text) if _TOOK.search(text) else ()))
        if (one := quantity(f"{found['number']} {found['unit']}")) is not None
    ]
    tokens = list(figures)
    for found in _CONDITION.finditer(text):
        subject = found["subject"] if found["subject"] and not _NO_SUBJECT.fullmatch(found["subject"]) else None
        name = found["name"] or (found["alone"] or "").lower() or found["inside"] or subject
        if name is None:
            continue
        is_over = any(found.start() < one.end and one.start < found.end() for one in figures)
        if is_over or _OF_WAY.fullmatch(name) or name.isdecimal() or _FIGURE.match(name):
            continue
        how = {"w/o": "without", "w/": "with"}.get((found["how"] or "").lower(), (found["how"] or "").lower())
        tokens.append(
            _Token(found.start(), found.end(), name.strip(), "()" if found["inside"] else "subject" if subject else how)
        )
    tokens.sort()
    return _with_bare(text, tokens)


def _with_bare(text: str, tokens: list[_Token]) -> list[_Token]:
    """With figures that leave out the unit of the one before: `with noop it's 179`."""
    units = [found["unit"] for found in _FIGURE.finditer(text)]
    made: list[_Token] = []
    for place, one in enumerate(tokens):
        made.append(one)
        follows = tokens[place + 1] if place + 1 < len(tokens) else None
        if one.condition is None or not any(other.figure for other in made) or len(set(units)) != 1:
            continue
        start = tokens[place - 1].end if place else 0
        if before := _BARE_BEFORE.search(text, start, one.start):
            unit = re.sub(r"^[kM] ?", "", units[0]) if before["prefix"] else units[0]
            figure = quantity(f"{before['number']} {before['prefix']}{unit}")
            made.insert(-1, _Token(before.start("number"), before.end("prefix"), None, figure=figure))
            continue
        bare = _BARE.match(text, one.end)
        if bare and (follows is None or bare.end() <= follows.start):
            made.append(_Token(bare.start("number"), bare.end(), None, figure=quantity(f"{bare['number']} {units[0]}")))
    return made
