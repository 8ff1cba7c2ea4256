"""vmstat's reports over time: blocks in and out, CPU shares and tasks, of the whole machine.

A block is 1024 bytes (procps, proc/vmstat.c since 3.0). The first report, averages since the boot, is left out if
others follow. Memory, swap, interrupts and context switches are not read.
"""

from __future__ import annotations

import re

from typing_extensions import override

from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.sysstat import Means, OutputReader, add_means, sample
from iolab.files.importer.written_number import number

WORKLOAD = "vmstat"
BLOCK = 1024.0
COLUMNS = {
    "bi": ("rate_bytes_per_s", "read", BLOCK),
    "bo": ("rate_bytes_per_s", "write", BLOCK),
    "us": ("cpu_user_percent", "all", 1.0),
    "sy": ("cpu_system_percent", "all", 1.0),
    "wa": ("cpu_iowait_percent", "all", 1.0),
    "st": ("cpu_steal_percent", "all", 1.0),
    "id": ("cpu_idle_percent", "all", 1.0),
    "b": ("tasks_blocked_mean", "all", 1.0),
    "r": ("tasks_runnable_mean", "all", 1.0),
}
_NAMES = frozenset((*COLUMNS, *["swpd", "free", "buff", "cache", "inact", "active", "si", "so", "in", "cs", "gu"]))
_HEADER = re.compile(r"\s*+r\s++b\s++swpd\s++free\s")
_BANNER = re.compile(r"(?:\s*+-+time-+)?\s*+procs\s++-")
_CLOCK = re.compile(r"[\d-]++|[\d:]++|[A-Z]{1,5}|[+-]\d\d++")
"""Of a date or a time before or after the figures."""


class _Reader(OutputReader):
    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        results.shown.add("tasks_runnable_mean")
        self.line = 1
        self.first: Means = {}
        self.later: Means = {}
        self.since_boot = True
        """Whether the next report is of the time since the boot."""

    def header(self, line: Line) -> bool:
        if _HEADER.match(line.text):
            self.columns = [name for name in line.words if name in _NAMES]
            self.table = self.results.table(line.number)
            if not self.first and not self.later:
                self.line = line.number
        return bool(_HEADER.match(line.text) or _BANNER.match(line.text))

    def row(self, line: Line, table: Table) -> bool:
        words = line.words[1:] if ":" in line.words[0] else line.words
        cells = [number(word) for word in words[: len(self.columns)]]
        rest = words[len(self.columns) :]
        if len(cells) < len(self.columns) or None in cells or not all(map(_CLOCK.fullmatch, rest)):
            return False
        means = self.first if self.since_boot else self.later
        self.since_boot = False
        for column, value in zip(self.columns, cells, strict=True):
            if value is not None and (known := COLUMNS.get(column)):
                metric, op, scale = known
                sample(means, metric, value * scale, op=op)
        return True

    @override
    def begin(self, *, continues: bool) -> None:
        self.finish()
        self.first, self.later, self.since_boot = {}, {}, not continues

    @override
    def finish(self) -> None:
        """Adds the output that ends here."""
        if self.first or self.later:
            row = self.results.table(self.line).row(self.source.stem_without_round, WORKLOAD)
            add_means(row, self.later or self.first, interval_s=None)
        if self.first and self.later:
            self.results.problem("the first report, averages since the boot, is left out")


FORMAT = Format(
    name="vmstat",
    help="vmstat's reports: blocks in and out, CPU shares, tasks that run and wait",
    recognises=lambda source: source.has_line(_HEADER),
    parse=_Reader.parse,
    titled=True,
    words=("procs", "swpd", "free", "cache", "bi", "bo", "wa"),
)
