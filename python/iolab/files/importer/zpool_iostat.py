"""`zpool iostat` of OpenZFS, with -v and -l: operations, bytes and waiting times of a pool and of its devices.

The first report, averages since the import of the pool, is left out if others follow (-y leaves it out itself). K, M, G
are powers of 1024. Space, queues and histograms (-q, -w, -r) are not read.
"""

from __future__ import annotations

import re
from collections import Counter

from typing_extensions import override

from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.sysstat import Means, OutputReader, add_means, sample
from iolab.files.importer.written_number import number

WORKLOAD = "zpool"
_GROUPS = re.compile(r"\s*+capacity\s++operations\s++bandwidth\b(?P<more>.*)")
_HEADER = re.compile(
    r"\s*+(?:pool|vdev)\s++(?:alloc\s++free|used\s++avail)\s++read\s++write\s++read\s++write\b(?P<more>.*)"
)
_RULE = re.compile(r"\s*+-{3,}+(?>(?:\s++-{3,}+)+)\s*+$")
_AMOUNT = re.compile(r"(?P<digits>\d[\d.]{0,15}+)(?P<unit>[KMGTPE]?)B?")
_SPAN = re.compile(r"(?P<digits>\d[\d.]{0,15}+)(?P<unit>ns|us|ms|s)")
_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_WAITS = ("total_wait", "disk_wait")
BEFORE = 3
"""Columns before the figures: the name, and its space."""

Vdev = tuple[str, int]
"""Its name, and how many of that name are above it."""


class _Reader(OutputReader):
    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self.line = 1
        self.waits: list[str] = []
        self.pool = ""
        """The name that begins each report."""
        self.reports = 0
        self.seen: Counter[str] = Counter()
        """How often each name has come in this report: old versions do not number a pool's mirrors and raidz."""
        self.first: dict[Vdev, Means] = {}
        self.later: dict[Vdev, Means] = {}

    def header(self, line: Line) -> bool:
        if found := _GROUPS.match(line.text):
            self.waits = found["more"].split()
            return True
        if _RULE.match(line.text):
            return self.table is not None or bool(self.waits)
        if found := _HEADER.match(line.text):
            self.columns = line.words
            self.table = self.results.table(line.number)
            if not self.first:
                self.line = line.number
            return True
        return False

    def row(self, line: Line, table: Table) -> bool:
        words = line.words
        if len(words) != len(self.columns):
            return False
        name, (reads, writes, read_bytes, write_bytes, *waits) = words[0], words[BEFORE:]
        self.pool = self.pool or name
        if name == self.pool:
            self.reports += 1
            self.seen.clear()
        means = (self.later if self.reports > 1 else self.first).setdefault((name, self.seen[name]), {})
        self.seen[name] += 1
        counts = {}
        for op, count, size in (("read", reads, read_bytes), ("write", writes, write_bytes)):
            counts[op], rate = _amount(count), _amount(size)
            for metric, value in (("iops", counts[op]), ("rate_bytes_per_s", rate)):
                if value is not None:
                    sample(means, metric, value, op=op)
        for place, group in enumerate(self.waits):
            if group in _WAITS:
                for op, cell in zip(("read", "write"), waits[2 * place : 2 * place + 2], strict=False):
                    if (span := _span(cell)) is not None:
                        metric = "latency_ns_mean" if group == _WAITS[0] else "device_service_ns_mean"
                        sample(means, metric, span, op=op, weight=counts[op] or 1.0)
        return True

    @override
    def begin(self, *, continues: bool) -> None:
        self.finish()
        self.pool, self.reports, self.first, self.later = "", 0, {}, {}
        self.seen.clear()

    @override
    def finish(self) -> None:
        """Adds the output that ends here, a workload for each pool and device."""
        chosen = self.later or self.first
        table = self.results.table(self.line)
        for (name, nth), means in chosen.items():
            numbered = f"{name}-{nth}" if (name, 1) in chosen else name
            add_means(table.row(self.source.stem_without_round, f"{WORKLOAD} {numbered}"), means, interval_s=None)
        if self.first and self.later:
            self.results.problem("the first report, averages since the pool's import, is left out")


def _amount(cell: str) -> float | None:
    found = _AMOUNT.fullmatch(cell.replace(",", "."))
    value = number(found["digits"]) if found else None
    return value * 1024.0 ** " KMGTPE".index(found["unit"] or " ") if found and value is not None else None


def _span(cell: str) -> float | None:
    found = _SPAN.fullmatch(cell.replace(",", "."))
    value = number(found["digits"]) if found else None
    return value * _NS[found["unit"]] if found and value is not None else None


FORMAT = Format(
    name="zpool-iostat",
    own=re.compile(r"\s*+\S++(?:\s++(?:-|[\d.,]++[KMGTP]?|[\d.]++[num]?s)){6,}\s*+$"),
    help="zpool iostat of OpenZFS, with -v and -l: pools and devices",
    recognises=lambda source: source.has_line(_HEADER),
    parse=_Reader.parse,
    titled=True,
    words=("capacity", "operations", "bandwidth", "alloc", "free"),
)
