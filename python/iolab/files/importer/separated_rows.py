"""Tables among sentences whose columns commas or semicolons part, as tables with bars: those whose cells have
units, or whose names do not say what figures are. Others are read as a CSV file would be."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from iolab.files.importer.columns import MEASURED, OF_RESULT, stated_in
from iolab.files.importer.posted import NumberedLine
from iolab.files.importer.quantity_cell import LATENCY, quantity, unit_of

SEPARATORS = ",;\t"
ROWS_MIN = 2
NAME_WORDS_MAX = 6
"""Of a column; more make a clause of a sentence. Chosen."""
_OF_LIST = re.compile(r"^\s*[-*\u2022] |:\s*$")
"""An item, or what stands above a list."""
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3},\d{3}(?![\d.])")


def states_metric(name: str) -> bool:
    """Whether a column's name says what its figures are."""
    plain = name.strip().replace("_", " ")
    return bool(OF_RESULT.search(plain) or LATENCY.search(plain) or unit_of(plain))


def with_bars(lines: Sequence[NumberedLine]) -> Iterator[NumberedLine]:
    """The lines, with `| a | b |` in place of each row of such a table, and a rule below the first; a table that is the
    whole text stays as it is."""
    written = sum(bool(line.strip()) for _, line in lines)
    place = 0
    while place < len(lines):
        rows = max((_rows(lines, place, separator) for separator in ",;"), key=len)
        if len(rows) > ROWS_MIN and len(rows) < written and _needs_bars(rows, lines[: place + 1]):
            for is_first, (number, _), cells in zip((True, *[False] * len(rows)), lines[place:], rows, strict=False):
                yield number, f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
                if is_first:
                    yield number, "|---" * len(cells) + "|"
            place += len(rows)
        else:
            yield lines[place]
            place += 1


def _needs_bars(rows: Sequence[Sequence[str]], until: Sequence[NumberedLine]) -> bool:
    """`until`: the lines to that of its names."""
    have_units = any((one := quantity(cell)) is not None and one.metric for row in rows[1:] for cell in row[1:])
    are_grouped = ";" not in until[-1][1] and any("," in cell for row in rows[1:] for cell in row)
    caption = next((line for _, line in reversed(until[:-1]) if line.strip()), "")
    is_stated = bool(stated_in(caption)) and not MEASURED.search(caption)
    return have_units or are_grouped or (is_stated and not any(map(states_metric, rows[0])))


def _rows(lines: Sequence[NumberedLine], place: int, separator: str) -> list[list[str]]:
    """The cells of the table that begins there, if one does."""
    names = _cells(lines[place][1], separator)
    are_names = all(names[1:]) and not any(quantity(name) or len(name.split()) > NAME_WORDS_MAX for name in names)
    if len(names) < 2 or not are_names or "|" in lines[place][1] or _OF_LIST.search(lines[place][1]):
        return []
    below = range(place + 1, len(lines))
    first = lines[place + 1][1] if below else ""
    if separator == "," and '"' not in first and _THOUSANDS.search(first):
        return []
    cells = (_cells(lines[at][1], separator) for at in below)
    below_names = takewhile(lambda row: not (row and _OF_LIST.match(row[0])), cells)
    return [names, *takewhile(lambda row: len(row) == len(names) and any(map(quantity, row[1:])), below_names)]


def _cells(text: str, separator: str) -> list[str]:
    if separator not in text:
        return []
    return [cell.strip() for cell in next(csv.reader([text.rstrip("\n")], delimiter=separator))]
