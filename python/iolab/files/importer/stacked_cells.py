"""Tables of which each cell has become a line, as when a page is copied as text, as tables with bars."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile

from iolab.files.importer.posted import NumberedLine

CELLS_MIN = 6
"""Of a table: two names, and two rows."""
CELL_CHARS_MAX = 60
COLUMNS_MAX = 12
"""Both chosen."""
ALIKE_MIN = 0.8
"""The share of a table's cells that are figures where the first row has one, and text where it has text. Chosen."""
_FIGURE = re.compile(r"[-+~\u2248<>\u00b1]?\s?\d")
_ABSENT = frozenset(("-", "\u2013", "\u2014", "n/a", "na"))
_NO_CELL = re.compile(r"[|\t]|\s{3}|[.:;,]$|^\s*(?:[-*\u2022#$>]|\d+\.)\s|=")

_Table = list[list[str]]


def with_bars(lines: Sequence[NumberedLine]) -> Iterator[NumberedLine]:
    """The lines, with `| a | b |` in place of the cells of each row of such a table, and a rule below the first."""
    place = 0
    for run in _runs(lines):
        first, table = _table_in([lines[at][1].strip() for at in run])
        if not table:
            continue
        cells = iter(run[first:])
        yield from lines[place : run[first]]
        for is_header, row in zip((True, *[False] * len(table)), table, strict=False):
            at = [next(cells) for _ in row]
            place = at[-1] + 1
            yield lines[at[0]][0], f"| {' | '.join(row)} |"
            if is_header:
                yield lines[at[0]][0], "|---" * len(row) + "|"
    yield from lines[place:]


def _runs(lines: Sequence[NumberedLine]) -> Iterator[list[int]]:
    """The places of lines that may be cells, as far apart as the first two."""
    written = [at for at, (_, line) in enumerate(lines) if line.strip()]
    run: list[int] = []
    for at in written:
        text = lines[at][1].strip()
        if len(text) > CELL_CHARS_MAX or _NO_CELL.search(text):
            yield from _whole(run)
            run = []
            continue
        if len(run) > 1 and at - run[-1] != run[1] - run[0]:
            yield from _whole(run)
            run = []
        run.append(at)
    yield from _whole(run)


def _whole(run: list[int]) -> Iterator[list[int]]:
    if len(run) >= CELLS_MIN:
        yield run


def _table_in(cells: Sequence[str]) -> tuple[int, _Table]:
    """Where the largest table begins, the one that leaves the fewest cells, with its names and rows; no rows if there
    is none."""
    figures = [bool(_FIGURE.match(cell)) for cell in cells]
    names_end = figures.index(True) if any(figures) else 0
    found: tuple[int, _Table] = (0, [])
    most = (0, 0)
    for first in range(max(0, names_end - 2 * COLUMNS_MAX), names_end - 1):
        for columns in range(2, min(COLUMNS_MAX, names_end - first) + 1):
            table = _rows(cells, figures, first, columns)
            count = len(table) * columns
            if table and (whole := (count, first + count - len(cells))) > most:
                most, found = whole, (first, table)
    return found


def _rows(cells: Sequence[str], figures: Sequence[bool], first: int, columns: int) -> _Table:
    """Names and rows, if those make a table."""
    begins = range(first, len(cells) - columns + 1, columns)
    pattern = figures[first + columns : first + 2 * columns]
    below = list(takewhile(lambda at: figures[at] == pattern[0], begins[1:]))
    if len(below) < 2 or not any(pattern[1:]) or (pattern[0] and first):
        return []
    pairs = [
        (is_figure, expected)
        for at in below
        for is_figure, expected, cell in zip(figures[at : at + columns], pattern, cells[at : at + columns], strict=True)
        if cell.lower() not in _ABSENT
    ]
    are_alike = sum(one == other for one, other in pairs) >= ALIKE_MIN * len(pairs)
    labels = [cells[at] for at in below]
    are_names = len(set(labels)) == len(labels) or any(one != other for one, other in pairwise(labels))
    rest = len(cells) - below[-1] - columns
    if not are_alike or not are_names or (pattern[0] and rest):
        return []
    return [list(cells[at : at + columns]) for at in (first, *below)]
