"""Lines that the program of a mail wrapped, joined again.

A program breaks a line between words at its last word that fits, and the rest begins at the next line's start. So a
line goes on if the word below it would not have fitted. How many spaces between columns the break swallowed, and how
often one line was broken, the text does not show: each way is tried, and whoever reads the lines finds out which of
them hold figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from iolab.files.importer.posted import NumberedLine

WIDTH_MIN, WIDTH_MAX = 60, 100
"""Columns at which programs wrap the lines of mails. Chosen, as the two below."""
GAPS = (1, 4, 12)
"""Spaces between two columns of a table."""
PARTS = (2, 3, 20)
"""Lines that one was made, at most."""


class Wrapping(NamedTuple):
    """A way in which lines may have been wrapped."""

    width: int
    gap: int
    parts: int
    indented: bool
    """Whether the rest may begin with what is left of such spaces."""


_OF_MAIL = re.compile(r"[A-Z][\w-]{1,40}+: ")
"""A line of a mail's header, which is not wrapped."""


def wrappings_of(lines: Sequence[str], *, indented: bool = False) -> list[Wrapping]:
    """The ways in which lines may have been wrapped; none if none was, or one is longer."""
    widths = [len(line.rstrip()) for line in lines if " " in line.strip() and not _OF_MAIL.match(line)]
    width = max(widths, default=0)
    if not WIDTH_MIN <= width <= WIDTH_MAX:
        return []
    ways: dict[tuple[int, ...], Wrapping] = {}
    for way in (Wrapping(width, gap, parts, indented) for gap in GAPS for parts in PARTS):
        begins = tuple(number for number, _ in joined(enumerate(lines), way))
        ways.setdefault(begins, way)
    ways.pop(tuple(range(len(lines))), None)
    return list(ways.values())


def joined(lines: Iterable[NumberedLine], way: Wrapping) -> Iterator[NumberedLine]:
    """The lines as they were before, each with the number of its first part."""
    begun: NumberedLine | None = None
    last, parts = "", 1
    for number, text in lines:
        if begun is not None and parts < way.parts and _goes_on(last, text, way):
            begun = (begun[0], f"{begun[1].rstrip()} {text}")
            parts += 1
        else:
            if begun is not None:
                yield begun
            begun, parts = (number, text), 1
        last = text
    if begun is not None:
        yield begun


def _goes_on(above: str, below: str, way: Wrapping) -> bool:
    if not above.strip() or not (below if way.indented else below[:1]).strip():
        return False
    return len(above.rstrip()) + way.gap + len(below.split(maxsplit=1)[0]) > way.width
