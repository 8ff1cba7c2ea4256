"""Cells, captions and numbers of text tables as people post them."""

from __future__ import annotations

import math
import re

from iolab.base.errors import InputError
from iolab.files.importer.source import Line, Source

NUMBER_CHARS_MAX = 64
"""As many as a double holds."""
QUOTED_MAX = 40
ABSENT = frozenset(("-", "n/a", "na", "nan", "-nan", "inf", "***"))
CAPTION_LENGTH_MAX = 60
TEXT_AMONG_NUMBERS_MAX = 0.34

_NUMBER = re.compile(r"[-+]?(?:[1-9]\d{0,2}(?:,\d{3})+|(?=\.?\d)\d*)(?:\.\d*)?(?:[eE][-+]?\d+)?", re.ASCII)
_MAIL = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$")
_SECTION = re.compile(r"\*{2,}+\s*(?P<title>[^*(:]+)")
_FILLER = re.compile(r"^(?:and )?(?:for |with )?(?:the )?", re.IGNORECASE)
_RULE = re.compile(r"[-=+|\s]+$")


def number(word: str) -> float | None:
    """`1,234.5` -> 1234.5, `4.95%` -> 4.95. None for what is no number, longer than 64 characters, or too large for a
    double: every importer reads numbers here, so that each that it gets is finite."""
    if len(word) > NUMBER_CHARS_MAX:
        return None
    bare = word.rstrip("%")
    if not _NUMBER.fullmatch(bare):
        return None
    value = float(bare.replace(",", ""))
    return value if math.isfinite(value) else None


def is_number(word: str) -> bool:
    """Whether `number` reads it; a percent sign is none of it."""
    return not word.endswith("%") and number(word) is not None


def numbers(source: Source, line: Line, words: list[str], columns: list[str]) -> list[float | None] | None:
    """The cells of a row, None if a dash stands for a missing one; None altogether if the line is no row.

    InputError when most cells are numbers and one is text: the row is meant to be one.
    """
    if len(words) != len(columns):
        return None
    cells: list[float | None] = []
    wrong: list[int] = []
    for place, word in enumerate(words):
        if word.lower() in ABSENT:
            cells.append(None)
        else:
            cells.append(number(word))
            if cells[-1] is None:
                wrong.append(place)
    if wrong and len(wrong) <= TEXT_AMONG_NUMBERS_MAX * len(words):
        place = wrong[0]
        raise InputError(
            f"'{words[place][:QUOTED_MAX]}' is not a number",
            where=f"{source.name}:{line.number}, column {columns[place][:QUOTED_MAX]}",
        )
    return None if wrong or all(cell is None for cell in cells) else cells


def is_rule(line: Line) -> bool:
    """A line of dashes between header and rows."""
    return bool(line.text.strip()) and bool(_RULE.match(line.text.strip()))


def is_rest_of_row(line: Line, columns: int) -> bool:
    """Whether the line starts as a row of so many columns, and is cut off."""
    cells = [word for word in line.words if number(word) is not None]
    return 0 < len(line.words) <= columns and len(cells) >= 1 and len(cells) >= len(line.words) - 2


class Captions:
    """The heading under which a table stands: a short line that ends in a colon right above it, or a `*** section`."""

    def __init__(self) -> None:
        self.section: str | None = None
        self.caption: str | None = None

    @property
    def current(self) -> str | None:
        """The caption for a table that begins here; None if there is none."""
        return self.caption or self.section

    def read(self, line: Line, *, in_table: bool = False) -> None:
        """Takes the next line; blank ones and those of a table leave the heading in force."""
        text = line.text.strip()
        if _MAIL.match(text):
            self.section = self.caption = None
        elif found := _SECTION.match(text):
            self.section, self.caption = _tidy(found["title"]), None
        elif text and not in_table and not is_rule(line):
            is_heading = text.endswith(":") and len(text) <= CAPTION_LENGTH_MAX
            self.caption = _tidy(text[:-1]) if is_heading else None


def _tidy(title: str) -> str | None:
    return _FILLER.sub("", " ".join(title.split())) or None
