"""fs_mark's table: a line per loop (-L), with -v the time of each system call. A loop is a round: it makes new files in
a filesystem that holds those of the loops before.

Sizes are bytes, times microseconds (the header that fs_mark prints reports it).
"""

from __future__ import annotations

import re

from iolab.files.importer.format import Format, TableReader, parser
from iolab.files.importer.results import Results, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.text import numbers

US = 1e3
COUNT_END = 2.0**63
_HEADER = re.compile(r"\s*FSUse%\s+Count\s+Size\s+Files/sec\s+App\s+Overhead")
_CALL = re.compile(r"(?<![A-Z])(?P<call>[A-Z]++) \(Min/Avg/Max\)")
_THREADS = re.compile(r"#.*?(?P<threads>\d{1,6}+) thread\(s\)")
_COMMAND = re.compile(r"#\s+(?:\S*/)?fs_mark\s+(?P<arguments>.*)")
_FIXED = (
    ("FSUse%", "filesystem_used_percent", 1.0),
    ("Files/sec", "files_per_s", 1.0),
    ("App Overhead", "app_overhead_s", 1e-6),
)
"""Column, metric, what a cell is multiplied by."""

CALLS = {
    "CREAT": "create",
    "WRITE": "write",
    "FSYNC": "fsync",
    "SYNC": "system_sync",
    "CLOSE": "close",
    "UNLINK": "unlink",
}
"""What -v calls a system call -> iolab's operation."""

SUMMARIES = ("min", "mean", "max")


class _Reader(TableReader):
    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self.threads: int | None = None
        """As the heading states; None if it was left out."""
        self.calls: list[str] = []
        self.files_before = 0.0

    def header(self, line: Line) -> bool:
        if not _HEADER.match(line.text):
            return False
        self.calls = [call for call in _CALL.findall(line.text) if call in CALLS]
        timed = [f"{call} {name}" for call in self.calls for name in SUMMARIES]
        self.columns = ["FSUse%", "Count", "Size", "Files/sec", "App Overhead", *timed]
        self.table = self.results.table(line.number)
        self.files_before = 0.0
        return True

    def row(self, line: Line, table: Table) -> bool:
        cells = numbers(self.source, line, line.words, self.columns)
        if cells is None:
            return False
        values = dict(zip(self.columns, cells, strict=True))
        if any(not 0 <= (values[name] or 0.0) < COUNT_END for name in ("Count", "Size")):
            self.results.problem("more files or bytes than there can be, left out", line.number)
            return True
        made = (values["Count"] or 0.0) - self.files_before
        self.files_before = values["Count"] or 0.0
        row = table.row(self.captions.section or self.source.stem_without_round, self._workload(values["Size"], made))
        for column, metric, scale in _FIXED:
            value = values[column]
            row.add(metric, None if value is None else value * scale)
        row.add("ops", made if made > 0 else None, op="create")
        for call in self.calls:
            times_us = [values[f"{call} {name}"] for name in SUMMARIES]
            for name, time_us in zip(SUMMARIES, times_us, strict=True):
                value = None if time_us is None or not any(times_us) else time_us * US
                row.add(f"latency_ns_{name}", value, op=CALLS[call], absent="never called")
        return True

    def _workload(self, size: float | None, made: float) -> str:
        if self.threads is None:
            workload = f"fs_mark[size={round(size or 0)}]"
            self.results.workloads.setdefault(workload, {"kind": "fs_mark", "file_size": round(size or 0)})
            return workload
        workload = f"fs_mark[size={round(size or 0)},threads={self.threads}]"
        options = {"threads": self.threads, "file_size": round(size or 0), "files": max(1, int(made / self.threads))}
        self.results.workloads.setdefault(workload, {"kind": "fs_mark", **options})
        return workload

    def between(self, line: Line) -> None:
        if found := _THREADS.match(line.text):
            self.threads = max(1, int(found["threads"]))
        elif found := _COMMAND.match(line.text):
            given = re.search(r"-t\s+(\d{1,6})", found["arguments"])
            self.threads = max(1, int(given[1])) if given else 1


FORMAT = Format(
    name="fs_mark",
    help="fs_mark's table, with or without -v",
    recognises=lambda source: source.has_line(_HEADER),
    parse=parser(_Reader),
    words=("FSUse%", "Files/sec", "App Overhead", "fs_mark", "Count"),
    titled=True,
)
