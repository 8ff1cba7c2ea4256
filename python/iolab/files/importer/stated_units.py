"""Lines that say which unit the figures of tables have: `(all in MB/s)`, `Numbers are kIOPS, higher is better.`"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from iolab.files.importer.columns import MEASURED, stated_in
from iolab.files.importer.source import Line

_BETTER = re.compile(
    r"\W{0,4}\b(?:lower|higher|smaller|bigger|larger|more|less|fewer) (?:is|are) better\b\W{0,4}", re.IGNORECASE
)
_CAPTION = re.compile(r"\s*(?:[A-Za-z\d][\w(),/-]{0,20} ){0,5}[\w(),/]{1,10}[.:]?\s*")
"""`Random read IOPS.`, right below a table."""
_SENTENCE = re.compile(r"(?<=[.!?)])\s+(?=[A-Z(])")
_STATEMENT = re.compile(
    r"[\s(\[*_-]*+(?:note:? )?(?>(?:(?:all|the|these|above) )*)"
    r"(?P<what>(?:numbers?|values?|figures?|units?|results?|cells?|entries|columns|measurements?|data|times?|rates?"
    r"|(?:p\d\d(?:\.\d+)? |mean |avg |average )?latenc(?:y|ies)|throughputs?|bandwidths?)\b)?"
    r"(?: (?:here|above|below|in the table))?(?P<are>[,:=]| is| are)?(?>(?: (?:all|given|reported|shown|measured))*)"
    r"(?P<within> in| as)?:? ?(?P<unit>[A-Za-z\u00b5][A-Za-z\u00b5/ ]{0,40}?)(?:, [^.]{1,40})?[\s)\].:*_]*+$",
    re.IGNORECASE,
)


class StatedUnits:
    """Those of a text."""

    def __init__(self, lines: Iterable[Line]) -> None:
        written = [line for line in lines if line.text.strip()]
        self._numbers = [line.number for line in written]
        self._units: dict[int, str] = {}
        self._captions = {line.number: unit for line in written if (unit := _caption_in(line.text))}
        above = ""
        for line in written:
            # A sentence may go on from the line above.
            if unit := _unit_in(line.text) or _unit_in(f"{above} {line.text}"):
                self._units[line.number] = unit
            above = line.text

    def below(self, last: int) -> str:
        """What the line right below a table, by its `last` one, says, or the only such line of the text: as a header
        has it, `(MB/s)`; empty without one."""
        units = set(self._units.values())
        place = bisect_right(self._numbers, last)
        below = next(iter(self._numbers[place : place + 1]), 0)
        return units.pop() if len(units) == 1 else self._units.get(below) or self._captions.get(below, "")


def _caption_in(text: str) -> str:
    return stated_in(text) if _CAPTION.fullmatch(text) and not MEASURED.search(text) else ""


def _unit_in(text: str) -> str:
    for sentence in _SENTENCE.split(_BETTER.sub("", text)):
        found = _STATEMENT.fullmatch(sentence)
        is_short = found is not None and (" " not in found["unit"] or sentence.strip()[:1] in "([")
        if found is not None and (found["what"] or found["within"] or is_short):
            what = found["what"] or ""
            return stated_in(f"{what} in {found['unit']}") or stated_in(f"{what} ({found['unit']})")
    return ""
