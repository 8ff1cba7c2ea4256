"""Lists by kernel, `NAME : figures`: throughput in MB/sec, the CPU split in percent, cycles and stalled cycles.

A line that names only the end of the one before it (`rq=1` after `2.6.24 + patches + rq=0`) goes on from it. MB/sec is
taken as 2^20 bytes per second; the source does not say.
"""

from __future__ import annotations

import re

from iolab.files.importer.format import Format, TableReader, parser
from iolab.files.importer.results import Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.text import numbers

MEGABYTE = 2**20
WORKLOAD = "kernels"
_SPLIT = re.compile(r"\s*+Kernel\s++(?=%)(?>(?:%\s?\w++\s*+)+)$")
_CYCLES = re.compile(r"\s*+Kernel\s++CPU_CYCLES\s++BACK END BUBBLES\s++\S")
_RATE = re.compile(r"\s*+(?P<name>[^:\s][^:]*+):\s*+(?P<rate>\d[\d.,]*+) MB/s(?:ec)?\s*+$")
"""In a text that has one of these headings; any other is a list of figures."""
_STATES = {"user": "user", "usr": "user", "nice": "nice", "sys": "system", "iowait": "iowait", "idle": "idle"}

Column = tuple[str, float]
"""Metric, and what a cell is multiplied by."""


class _Reader(TableReader):
    metrics: tuple[Column, ...] = ()
    is_rate_list = False
    last_name = ""

    def header(self, line: Line) -> bool:
        if _SPLIT.match(line.text):
            names = re.findall(r"%\s?(\w+)", line.text)
            columns = tuple((f"cpu_{_STATES.get(name.lower(), name.lower())}_percent", 1.0) for name in names)
        elif _CYCLES.match(line.text):
            columns = (("cpu_cycles", 1.0), ("stalled_cycles", 1.0), ("stalled_cycles_percent", 1.0))
        elif _RATE.match(line.text) and not (self.table and self.is_rate_list):
            self._open(line, (("rate_bytes_per_s", float(MEGABYTE)),))
            self.is_rate_list = True
            assert self.table is not None
            return self.row(line, self.table)
        else:
            return False
        self._open(line, columns)
        return True

    def _open(self, line: Line, columns: tuple[Column, ...]) -> None:
        self.metrics, self.columns = columns, [metric for metric, _ in columns]
        self.table = self.results.table(line.number, caption=self.captions.section, repeats="variants")
        self.is_rate_list, self.last_name = False, ""

    def row(self, line: Line, table: Table) -> bool:
        if self.is_rate_list:
            found = _RATE.match(line.text)
            name, words = (found["name"], [found["rate"]]) if found else ("", [])
        else:
            name, _, rest = line.text.rpartition(":")
            words = rest.split()
        cells = numbers(self.source, line, words, self.columns) if name.strip() else None
        if cells is None:
            return False
        setting = self._full_name(" ".join(name.split()))
        row = table.row(setting, WORKLOAD)
        for (metric, scale), value in zip(self.metrics, cells, strict=True):
            row.add(metric, None if value is None else value * scale)
        return True

    def _full_name(self, name: str) -> str:
        beginning, plus, _ = self.last_name.rpartition(" + ")
        if plus and "=" in name and " " not in name:
            name = f"{beginning} + {name}"
        self.last_name = name
        return name


def _recognises(source: Source) -> bool:
    return any(source.has_line(pattern) for pattern in (_SPLIT, _CYCLES))


FORMAT = Format(
    name="kernels",
    help="lists by kernel: MB/sec, CPU split, cycles",
    recognises=_recognises,
    parse=parser(_Reader),
    words=("Kernel", "% user", "% iowait", "CPU_CYCLES", "MB/sec"),
)
