"""biotop of bcc and of libbpf-tools: who issued how many I/Os, of how much, and how long they took on average. The
screens of one output follow each other, and are counted together, as are processes of one name."""

from __future__ import annotations

import re

from iolab.files.importer.format import Format
from iolab.files.importer.results import Results
from iolab.files.importer.shell_commands import command_of
from iolab.files.importer.source import Source
from iolab.files.importer.titles import may_name
from iolab.files.importer.written_number import number

WORKLOAD = "biotop"
KIB, MS = 1024.0, 1e6
_HEADER = re.compile(r"\s*+PID\s++COMM\s++D\s++MAJ\s++MIN\s++DISK\s++I/O\s++Kbytes\s++AVGms\s*+$")
_ROW = re.compile(
    r"\s*+\d{1,9}+\s++(?:(?P<name>\S.{0,40}?)\s++)?(?P<way>[RW])\s++\d{1,6}+\s++\d{1,9}+\s++(?P<disk>\S{1,64})\s++"
    r"(?P<count>\d{1,15}+)\s++(?P<kib>\d[\d.]{0,15}+)\s++(?P<mean>\d[\d.]{0,15}+)\s*+$"
)
_BEGINS = re.compile(r"\s*+Tracing\b")
_OPS = {"R": "read", "W": "write"}


def _parse(source: Source, results: Results) -> None:
    outputs: list[tuple[int, dict[str, dict[str, list[tuple[float, float, float]]]]]] = []
    goes_on = False
    for line in source.lines(results.problem):
        if _HEADER.match(line.text):
            if not goes_on:
                outputs.append((line.number, {}))
            goes_on = True
        elif outputs and (row := _ROW.match(line.text)):
            count, kib, mean = (number(row[name]) or 0.0 for name in ("count", "kib", "mean"))
            workload = f"{WORKLOAD} {row['name'] or 'without a name'} {row['disk']}"
            outputs[-1][1].setdefault(workload, {}).setdefault(_OPS[row["way"]], []).append((count, kib, mean))
        elif _BEGINS.match(line.text) or command_of(line.text) or may_name(line.text):
            goes_on = False
    results.shown |= {"ops", "bytes"}
    for at, by_workload in outputs:
        table = results.table(at)
        for workload, by_op in by_workload.items():
            made = table.row(source.stem_without_round, workload)
            for op, parts in by_op.items():
                ops = sum(count for count, _, _ in parts)
                spent_ms = sum(count * mean for count, _, mean in parts)
                made.add("ops", ops, op=op)
                made.add("bytes", sum(kib for _, kib, _ in parts) * KIB, op=op)
                made.add("latency_ns_mean", spent_ms / ops * MS if ops else None, op=op)


FORMAT = Format(
    name="biotop",
    help="biotop's screens: I/Os, bytes and mean latencies of each process on each disk",
    recognises=lambda source: source.has_line(_HEADER),
    parse=_parse,
    words=("PID", "COMM", "DISK", "Kbytes", "AVGms"),
    titled=True,
)
