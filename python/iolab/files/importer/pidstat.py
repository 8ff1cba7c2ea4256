"""`pidstat -d`: rates of reads and writes of each process. kB are 1024 bytes, -1.00 is unknown.

A process that a report does not list did no I/O in that interval: means are over all reports. The averages at the end
are read if there is nothing else. Cancelled writes and delays are not read.
"""

from __future__ import annotations

import re
from collections import Counter

from typing_extensions import override

from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.sysstat import AVERAGE, TIME, OutputReader, decimal_point
from iolab.files.importer.written_number import number

WORKLOAD = "pidstat"
KIB = 1024.0
RATES = {"kB_rd/s": "read", "kB_wr/s": "write"}
PROCESSES_MAX = 200
"""The most processes of an output that become workloads: those with the most bytes."""
_HEADER = re.compile(
    r"\s*+(?:#\s*+)?(?P<time>\S.*?)??\s++UID\s++(?P<columns>(?:TGID\s++TID|PID)\s.*\bkB_(?:rd|wr)/s.*)"
)
_ROW = re.compile(rf"\s*+(?P<time>{TIME}|\d{{9,11}}|{AVERAGE})\s++(?P<cells>[\w.-]++\s.*)")
Process = tuple[str, str]
"""Command and PID."""


class _Reports:
    """What the reports of one output list."""

    def __init__(self) -> None:
        self.times: set[str] = set()
        self.sums: dict[Process, dict[str, float]] = {}

    def add(self, time: str, process: Process, rates: dict[str, float]) -> None:
        self.times.add(time)
        sums = self.sums.setdefault(process, {})
        for op, rate in rates.items():
            sums[op] = sums.get(op, 0.0) + rate


class _Reader(OutputReader):
    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self.line = 1
        self.samples, self.averages = _Reports(), _Reports()

    def header(self, line: Line) -> bool:
        found = _HEADER.match(line.text)
        if not found:
            return False
        self.columns = ["UID", *found["columns"].split()]
        self.table = self.results.table(line.number)
        if not self.samples.times and not self.averages.times:
            self.line = line.number
        return True

    def row(self, line: Line, table: Table) -> bool:
        found = _ROW.match(line.text)
        words = found["cells"].split(maxsplit=len(self.columns) - 1) if found else []
        if not found or len(words) != len(self.columns):
            return False
        cells = dict(zip(self.columns, words, strict=True))
        rates = {op: number(decimal_point(cells[column])) for column, op in RATES.items() if column in cells}
        if None in rates.values():
            return False
        is_average = not any(map(str.isdigit, found["time"]))
        process = (cells.get("Command", ""), cells.get("PID") or cells.get("TGID", ""))
        if process[1] != "-":
            known = {op: rate * KIB for op, rate in rates.items() if rate is not None and rate >= 0}
            (self.averages if is_average else self.samples).add(found["time"], process, known)
        return True

    @override
    def begin(self, *, continues: bool) -> None:
        self.finish()
        self.samples, self.averages = _Reports(), _Reports()

    @override
    def finish(self) -> None:
        """Adds the output that ends here: a workload for each process, those with the most bytes first."""
        chosen = self.samples if self.samples.times else self.averages
        table = self.results.table(self.line)
        commands = Counter(command for command, _ in chosen.sums)
        busiest = sorted(chosen.sums.items(), key=lambda one: -sum(one[1].values()))
        for (command, pid), sums in busiest[:PROCESSES_MAX]:
            name = command if commands[command] == 1 else f"{command}[{pid}]"
            row = table.row(self.source.stem_without_round, f"{WORKLOAD} {name}")
            for op in RATES.values():
                mean = sums[op] / len(chosen.times) if op in sums else None
                row.add("rate_bytes_per_s", mean, op=op, absent="not accessible to pidstat")
        if len(busiest) > PROCESSES_MAX:
            self.results.problem(f"all but the {PROCESSES_MAX} processes with the most bytes are left out")


FORMAT = Format(
    name="pidstat",
    help="pidstat -d: rates of reads and writes of each process",
    recognises=lambda source: source.has_line(_HEADER),
    parse=_Reader.parse,
    titled=True,
    words=("UID", "PID", "kB_rd/s", "kB_wr/s", "Command"),
)
