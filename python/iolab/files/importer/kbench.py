"""The summary of kbench, Longhorn's benchmark: IOPS, bandwidth and latency of random and sequential reads and writes,
each a phase; of two volumes side by side, two settings. How idle the CPUs were is stated of each of the three parts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Row, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.written_number import number

WORKLOAD = "kbench"
KIB = 1024.0
OPS = ("read", "write")
_SUMMARY = re.compile(r"\s*+FIO Benchmark (?P<which>Latency P99 |Comparsion |Comparison )?Summary\s*+$")
_FOR = re.compile(r"\s*+For:\s++(?P<names>\S.{0,120}?)\s*+$")
_SECTION = re.compile(r"\s*+(?P<what>IOPS|Bandwidth|Latency)(?: in (?P<unit>ops|KiB/sec|ns))?\s\(Read/Write\)\s*+$")
_TWO = r"(?P<{0}>[\d,.]{{1,20}}) / (?P<{0}_write>[\d,.]{{1,20}})"
_TEST = re.compile(
    rf"\s*+(?P<test>Random|Sequential):\s++{_TWO.format('first')}(?:\s++vs\s++{_TWO.format('second')}\s++:.*)?\s*+$"
)
_IDLE = re.compile(r"\s*+CPU Idleness:\s++(?P<first>[\d.]{1,20})%(?:\s++vs\s++(?P<second>[\d.]{1,20})%\s++:.*)?\s*+$")
_METRICS = {"IOPS": ("iops", 1.0), "Bandwidth": ("rate_bytes_per_s", KIB), "Latency": ("latency_ns_mean", 1.0)}


class _Reader:
    def __init__(self, source: Source, results: Results) -> None:
        self.source = source
        self.results = results
        self.table: Table | None = None
        self.rows: dict[tuple[str, str], Row] = {}
        self.names: list[str] = []
        self.metric: tuple[str, float] | None = None
        self.section = ""
        self.is_p99 = False

    def read(self) -> None:
        for line in self.source.lines(self.results.problem):
            if found := _SUMMARY.match(line.text):
                self.is_p99 = (found["which"] or "").startswith("Latency")
                if not self.is_p99:
                    self.table, self.rows = self.results.table(line.number), {}
                self.metric = None
            elif found := _FOR.match(line.text):
                self.names = found["names"].split(" vs ")
            elif found := _SECTION.match(line.text):
                self.section = found["what"].lower()
                metric, scale = _METRICS[found["what"]]
                self.metric = ("latency_ns_p99" if self.is_p99 else metric, scale)
            elif found := _TEST.match(line.text):
                self._test(line, found)
            elif (found := _IDLE.match(line.text)) and self.metric is not None:
                for side, row in self._rows(line, found, self.section):
                    row.add("cpu_idle_percent", number(found[side]))

    def _test(self, line: Line, found: re.Match[str]) -> None:
        if self.metric is None:
            return
        metric, scale = self.metric
        for side, row in self._rows(line, found, found["test"].lower()):
            for op, group in zip(OPS, (side, f"{side}_write"), strict=True):
                row.add(metric, number(found[group], scale), op=op)

    def _rows(self, line: Line, found: re.Match[str], phase: str) -> Iterator[tuple[str, Row]]:
        """The row of each volume that the line has figures of."""
        if self.table is None:
            self.table = self.results.table(line.number)
        sides = ["first", "second"] if found["second"] else ["first"]
        settings = self.names if len(self.names) == len(sides) == 2 else [self.source.stem_without_round]
        for setting, side in zip(settings, sides, strict=False):
            row = self.rows.get((setting, phase))
            if row is None:
                row = self.rows[setting, phase] = self.table.row(setting, WORKLOAD, phase)
            yield side, row


FORMAT = Format(
    name="kbench",
    help="the summary of kbench, Longhorn's benchmark, also of two volumes side by side",
    recognises=lambda source: source.has_line(_SECTION) and source.has_line(_TEST),
    parse=lambda source, results: _Reader(source, results).read(),
    titled=True,
    words=("FIO Benchmark Summary", "IOPS (Read/Write)", "Bandwidth in KiB/sec", "Latency in ns"),
)
