"""Cells, captions and numbers of text tables as people post them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.files.importer.written_number import number

if TYPE_CHECKING:
    from iolab.files.importer.source import Line, Source

QUOTED_MAX = 40
ABSENT = frozenset(("-", "n/a", "na", "nan", "-nan", "inf", "***", "err", "error", "fail", "failed"))
CAPTION_LENGTH_MAX = 60
TEXT_AMONG_NUMBERS_MAX = 0.34

_MAIL = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$")
_SECTION = re.compile(r"\*{2,}+\s*(?P<title>[^*(:]+)")
_FILLER = re.compile(r"^(?:and )?(?:for |with )?(?:the )?", re.IGNORECASE)
_RULE = re.compile(r"[-=+|\s]+$")


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
