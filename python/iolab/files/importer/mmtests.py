"""mmtests' comparison tables: a column per kernel, `value ( 1.23%)` or in the current style `value * 1.23%*`.

A line is a statistic over mmtests' own iterations, not a round. Its unit is the benchmark's and not in the table. The
better direction is: a positive percentage means better than the first column. A statistic that is better when higher
becomes `score_NAME`, one that is better when lower `cost_NAME`. Without a percentage, the statistic decides: Amean is
of times and Hmean of rates (its own regression-detection.md).
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from iolab.domain.definition import COST, SCORE
from iolab.files.importer.format import Format, TableReader, parser
from iolab.files.importer.results import Results, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.text import is_rule
from iolab.files.importer.written_number import number

_CELL = re.compile(
    r"(?P<value>(?:-|(?<![\d.,]))\d[\d.,]*+|-?nan|-?inf)\s*+"
    r"(?:\(\s*+(?P<plain>[-+]?[\d.]++|nan|-?inf)%\s*+\)|\*\s*+(?P<marked>[-+]?[\d.]++)%\s*+\*)",
    re.IGNORECASE,
)
_DURATION = re.compile(r"\s*+(?:Duration\s++)?(?P<what>User|System|Elapsed)\s++(?P<cells>\d[\d.\s]*+)$")
_DURATIONS = {"User": "cpu_user_s", "System": "cpu_system_s", "Elapsed": "elapsed_s"}
_STATISTIC = re.compile(
    r"(?:min|max|mean|[ahg]mean|bh?mean|bamean|stddev|coeffvar|median|(?:\w+-)?\d*(?:st|nd|rd|th)?-?qrtle)(?:-[\d.]+)?$",
    re.IGNORECASE,
)
_OF_TIMES = ("amean", "bamean", "stddev", "coeffvar")
_HEADER_LINES_MAX = 2


class _Cell(NamedTuple):
    end: int
    value: float | None
    gain_percent: float | None


class _Reader(TableReader):
    """The header is known only by the first row below it, so the lines before are remembered."""

    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self.before: list[Line] = []
        self.title = "mmtests"

    def header(self, line: Line) -> bool:
        if self.columns and (found := _DURATION.match(line.text)):
            self.table = self.table or self.results.table(line.number)
            return self._duration(found, self.table)
        cells = _cells(line.text)
        if not cells or (self.table is not None and len(cells) == len(self.columns)):
            return False
        first = next(_CELL.finditer(line.text))
        if not line.text[: first.start()].strip() or cells[0].gain_percent:
            return False
        self.columns, self.title = _names(self.before, cells, self.title)
        self.table = self.results.table(line.number)
        self.before = []
        return self.row(line, self.table)

    def row(self, line: Line, table: Table) -> bool:
        cells = _cells(line.text)
        if len(cells) != len(self.columns):
            return False
        words = line.text[: next(_CELL.finditer(line.text)).start()].split()
        if not words:
            return False
        statistic, phase = _statistic(words)
        family = _family(statistic, cells)
        for setting, cell in zip(self.columns, cells, strict=True):
            table.row(setting, self.title, phase).add(family + _slug(statistic), cell.value, absent="not a number")
        return True

    def _duration(self, found: re.Match[str], table: Table) -> bool:
        values = [number(word) for word in found["cells"].split()]
        if len(values) != len(self.columns) or None in values:
            return False
        for setting, value in zip(self.columns, values, strict=True):
            table.row(setting, self.title).add(_DURATIONS[found["what"]], value)
        return True

    def between(self, line: Line) -> None:
        if not is_rule(line):
            self.before = [*self.before, line][-_HEADER_LINES_MAX - 1 :]


def _cells(text: str) -> list[_Cell]:
    if "%" not in text:
        return []
    return [
        _Cell(found.end(), _float(found["value"]), _float(found["plain"] or found["marked"]))
        for found in _CELL.finditer(text)
    ]


def _float(text: str) -> float | None:
    return number(text.replace(",", ""))


def _names(before: list[Line], cells: list[_Cell], title: str) -> tuple[list[str], str]:
    """The columns' names from the one or two lines above, and the title above those."""
    lines = list(reversed(before))
    heads: list[list[str]] = []
    for line in lines[:_HEADER_LINES_MAX]:
        if len(line.words) == len(cells) and (len(cells) > 1 or line.text.startswith(" ")):
            heads.insert(0, line.words)
        elif not heads or line.text.startswith(" " * 8):
            heads.insert(0, _by_place(line.text, [cell.end for cell in cells]))
        else:
            break
    above = lines[len(heads)] if len(lines) > len(heads) else None
    if above and len(above.words) == 1 and not above.text.startswith(" " * 8):
        title = above.words[0]
    names = [" ".join(part for part in parts if part) for parts in zip(*heads, strict=True)] if heads else []
    if len(set(names)) != len(cells) or not all(names):
        names = [f"column {place + 1}" for place in range(len(cells))]
    return names, title


def _by_place(text: str, ends: list[int]) -> list[str]:
    """Names that touch each other, cut where the columns below end. What stands apart before the first names the
    rows."""
    starts = [text.rfind("  ", 0, len(text[: ends[0]].rstrip())) + 1, *ends[:-1]]
    return ["".join(text[start:end].split()) for start, end in zip(starts, ends, strict=True)]


def _statistic(words: list[str]) -> tuple[str, str]:
    """`Hmean 1-files/sec` and the older `Files/s min` -> the statistic, and what it is of."""
    for place in (0, len(words) - 1):
        if _STATISTIC.match(words[place]):
            rest = words[:place] + words[place + 1 :]
            return words[place], _phase(rest)
    return "value", _phase(words)


def _phase(words: list[str]) -> str:
    return "-".join(words).replace("/", "_per_") or "main"


def _family(statistic: str, cells: list[_Cell]) -> str:
    """Whether more or less of it is better, as the percentages against the first column show."""
    first = cells[0]
    for cell in cells[1:]:
        if first.value is not None and cell.value is not None and cell.gain_percent and cell.value != first.value:
            return SCORE if (cell.value > first.value) == (cell.gain_percent > 0) else COST
    return COST if statistic.lower().partition("-")[0] in _OF_TIMES else SCORE


def _slug(statistic: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", statistic.lower()).strip("_")


def _recognises(source: Source) -> bool:
    """Two lines below each other with the same number of cells, of which the first has no gain over itself."""
    cells = map(_cells, source.text_lines)
    counts = [0 if found and found[0].gain_percent else len(found) for found in cells]
    return any(count == following and count >= 1 for count, following in pairwise(counts))


FORMAT = Format(
    name="mmtests",
    help="mmtests' comparison tables, current and older style",
    recognises=_recognises,
    parse=parser(_Reader),
    words=("Amean", "Hmean", "Stddev", "CoeffVar", "%)", "vanilla"),
)
