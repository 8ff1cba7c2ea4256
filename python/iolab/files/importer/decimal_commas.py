"""Figures with a decimal comma, as much of Europe writes them, in texts: `0,034 ms`, `2.812,96 MB/s`. Files of values
that separators part are read elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

CELLS_MIN = 2
"""Figures without units, with nothing else in their columns, that show how the text writes figures. Chosen."""
_UNIT = (
    r" ?(?:[kKMGT]?i?B(?:/s(?:ec)?)?|[mnu\u00b5\u03bc]?s(?:ec(?:onds?)?|ek(?:unden?)?)?"
    r"|[kM]?IOPS|(?:IO|op)s?/s|%)(?![\w/])"
)
_IN_CELL = r"(?:(?<=\s\s)|(?<=[\t;>])|(?<=\| )|(?<=\u00b1 ))"
_CERTAIN = r"(?:0,\d+|[1-9]\d*,(?:\d{1,2}|\d{4,})|\d{1,3}(?:\.\d{3})+,\d+)"
"""Figures whose comma parts no thousands."""
_ANY = r"(?:\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d+)"
_POINTED = r"(?:\d+\.(?:\d{1,2}|\d{4,})|\d{1,3}(?:,\d{3})+\.\d+|\d{1,3}(?:,\d{3}){2,})"


def _measured(figure: str) -> str:
    return rf"(?<=[\s(:=|~<>;])(?<!\d,\s){figure}(?={_UNIT})"


def _in_cell(figure: str) -> str:
    return rf"{_IN_CELL}[-+]?{figure}(?= ?%?(?:\s\s|[\t;<]|\s*\||\s*$| ?\u00b1))"


_CERTAIN_MEASURED = re.compile(_measured(_CERTAIN))
_CERTAIN_IN_CELL = re.compile(_in_cell(_CERTAIN))
_CERTAIN_IN_BARS = re.compile(rf"(?<=\| ){_CERTAIN}(?=\s*\|)")
_CERTAIN_ANYWHERE = re.compile(f"{_measured(_CERTAIN)}|{_CERTAIN_IN_BARS.pattern}")
_ANYWHERE = re.compile(f"{_measured(_ANY)}|{_in_cell(_ANY)}")
_WITH_POINTS = re.compile(rf"{_measured(_POINTED)}|{_in_cell(_POINTED)}|=\s*\d+\.\d")
_SEPARATED = re.compile(r"[^;\t]*+[;\t]")


def pattern_of(lines: Sequence[str]) -> re.Pattern[str] | None:
    """The figures of the text whose comma is a decimal one: those that can be nothing else; and all, if some are and
    none has a decimal point. None if there are none."""
    texts = [line for line in lines if "," in line or "." in line]
    measured = any(map(_CERTAIN_MEASURED.search, texts))
    cells = sum(len(_CERTAIN_IN_CELL.findall(text)) for text in texts)
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    if (not measured and cells < CELLS_MIN) or _SEPARATED.match(first):
        return None
    if not any(map(_WITH_POINTS.search, texts)):
        return _ANYWHERE
    in_bars = sum(len(_CERTAIN_IN_BARS.findall(text)) for text in texts)
    return _CERTAIN_MEASURED if in_bars < CELLS_MIN else _CERTAIN_ANYWHERE


def with_points(text: str, commas: re.Pattern[str] | None) -> str:
    """The line with a decimal point in place of each such comma, and nothing between thousands."""
    if commas is None:
        return text
    return commas.sub(lambda found: found[0].replace(".", "").replace(",", "."), text)
