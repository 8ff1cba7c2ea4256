"""Headings of tables over several lines: names that go on below, units below names, and names of groups of columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

_CELL = re.compile(r"\S+(?>(?: \S+)*)")
_NAME = re.compile(r"\S+")


class _Cell(NamedTuple):
    start: int
    end: int
    text: str

    def is_over(self, other: _Cell) -> bool:
        """Whether they share a place in their lines."""
        return self.start < other.end and other.start < self.end


def of_lines(upper: str, lower: str) -> list[str] | None:
    """The names of the columns below two lines of names, which two spaces or more part. None if it is not sure which of
    the upper are over which of the lower.

    The first column has no name where the lower line is indented and no name of the upper is over that place.
    """
    above = [cell for cell in _cells_of(upper, _CELL) if cell.text]
    below = _cells_of(lower, _CELL)
    if not above or not below:
        return None
    groups = above
    first = []
    if lower[:1].isspace():
        first = [above[0].text] if above[0].end <= below[0].start else [""]
        above = above[1:] if first[0] else above
    over = [[place for place, one in enumerate(below) if cell.is_over(one)] for cell in above]
    if over and all(over) and (grouped := _of_groups(above, below, over, has_first=bool(first))):
        return [*first, *grouped]
    if same := _of_same(groups, _cells_of(lower, _NAME)):
        return same
    if over and all(len(places) == 1 for places in over) and len({places[0] for places in over}) == len(over):
        names = {places[0]: cell.text for places, cell in zip(over, above, strict=True)}
        joined = [_joined([names.get(place, ""), one.text]) for place, one in enumerate(below)]
        return [*first, *joined] if len(set(joined)) == len(joined) else None
    return None


def _cells_of(line: str, part: re.Pattern[str]) -> list[_Cell]:
    return [_Cell(one.start(), one.end(), one[0].strip("-=|* ")) for one in part.finditer(line.expandtabs())]


def _of_groups(
    above: Sequence[_Cell], below: Sequence[_Cell], over: Sequence[Sequence[int]], *, has_first: bool
) -> list[str] | None:
    """Each of the upper names is that of as many columns, which are called the same in each group or lie below it; the
    first column may be in none."""
    apart = len(below) % len(above)
    size = len(below) // len(above)
    if apart > (0 if has_first else 1) or size < 2:
        return None
    groups = [range(apart + size * place, apart + size * (place + 1)) for place in range(len(above))]
    if any(not set(places) <= set(group) for places, group in zip(over, groups, strict=True)):
        return None
    are_same = len({tuple(below[place].text for place in group) for group in groups}) == 1
    if not (are_same and len(groups) > 1) and any(len(places) < size for places in over):
        return None
    names = [below[0].text] if apart else []
    names += [
        _joined([cell.text, below[place].text]) for cell, group in zip(above, groups, strict=True) for place in group
    ]
    return names


def _of_same(above: Sequence[_Cell], below: Sequence[_Cell]) -> list[str] | None:
    """Of groups whose columns are called the same, right of columns that no group is over: `bs IOPS BW IOPS BW`."""
    apart = [cell for cell in below if cell.end <= above[0].start]
    size, rest = divmod(len(below) - len(apart), len(above))
    if rest or size < 2 or len(above) < 2 or not apart:
        return None
    groups = [below[at : at + size] for at in range(len(apart), len(below), size)]
    are_over = all(any(cell.is_over(one) for one in group) for cell, group in zip(above, groups, strict=True))
    if not are_over or len({tuple(one.text for one in group) for group in groups}) > 1:
        return None
    names = [f"{cell.text} {one.text}" for cell, group in zip(above, groups, strict=True) for one in group]
    return [*(cell.text for cell in apart), *names]


def of_cells(lines: Sequence[Sequence[str]]) -> list[str]:
    """The names of the columns of a drawn table whose heading has several lines of cells. Where names in the last come
    again, an empty cell above belongs to the group that its left neighbour names."""
    *above, last = lines
    named = [name for name in last if name]
    if len(set(named)) < len(named):
        above = [_filled(line, last) for line in above]
    return [_joined(parts) for parts in zip_longest(*above, last, fillvalue="")]


def _filled(line: Sequence[str], below: Sequence[str]) -> list[str]:
    names: list[str] = []
    for name, under in zip_longest(line, below, fillvalue=""):
        names.append(name or (names[-1] if names and under else ""))
    return names


def of_bars(upper: str, lower: str) -> list[str] | None:
    """The names of the columns of `lower` below fewer cells, by where bars stand in both lines. None if a name of the
    upper is over none of them."""
    groups, columns = _between_bars(upper), _between_bars(lower)
    first = 1 if columns and not columns[0].text and lower.lstrip().startswith("|") else 0
    last = -1 if columns and not columns[-1].text and lower.rstrip().endswith("|") else None
    columns = columns[first:last]
    over = [[group for group in groups if group.start <= (one.start + one.end) / 2 < group.end] for one in columns]
    named = [group for group in groups if group.text]
    if not named or any([group] not in over for group in named):
        return None
    return [_joined([*(group.text for group in above), one.text]) for above, one in zip(over, columns, strict=True)]


def _between_bars(text: str) -> list[_Cell]:
    cells: list[_Cell] = []
    start = 0
    for part in text.rstrip().split("|"):
        cells.append(_Cell(start, start + len(part) + 1, part.strip("*_` ")))
        start += len(part) + 1
    return cells


def _joined(parts: Sequence[str]) -> str:
    return " ".join(part for part in parts if part)
