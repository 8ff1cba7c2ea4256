"""iosnoop of perf-tools without -s or -t: a line per I/O with its latency, and without its time. Nothing can be traced
from it; how long the I/Os took is read."""

from __future__ import annotations

import re

from iolab.base.plain_text import counted
from iolab.files.importer.each_latency import add_latencies
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results
from iolab.files.importer.source import Source
from iolab.files.importer.written_number import number

WORKLOAD = "iosnoop"
MS = 1e6
_HEADER = re.compile(r"\s*+COMM\s++PID\s++TYPE\s++DEV\s++BLOCK\s++BYTES\s++LATms\s*+$")
_ROW = re.compile(
    r"\s*+\S.{0,40}?\s++\d{1,9}+\s++(?P<type>[A-Z]{1,8}+)\s++(?P<device>\d{1,6}+,\d{1,9}+)\s++\d{1,20}+\s++"
    r"(?P<bytes>\d{1,15}+)\s++(?P<latency>\d[\d.]{0,20}+)\s*+$"
)
_OPS = {"R": "read", "W": "write", "D": "discard", "F": "sync"}


def _parse(source: Source, results: Results) -> None:
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    line_of: dict[str, int] = {}
    others = 0
    for line in source.lines(results.problem):
        row = _ROW.match(line.text)
        if row is None:
            continue
        op = _OPS.get(row["type"][0])
        latency, size = number(row["latency"]), number(row["bytes"])
        if op is None or latency is None or size is None:
            others += 1
            continue
        line_of.setdefault(row["device"], line.number)
        found.setdefault(row["device"], {}).setdefault(op, []).append((latency * MS, size))
    for device, by_op in found.items():
        row_of = results.table(line_of[device]).row(source.stem_without_round, f"{WORKLOAD} {device}")
        for op, requests in sorted(by_op.items()):
            add_latencies(row_of, op, [latency for latency, _ in requests])
            row_of.add("request_bytes_mean", sum(size for _, size in requests) / len(requests), op=op)
    if others:
        results.problem(f"{counted(others, 'line')} of other operations left out")
    if found:
        results.problem("it has no times, so no rates and no trace: iosnoop -ts writes what iolab trace reads")


FORMAT = Format(
    name="iosnoop",
    help="iosnoop of perf-tools without times: latencies of each device",
    recognises=lambda source: source.has_line(_HEADER),
    parse=_parse,
    words=("COMM", "PID", "TYPE", "DEV", "BLOCK", "LATms"),
    titled=True,
)
