"""`sar -d` and `sar -b`, and what `sadf -d` makes of them: reports over time, of each device with columns as iostat's,
and of all devices together. The averages at the end are left out."""

from __future__ import annotations

import re

from typing_extensions import override

from iolab.files.importer.format import Format
from iolab.files.importer.iostat import COLUMNS, SECTOR, idleness, in_kib
from iolab.files.importer.results import Results, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.sysstat import AVERAGE, TIME, Means, OutputReader, add_means, sample, state_peak
from iolab.files.importer.text import numbers

WORKLOAD = "sar"
_TIME = rf"\s*+(?P<time>{TIME}|{AVERAGE})\s++"
_HEADER = re.compile(
    _TIME + r"(?:DEV\s++(?P<columns>tps\s.*)|(?P<before>tps\s.*)\s++DEV\s*+$|(?P<together>tps\s++rtps\s++wtps\s.*))"
)
_ROW = re.compile(_TIME + r"(?P<cells>\S.*)")
_SADF = re.compile(r"\s*+#\s*+hostname;interval;timestamp;(?P<device>DEV;)?(?P<columns>tps;.*)")
TOGETHER = "io"
"""In a device's place: what -b reports of all of them."""
_TOGETHER = {
    "tps": ("iops", "all", 1.0),
    "rtps": ("iops", "read", 1.0),
    "wtps": ("iops", "write", 1.0),
    "dtps": ("iops", "discard", 1.0),
    "bread/s": ("rate_bytes_per_s", "read", SECTOR),
    "bwrtn/s": ("rate_bytes_per_s", "write", SECTOR),
    "bdscd/s": ("rate_bytes_per_s", "discard", SECTOR),
}
_WEIGHTED = ("latency_ns_mean", "request_bytes_mean")


class _Output:
    """One output of sar."""

    def __init__(self) -> None:
        self.line = 1
        self.samples: dict[str, Means] = {}
        self.averages: dict[str, Means] = {}
        self.times: dict[str, list[str]] = {}
        """Of each device's reports."""


class _Reader(OutputReader):
    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self.is_last = self.is_sadf = self.is_together = False
        self.output = _Output()
        self.outputs = [self.output]

    @override
    def begin(self, *, continues: bool) -> None:
        if self.output.samples or self.output.averages:
            self.output = _Output()
            self.outputs.append(self.output)

    def header(self, line: Line) -> bool:
        sadf, found = _SADF.match(line.text), _HEADER.match(line.text)
        if sadf:
            self.columns = sadf["columns"].split(";")
        elif found:
            self.columns = (found["columns"] or found["before"] or found["together"]).split()
        else:
            return False
        self.is_sadf, self.is_last = bool(sadf), bool(found and found["before"])
        self.is_together = sadf["device"] is None if sadf else bool(found and found["together"])
        self.table = self.results.table(line.number)
        if not self.output.samples and not self.output.averages:
            self.output.line = line.number
        return True

    def row(self, line: Line, table: Table) -> bool:
        found = _ROW.match(line.text)
        words = line.text.strip().split(";")[3:] if self.is_sadf else found["cells"].split() if found else []
        if len(words) != len(self.columns) + (not self.is_together):
            return False
        name = TOGETHER if self.is_together else words.pop(-1 if self.is_last else 0)
        cells = numbers(self.source, line, [in_kib(word) for word in words], self.columns)
        if cells is None:
            return False
        values = dict(zip(self.columns, cells, strict=True))
        is_average = found is not None and not any(map(str.isdigit, found["time"]))
        if found is not None and not is_average:
            self.output.times.setdefault(name, []).append(found["time"])
        means = (self.output.averages if is_average else self.output.samples).setdefault(name, {})
        for column, value in values.items():
            if value is not None and (known := (_TOGETHER if self.is_together else COLUMNS).get(column)):
                metric, op, scale = known
                weight = values.get("tps") or 0.0 if metric in _WEIGHTED else 1.0
                sample(means, metric, value * scale, op=op, weight=weight)
        return True


def _parse(source: Source, results: Results) -> None:
    reader = _Reader(source, results)
    reader.read()
    for output in reader.outputs:
        table, reports = results.table(output.line), output.samples or output.averages
        for name in sorted(reports, key=lambda name: (name == TOGETHER, *idleness(reports[name]))):
            add_means(table.row(source.stem_without_round, f"{WORKLOAD} {name}"), reports[name], interval_s=None)
            state_peak(name, reports[name], results, output.times.get(name, ()))


FORMAT = Format(
    name="sar",
    help="sar -d: devices over time, also with -p and -h; sar -b: all of them together; sadf -d",
    recognises=lambda source: source.has_line(_HEADER) or source.has_line(_SADF),
    parse=_parse,
    titled=True,
    words=("DEV", "tps", "rkB/s", "areq-sz", "Average:"),
)
