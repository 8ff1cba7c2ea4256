"""Tables of a duration's spread over repetitions: `untar Min Avg Max Std Dev`, a line per setting, in seconds.

The four numbers summarise the repetitions; they are not rounds, and no verdict can be drawn from them.
"""

from __future__ import annotations

import re

from iolab.files.importer.format import Format, TableReader, parser
from iolab.files.importer.results import Table
from iolab.files.importer.source import Line
from iolab.files.importer.text import numbers

WORKLOAD = "make-sequence"
STEPS = ("mkfs", "untar", "make", "clean")
_HEADER = re.compile(r"\s*+(?P<what>\w[\w.-]*+)\s++Min\s++Avg\s++Max\s++Std\s?Dev\s*+$", re.IGNORECASE)
_SUMMARIES = ("elapsed_s_min", "elapsed_s_mean", "elapsed_s_max", "elapsed_s_stddev")


class _Reader(TableReader):
    phase = ""

    def header(self, line: Line) -> bool:
        found = _HEADER.match(line.text)
        if not found:
            return False
        self.phase = found["what"]
        self.columns = ["Min", "Avg", "Max", "Std Dev"]
        self.table = self.results.table(line.number, caption=self.captions.current, repeats="variants")
        return True

    def row(self, line: Line, table: Table) -> bool:
        words = line.words
        cells = numbers(self.source, line, words[-len(self.columns) :], self.columns)
        if cells is None or len(words) <= len(self.columns):
            return False
        workload = WORKLOAD if self.phase in STEPS else self.phase
        row = table.row(" ".join(words[: -len(self.columns)]), workload, self.phase)
        for metric, value in zip(_SUMMARIES, cells, strict=True):
            row.add(metric, value)
        return True


FORMAT = Format(
    name="spread",
    help="tables of Min Avg Max Std Dev, in seconds",
    recognises=lambda source: source.has_line(_HEADER),
    parse=parser(_Reader),
    words=("Min Avg Max", "Std Dev"),
)
