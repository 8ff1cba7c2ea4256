"""`vmstat -d`: what each disk counted since the boot. Of several reports in a text the differences between the first
and the last are read, else the counts since the boot.

A sector is 512 bytes, whatever the disk's are; milliseconds are the sum over all requests (Documentation/admin-guide/
iostats.rst).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from iolab.files.importer.format import Format, TableReader
from iolab.files.importer.results import Results, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.sysstat import clock_s
from iolab.files.importer.written_number import number

WORKLOAD = "vmstat"
SECTOR = 512.0
MS = 1e6
COUNTS = 10
DAY = 86_400
_BANNER = re.compile(r"\s*+disk-?\s++-++reads-++")
_HEADER = re.compile(r"\s*+total\s++merged\s++sectors\s++ms\s++total\s++merged\s++sectors\s++ms\s")
_OPS = (("read", 0), ("write", 4))
"""Operation -> where its total, merged, sectors and ms begin."""


@dataclass
class _Disk:
    first: list[float]
    last: list[float] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    """Of the reports, in seconds of the day, with vmstat -t."""

    @property
    def seconds(self) -> float | None:
        """From the first report to the last; None if they don't state it."""
        return float(self.times[-1] - self.times[0]) % DAY or None if len(self.times) > 1 else None


class _Reader(TableReader):
    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self.line = 1
        self.disks: dict[str, _Disk] = {}

    def header(self, line: Line) -> bool:
        is_banner = bool(_BANNER.match(line.text))
        if is_banner and not self.disks:
            self.line = line.number
        if is_banner or _HEADER.match(line.text):
            self.table = self.results.table(line.number)
            return True
        return False

    def row(self, line: Line, table: Table) -> bool:
        name, *words = line.words
        counts = [number(word) for word in words[:COUNTS]]
        known = [count for count in counts if count is not None]
        if len(known) < COUNTS:
            return False
        if name in self.disks:
            self.disks[name].last = known
        else:
            self.disks[name] = _Disk(known)
        self.disks[name].times += [time for word in words[COUNTS:] if (time := clock_s(word)) is not None]
        return True


def _parse(source: Source, results: Results) -> None:
    reader = _Reader(source, results)
    reader.read()
    table = results.table(reader.line)
    busiest = sorted(reader.disks.items(), key=lambda one: -sum(one[1].last or one[1].first))
    for name, disk in busiest:
        counts = disk.first
        if disk.last:
            counts = [after - before for before, after in zip(disk.first, disk.last, strict=True)]
        if not any(counts[begin] for _, begin in _OPS):
            continue
        row = table.row(source.stem_without_round, f"{WORKLOAD} {name}")
        for op, begin in _OPS:
            total, _, sectors, ms = counts[begin : begin + 4]
            if disk.seconds:
                row.add("iops", total / disk.seconds, op=op)
                row.add("rate_bytes_per_s", sectors * SECTOR / disk.seconds, op=op)
            row.add("ops", total, op=op)
            row.add("bytes", sectors * SECTOR, op=op)
            row.add("latency_ns_mean", ms * MS / total if total else None, op=op, absent="no request")
            row.add("request_bytes_mean", sectors * SECTOR / total if total else None, op=op, absent="no request")
    if reader.disks:
        several = any(disk.last for disk in reader.disks.values())
        no_rates = "" if any(disk.seconds for disk in reader.disks.values()) else "; without -t it states no rates"
        results.problem(
            f"figures are what was counted between the first report and the last{no_rates}"
            if several
            else "figures are sums and means since the boot, not of one load; vmstat -d 1 5 shows what happens now"
        )


FORMAT = Format(
    name="vmstat-disks",
    help="vmstat -d: requests, bytes and latencies of each disk, since the boot or between two reports",
    recognises=lambda source: source.has_line(_BANNER),
    parse=_parse,
    words=("disk-", "reads", "writes", "merged", "sectors"),
    titled=True,
)
