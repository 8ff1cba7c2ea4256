"""mpstat's text: shares of CPU time, of all CPUs and of each (`job` is `cpu.N`). Columns are found by the header,
whatever the version; the averages over the reports are computed here, and those that mpstat prints at its end are
taken only if there is nothing else.
"""

from __future__ import annotations

import re

from typing_extensions import override

from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.sysstat import (
    AVERAGE,
    TIME,
    Means,
    OutputReader,
    add_means,
    clock_s,
    cpu_metric,
    decimal_point,
    sample,
)
from iolab.files.importer.text import numbers

WORKLOAD = "mpstat"
_TIME = rf"\s*+(?P<time>{TIME}|{AVERAGE})\s++"
_HEADER = re.compile(_TIME + r"CPU\s++(?P<columns>%?\S.*)")
_ROW = re.compile(_TIME + r"(?P<cpu>all|-?\d{1,9}+)\s++(?P<cells>\S.*)")


def _has_states(line: str) -> bool:
    found = _HEADER.match(line)
    return bool(found) and any(cpu_metric(column) for column in line.split())


class _Reader(OutputReader):
    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self.line = 1
        self.samples: Means = {}
        self.averages: Means = {}
        self.times: list[int] = []

    def header(self, line: Line) -> bool:
        found = _HEADER.match(line.text)
        if not found or not _has_states(line.text):
            return False
        self.columns = found["columns"].split()
        self.table = self.results.table(line.number)
        if not self.samples and not self.averages:
            self.line = line.number
        return True

    def row(self, line: Line, table: Table) -> bool:
        found = _ROW.match(line.text)
        cells = (
            numbers(self.source, line, [decimal_point(word) for word in found["cells"].split()], self.columns)
            if found
            else None
        )
        if not found or cells is None:
            return False
        is_average = not any(map(str.isdigit, found["time"]))
        job = "all" if found["cpu"] == "all" else f"cpu.{found['cpu']}"
        for column, value in zip(self.columns, cells, strict=True):
            metric = cpu_metric(column)
            if metric and value is not None:
                sample(self.averages if is_average else self.samples, metric, value, job=job)
        if not is_average and job == "all" and (time := clock_s(found["time"].split()[0])) is not None:
            self.times = [*self.times[:1], time]
        return True

    @override
    def begin(self, *, continues: bool) -> None:
        self.finish()
        self.samples, self.averages, self.times = {}, {}, []

    @override
    def finish(self) -> None:
        """Adds the output that ends here."""
        chosen = self.samples or self.averages
        if not chosen:
            return
        count = max(series.count for series in chosen.values())
        span_s = self.times[-1] - self.times[0] if len(self.times) == 2 else 0
        interval_s = span_s / (count - 1) if self.samples and count > 1 and span_s > 0 else None
        add_means(self.results.table(self.line).row(self.source.stem_without_round, WORKLOAD), chosen, interval_s)


FORMAT = Format(
    name="mpstat",
    help="mpstat's reports: CPU time by state, of all CPUs and of each",
    recognises=lambda source: any(map(_has_states, source.text_lines)),
    parse=_Reader.parse,
    titled=True,
    words=("CPU", "%usr", "%idle", "%iowait", "%soft", "Average:"),
)
