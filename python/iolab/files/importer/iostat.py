"""iostat's text, plain, -x, -h or -t, of any version, and -x of FreeBSD and illumos: columns are found by the header,
which has the device first, or last with -h, where a report of a device has several tables. Each device is a workload
`iostat DEVICE`, the CPU shares are `iostat cpu`. Values are means over the reports; the first report, averages since
the boot, is left out where others follow it, unless the command above has -y.

Units as the header names them: sectors are 512 bytes, kB 1024 and MB 2^20; times are milliseconds. `await` runs from
the request's entry into the queue to its completion. Columns of discards are not read.
"""

from __future__ import annotations

import re

from typing_extensions import override

from iolab.domain.lead import OF_DEVICE
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Table
from iolab.files.importer.shell_commands import command_of
from iolab.files.importer.source import Line, Source
from iolab.files.importer.sysstat import Means, OutputReader, add_means, cpu_metric, decimal_point, sample, state_peak
from iolab.files.importer.text import numbers
from iolab.files.importer.written_number import is_number

SECTOR, KIB, MIB, MS = 512.0, 1024.0, 1048576.0, 1e6
WORKLOAD = "iostat"
HEADLESS_MIN = 5
"""A line of more words than this, all figures but the first, is a row without a header."""
CPU = "cpu"
"""In a device's place: the shares of CPU time."""
_DEVICE = re.compile(r"\s*+(?:[Dd]evice:?\s++(?P<columns>\S.*?)|(?P<before>\S.*\S)\s++[Dd]evice)\s*+$")
_DEVICE_ALONE = re.compile(r"\s*+[a-z][\w!/.-]{1,63}+\s*+$")
_COMMAND = re.compile(r"\biostat\b")
_WITHOUT_BOOT = re.compile(r"\s-[a-zA-Z]*y")
_CPU = re.compile(r"\s*+avg-cpu:\s++(?P<columns>%.*)")

Meaning = tuple[str, str, float]
"""Metric, op, what a cell is multiplied by."""

COLUMNS: dict[str, Meaning] = {
    "tps": ("iops", "all", 1.0),
    "r/s": ("iops", "read", 1.0),
    "w/s": ("iops", "write", 1.0),
    "f/s": ("iops", "sync", 1.0),
    "await": ("latency_ns_mean", "all", MS),
    "r_await": ("latency_ns_mean", "read", MS),
    "w_await": ("latency_ns_mean", "write", MS),
    "f_await": ("latency_ns_mean", "sync", MS),
    "rqm/s": ("merges_per_s", "all", 1.0),
    "svctm": ("device_service_ns_mean", "all", MS),
    "rrqm/s": ("merges_per_s", "read", 1.0),
    "wrqm/s": ("merges_per_s", "write", 1.0),
    "%rrqm": ("merged_percent", "read", 1.0),
    "%wrqm": ("merged_percent", "write", 1.0),
    "avgrq-sz": ("request_bytes_mean", "all", SECTOR),
    "areq-sz": ("request_bytes_mean", "all", KIB),
    "rareq-sz": ("request_bytes_mean", "read", KIB),
    "wareq-sz": ("request_bytes_mean", "write", KIB),
    "avgqu-sz": ("queue_depth_mean", "all", 1.0),
    "aqu-sz": ("queue_depth_mean", "all", 1.0),
    "%util": ("device_busy_percent", "all", 1.0),
    # FreeBSD's and illumos' iostat -x.
    "kr/s": ("rate_bytes_per_s", "read", KIB),
    "kw/s": ("rate_bytes_per_s", "write", KIB),
    "ms/r": ("latency_ns_mean", "read", MS),
    "ms/w": ("latency_ns_mean", "write", MS),
    "ms/t": ("latency_ns_mean", "all", MS),
    "svc_t": ("latency_ns_mean", "all", MS),
    "asvc_t": ("device_service_ns_mean", "all", MS),
    "%b": ("device_busy_percent", "all", 1.0),
    **{
        name: ("rate_bytes_per_s", op, scale)
        for op, names in (
            ("all", (("kB/s", KIB), ("MB/s", MIB))),
            (
                "read",
                (("rsec/s", SECTOR), ("rd_sec/s", SECTOR), ("Blk_read/s", SECTOR), ("rkB/s", KIB), ("kB_read/s", KIB)),
            ),
            ("read", (("rMB/s", MIB), ("MB_read/s", MIB))),
            (
                "write",
                (("wsec/s", SECTOR), ("wr_sec/s", SECTOR), ("Blk_wrtn/s", SECTOR), ("wkB/s", KIB), ("kB_wrtn/s", KIB)),
            ),
            ("write", (("wMB/s", MIB), ("MB_wrtn/s", MIB))),
        )
        for name, scale in names
    },
}
"""Columns of all versions -> what they are."""


