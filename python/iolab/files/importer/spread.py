"""Tables of a figure's spread over repetitions, a line per setting: `untar Min Avg Max Std Dev`, in seconds, and
ministat's `N Min Max Median Avg Stddev`, of whatever the text above it says.

The numbers summarise the repetitions; they are not rounds, and no verdict can be drawn from them.
"""

from __future__ import annotations

import re

from iolab.domain.definition import NAMELESS
from iolab.files.importer.columns import stated_in
from iolab.files.importer.format import Format, TableReader, parser
from iolab.files.importer.quantity_cell import Quantity, quantity, with_unit
from iolab.files.importer.results import MAIN, Results, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.text import numbers

WORKLOAD = "make-sequence"
STEPS = ("mkfs", "untar", "make", "clean")
_HEADER = re.compile(r"\s*+(?P<what>\w[\w.-]*+)\s++Min\s++Avg\s++Max\s++Std\s?Dev\s*+$", re.IGNORECASE)
_MINISTAT = re.compile(r"\s*+N\s++Min\s++Max\s++Median\s++Avg\s++Stddev\s*+$")
_DATA_SET = re.compile(r"\s*+(?P<mark>[x+*%#@O])\s++(?P<name>\S.{0,100}?)\s*+$")
"""What ministat calls each of its rows by, above its plot."""
_OF_PLOT = re.compile(r"\s*+[|+]")
_COLUMNS = ("Min", "Avg", "Max", "Std Dev")
_COLUMNS_OF_MINISTAT = ("N", "Min", "Max", "Median", "Avg", "Stddev")
_STATISTICS = {"Min": "min", "Avg": "mean", "Max": "max", "Std Dev": "stddev", "Stddev": "stddev", "Median": "median"}
CONTEXT_LINES = 3


class _Reader(TableReader):
    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self.phase = ""
        self.metric, self.scale = "elapsed_s", 1.0
        self.names: dict[str, str] = {}
        """Of ministat's rows, by their marks."""
        self.above: list[str] = []
        """The last lines of text, the nearest first."""

    def header(self, line: Line) -> bool:
        if found := _HEADER.match(line.text):
            self.phase, self.metric, self.scale = found["what"], "elapsed_s", 1.0
            self.columns = list(_COLUMNS)
        elif _MINISTAT.match(line.text):
            self.phase, self.columns = "", list(_COLUMNS_OF_MINISTAT)
            self.metric, self.scale = self._stated()
        else:
            return False
        self.table = self.results.table(line.number, caption=self.captions.current, repeats="variants")
        return True

    def between(self, line: Line) -> None:
        if found := _DATA_SET.match(line.text):
            self.names[found["mark"]] = found["name"]
        elif not _OF_PLOT.match(line.text):
            self.above = [line.text, *self.above][:CONTEXT_LINES]

    def row(self, line: Line, table: Table) -> bool:
        words = line.words
        cells = numbers(self.source, line, words[-len(self.columns) :], self.columns)
        if cells is None or len(words) <= len(self.columns):
            return False
        name = " ".join(words[: -len(self.columns)])
        is_ministat = not self.phase
        workload = WORKLOAD if self.phase in STEPS else self.phase or "ministat"
        row = table.row(self.names.get(name, name) if is_ministat else name, workload, self.phase or MAIN)
        for column, value in zip(self.columns, cells, strict=True):
            if column in _STATISTICS and value is not None:
                row.add(f"{self.metric}_{_STATISTICS[column]}", value * self.scale)
        return True

    def _stated(self) -> tuple[str, float]:
        """The metric that the text above states, and the size of its unit."""
        unit = next(filter(None, map(stated_in, self.above)), "")
        one: Quantity | None = quantity(with_unit("1", unit)) if unit else None
        if one is None or one.metric is None:
            self.results.problem("nothing states what ministat's figures are: write it above them, such as 'IOPS:'")
            return NAMELESS, 1.0
        return ("elapsed_s", one.value / 1e9) if one.metric == "ns" else (one.metric, one.value)


FORMAT = Format(
    name="spread",
    help="tables of Min Avg Max Std Dev, in seconds, and ministat's",
    recognises=lambda source: source.has_line(_HEADER) or source.has_line(_MINISTAT),
    parse=parser(_Reader),
    words=("Min Avg Max", "Std Dev"),
)
