"""The affinity table of the kernel's queue- and completion-affinity tests: `A Q C | MBPS Avg Lat StdDev | ...`.

MBPS is 2^20 bytes per second: inferred from Little's law, 128 outstanding requests of 256 KiB per device over the
table's own latency give its rate only so. Latencies are seconds; Q and C columns count operations per device.
"""

from __future__ import annotations

import re

from iolab.files.importer.format import Format, TableReader, parser
from iolab.files.importer.results import Table
from iolab.files.importer.source import Line
from iolab.files.importer.text import numbers

MEGABYTE = 2**20
WORKLOAD = "affinity"
_HEADER = re.compile(r"\s*+A\s++Q\s++C\s*+\|\s*+MBPS\s++Avg\s++Lat\s++StdDev")
_COLUMNS = {
    "MBPS": ("rate_bytes_per_s", MEGABYTE),
    "Avg Lat": ("latency_ns_mean", 1e9),
    "StdDev": ("latency_ns_stddev", 1e9),
    "Q-local": ("queue_local", 1),
    "Q-remote": ("queue_remote", 1),
    "C-local": ("completions_local", 1),
    "C-remote": ("completions_remote", 1),
}


class _Reader(TableReader):
    def header(self, line: Line) -> bool:
        if not _HEADER.match(line.text):
            return False
        self.columns = list(_COLUMNS)
        self.table = self.results.table(line.number, caption=self.captions.current, repeats="variants")
        return True

    def row(self, line: Line, table: Table) -> bool:
        identifier, bar, rest = line.text.partition("|")
        names = identifier.split()
        if not bar or not names:
            return False
        cells = numbers(self.source, line, rest.replace("|", " ").split(), self.columns)
        if cells is None:
            return False
        setting = ",".join(f"{key}={value}" for key, value in zip("AQC", names, strict=False))
        row = table.row(setting if len(names) == 3 else " ".join(names), WORKLOAD)
        for (metric, scale), value in zip(_COLUMNS.values(), cells, strict=True):
            row.add(metric, None if value is None else value * scale)
        return True


FORMAT = Format(
    name="affinity",
    help="the table of queue and completion affinity (A Q C | MBPS ...)",
    recognises=lambda source: source.has_line(_HEADER),
    parse=parser(_Reader),
    words=("A Q C", "MBPS", "Avg Lat", "Q-local", "C-remote"),
)