_REQUESTS = {"read": ("r/s",), "write": ("w/s",), "sync": ("f/s",), "all": ("tps", "r/s", "w/s")}
_PER_REQUEST = ("latency_ns_mean", "request_bytes_mean")
"""Weighted by the requests of each report; without any, they are no figure."""
_WITH_UNIT = re.compile(r"(?P<digits>\d++(?:\.\d++)?)(?P<unit>[BkMGTP])")
_KIB_OF_UNIT = {"B": 1 / 1024, "k": 1.0, "M": 2.0**10, "G": 2.0**20, "T": 2.0**30, "P": 2.0**40}
"""What --human writes behind sizes, whose columns are in kB."""


class Reports:
    """The means over the reports, by device. The first report counts only if it is the only one, or is of an interval
    as the others are."""

    def __init__(self, workload: str = WORKLOAD, *, first_since_boot: bool = True) -> None:
        self.line = 1
        """Where the output stands in its text."""
        self._workload = workload
        self._first_since_boot = first_since_boot
        self._seen: set[str] = set()
        self._first: dict[str, Means] = {}
        self._later: dict[str, Means] = {}

    def add(self, name: str, values: dict[str, float]) -> None:
        """One report of the device `name`, or of `CPU`: column -> number."""
        is_first = self._first_since_boot and name not in self._seen
        means = (self._first if is_first else self._later).setdefault(name, {})
        self._seen.add(name)
        meaning = _cpu_meaning if name == CPU else COLUMNS.get
        requests = {op: sum(values.get(column, 0.0) for column in _REQUESTS[op]) for op in _REQUESTS}
        reported: set[tuple[str, str]] = set()
        for column, value in values.items():
            known = meaning(column)
            # JSON of sysstat has some columns twice, under an old name too.
            if known and known[:2] not in reported:
                metric, op, scale = known
                reported.add((metric, op))
                weight = requests[op] if metric in _PER_REQUEST else 1.0
                sample(means, metric, value * scale, op=op, weight=weight)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was added."""
        return not self._seen

    @property
    def has_intervals(self) -> bool:
        """Whether a report is of an interval."""
        return bool(self._later)

    def finish(self, source: Source, results: Results) -> None:
        """Adds a row of means for each device, the busiest first, and for the CPUs: without the first report, if there
        are others."""
        table = results.table(self.line)
        reports = self._later or self._first
        for name in sorted(reports, key=lambda name: (name == CPU, *idleness(reports[name]))):
            row = table.row(source.stem_without_round, f"{self._workload} {name}")
            add_means(row, reports[name], interval_s=None)
            state_peak(name, reports[name], results, first=2 if self._first else 1)
        if self._first and self._later:
            devices = [means.values() for name, means in self._first.items() if name != CPU]
            is_idle = bool(devices) and not any(series.mean for of_device in devices for series in of_device)
            which = "the first report, without a request," if is_idle else "the first report"
            results.problem(f"{which} is left out as the averages since the boot; it counts below '$ iostat -y'")


def idleness(means: Means) -> tuple[float, float]:
    """What sorts devices, the busiest first: by the time in which they had requests, else by how many they had."""
    rates = {op: series.mean or 0.0 for (metric, op, _), series in means.items() if metric == "iops"}
    busy = means.get((OF_DEVICE, "all", "all"))
    return -((busy and busy.mean) or 0.0), -(rates.get("all", 0.0) or sum(rates.values()))


class _Reader(OutputReader):
    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self.reports = Reports()
        self.outputs = [self.reports]
        self.is_cpu = self.is_last = False
        self.waiting: dict[str, dict[str, float]] = {}
        """What was read of a report with several tables, by device."""
        self.alone: Line | None = None
        """The line above, if it may be a long device name, whose figures stand below it."""
        self.joined: set[str] = set()
        """The devices whose names stand so."""
        self.has_boot = True
        """Whether the first report is of the time since the boot, as it is without -y."""

    def header(self, line: Line) -> bool:
        cpu = _CPU.match(line.text)
        found = cpu or _DEVICE.match(line.text)
        columns = _columns(found) if found else []
        if not found or not (cpu or set(columns) & COLUMNS.keys()):
            return False
        self._no_device()
        self.is_cpu, self.is_last = bool(cpu), not cpu and found["columns"] is None
        if any(set(columns) & values.keys() for values in self.waiting.values()) or not self.is_last:
            self.report()
        self.columns = columns
        self.table = self.results.table(line.number)
        if self.reports.is_empty and not self.waiting:
            self.reports.line = line.number
        return True

    def row(self, line: Line, table: Table) -> bool:
        words = list(line.words)
        if self.alone is not None and len(words) == len(self.columns) and all(map(is_number, map(in_kib, words))):
            words.insert(0, self.alone.text.strip())
            self.joined.add(words[0])
            self.alone = None
        self._no_device()
        if not self.is_cpu and not self.is_last and _DEVICE_ALONE.match(line.text):
            self.alone = line
            return True
        name = CPU if self.is_cpu else words.pop(-1 if self.is_last else 0)
        if len(words) == len(self.columns):
            words = [in_kib(word) for word in words]
        cells = numbers(self.source, line, words, self.columns)
        if cells is None:
            return False
        by_column = zip(self.columns, cells, strict=True)
        values = {column: value for column, value in by_column if value is not None}
        if self.is_last:
            if values.keys() & self.waiting.get(name, {}).keys():
                self.report()
            self.waiting.setdefault(name, {}).update(values)
        else:
            self.reports.add(name, values)
        return True

    def _no_device(self) -> None:
        """What stood alone has no figures below it."""
        if (line := self.alone) is not None:
            self.alone = None
            self.captions.read(line)
            self.between(line)

    def end(self) -> None:
        """All lines are read: the last report is over."""
        if self.alone is not None and self.alone.text.strip() in self.joined:
            self.results.problem("the table is cut off in this line, which is left out", self.alone.number)
        self.report()

    @override
    def between(self, line: Line) -> None:
        if (command := command_of(line.text)) and _COMMAND.search(command):
            self.has_boot = not _WITHOUT_BOOT.search(command)
            self.begin(continues=False)
        elif not self.columns and len(line.words) > HEADLESS_MIN and all(map(is_number, line.words[1:])):
            # Of a report that began above the text: what follows is no first one.
            self.reports = Reports(first_since_boot=False)
            self.outputs = [self.reports]
            self.results.problem("a row without a header above it that names known columns: left out", line.number)
        # The header of a table without a column that is read, such as that of discards.
        elif not _DEVICE.match(line.text):
            super().between(line)
            if len(line.words) > 1 and COLUMNS.keys() >= set(line.words[1:]) - {"svctm", "avgrq-sz"}:
                self.results.problem("columns go on in a line of their own, as a page broke it: left out", line.number)

    @override
    def begin(self, *, continues: bool) -> None:
        self.report()
        if self.reports.is_empty:
            self.outputs.pop()
        self.reports = Reports(first_since_boot=self.has_boot and not continues)
        self.outputs.append(self.reports)

    def report(self) -> None:
        """The report ends: all of its tables are read."""
        for name, values in self.waiting.items():
            self.reports.add(name, values)
        self.waiting = {}


def _columns(header: re.Match[str]) -> list[str]:
    found = header.groupdict()
    return (found["columns"] or found.get("before") or "").split()


def in_kib(word: str) -> str:
    """`1.7M`, as --human writes it, as a number of kB; other words as they are, with a decimal point."""
    word = decimal_point(word)
    found = _WITH_UNIT.fullmatch(word)
    return f"{float(found['digits']) * _KIB_OF_UNIT[found['unit']]:.6f}" if found else word


def _cpu_meaning(column: str) -> Meaning | None:
    metric = cpu_metric(column)
    return (metric, "all", 1.0) if metric else None


def _parse(source: Source, results: Results) -> None:
    reader = _Reader(source, results)
    reader.read()
    reader.end()
    has_intervals = any(reports.has_intervals for reports in reader.outputs)
    for reports in reader.outputs:
        reports.finish(source, results)
        if reader.has_boot and not has_intervals and not reports.is_empty:
            what = "a report alone is, without -y and as the first, of the time since the boot and of no load alone"
            results.problem(f"{what}; the second report of 'iostat 10 2' is of ten seconds", reports.line)
        if has_intervals and not reports.has_intervals and not reports.is_empty:
            what = "a report alone, as iostat prints of the time since the boot, stands beside others of intervals"
            results.problem(f"{what}; if it is of an interval, write '$ iostat -y' above it", reports.line)


FORMAT = Format(
    name="iostat",
    help="iostat's reports, plain, -x, -h or -t: devices and CPUs",
    recognises=lambda source: source.has_line(_CPU) or any(_names_columns(line) for line in source.text_lines),
    parse=_parse,
    words=("avg-cpu", "Device", "rkB/s", "w_await", "%util", "tps"),
    titled=True,
)


def _names_columns(line: str) -> bool:
    found = _DEVICE.match(line)
    return bool(found and set(_columns(found)) & COLUMNS.keys())
