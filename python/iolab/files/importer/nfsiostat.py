"""nfsiostat's reports: operations, bytes and times of a mount, and of its reads and writes.

The first report, averages since the mount, is left out if others follow. A kB is 1,024 bytes, as `kB/s` is computed.
"""

from __future__ import annotations

import re

from typing_extensions import override

from iolab.base.mountstats import NS_PER_MS
from iolab.files.importer.format import Format
from iolab.files.importer.results import MAIN, Results, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.sysstat import Means, OutputReader, add_means, sample
from iolab.files.importer.written_number import number

WORKLOAD = "nfs"
KIB = 1024.0
_COLUMNS = {
    "ops/s": ("iops", 1.0),
    "op/s": ("iops", 1.0),
    "rpc bklog": ("queue_depth_mean", 1.0),
    "kB/s": ("rate_bytes_per_s", KIB),
    "kB/op": ("request_bytes_mean", KIB),
    "retrans": ("rpc_retransmissions", 1.0),
    "avg RTT (ms)": ("rpc_rtt_ns_mean", NS_PER_MS),
    "avg exe (ms)": ("rpc_execute_ns_mean", NS_PER_MS),
    "avg queue (ms)": ("rpc_backlog_wait_ns_mean", NS_PER_MS),
    "errors": ("errors", 1.0),
}
"""What a column is, and what its cells are multiplied by."""
_MOUNT = re.compile(r"\s*+(?P<what>\S++) mounted on (?P<mount>\S.*?):\s*+$")
_NAME = "|".join(map(re.escape, _COLUMNS))
_HEADER = re.compile(rf"\s*+(?:(?P<phase>read|write):\s++)?(?P<columns>ops?/s\s++(?>(?:(?:{_NAME})(?:\s++|$))+))$")
_EACH_NAME = re.compile(_NAME)
_CELL = re.compile(r"(\d[\d.]*+)(?: \([\d.]++%\))?")
_ROW = re.compile(rf"(?>(?:\s++{_CELL.pattern}(?=\s|$))+)\s*+$")


class _Reader(OutputReader):
    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self.line = 1
        self.mount = self.phase = ""
        self.first: dict[tuple[str, str], Means] = {}
        self.later: dict[tuple[str, str], Means] = {}
        """By mount and phase: all together, reads, and writes."""

    @override
    def header(self, line: Line) -> bool:
        if found := _MOUNT.match(line.text):
            self.mount = found["mount"]
            return True
        if found := _HEADER.match(line.text):
            self.phase, self.columns = found["phase"] or MAIN, _EACH_NAME.findall(found["columns"])
            self.table = self.results.table(line.number)
            self.line = self.line if self.first else line.number
            return True
        return False

    @override
    def row(self, line: Line, table: Table) -> bool:
        cells = [number(found[1]) for found in _CELL.finditer(line.text)] if _ROW.match(line.text) else []
        if len(cells) != len(self.columns):
            return False
        place = self.mount, self.phase
        means = self.later.setdefault(place, {}) if place in self.first else self.first.setdefault(place, {})
        for column, value in zip(self.columns, cells, strict=True):
            metric, scale = _COLUMNS[column]
            if value is not None:
                # Columns begin with operations; of none, no mean is a figure.
                weight = cells[0] or 0.0 if metric.endswith("_ns_mean") else 1.0
                sample(means, metric, value * scale, weight=weight)
        return True

    @override
    def begin(self, *, continues: bool) -> None:
        self.finish()
        self.mount, self.first, self.later = "", {}, {}

    @override
    def finish(self) -> None:
        """Adds the output that ends here, a workload for each mount."""
        table = self.results.table(self.line)
        for place, means in (self.later or self.first).items():
            mount, phase = place
            row = table.row(self.source.stem_without_round, f"{WORKLOAD} {mount}".strip(), phase)
            add_means(row, means, interval_s=None)
        if self.later:
            self.results.problem("the first report, averages since the mount, is left out")
        elif self.first:
            what = "a report alone is, as the first, of the time since the mount"
            self.results.problem(f"{what}; the second of 'nfsiostat 10 2' is of ten seconds", self.line)


FORMAT = Format(
    name="nfsiostat",
    help="nfsiostat's reports: operations, bytes and times of each mount, its reads and its writes",
    recognises=lambda source: any(found["phase"] for found in map(_HEADER.match, source.text_lines) if found),
    parse=_Reader.parse,
    titled=True,
    words=("mounted on", "rpc bklog", "kB/op", "retrans", "avg RTT (ms)", "avg exe (ms)"),
)
