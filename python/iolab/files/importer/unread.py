"""Formats that are recognised and not read, each with what makes its tool write one that is."""

from __future__ import annotations

import re
from typing import NamedTuple


class UnreadFormat(NamedTuple):
    """A format: a line that only it has, and the way out."""

    name: str
    line: re.Pattern[str]
    remedy: str


UNREAD = tuple(
    UnreadFormat(name, re.compile(pattern), remedy)
    for name, pattern, remedy in (
        ("stress-ng's YAML", r"^\s*bogo-ops-per-second-real-time:", "use what --metrics prints"),
        ("the report of perf stat", r"Performance counter stats for", "run perf stat -x, and add a header"),
        ("IOR's JSON", r"\"bwMaxMIB\"", "leave out -O summaryFormat=JSON"),
        ("ioping's JSON", r"\s*\"ignored\": (?:true|false)", "leave out -json"),
        ("vmstat's report", r"^\s*r\s+b\s+swpd\s+free\s", "run iostat -x, mpstat or sar -d beside it"),
        ("vdbench's report", r"\bavg_\d+-\d+\b", "read its flatfile.html with `vdbench parseflat -i FILE -o out.csv`"),
        ("filebench's summary", r"IO Summary:\s+\d+ ops", "put ops/s and latency into a CSV file, a row per run"),
        ("a trace of blktrace", r"^\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d+\s+\d+\s+[A-Z]\s", "read it with iolab trace"),
        ("YCSB's report", r"^\[OVERALL\], (?:RunTime|Throughput)", "put its figures into a CSV file, a row per run"),
        ("a result file of Phoronix", r"<PhoronixTestSuite>", "phoronix-test-suite result-file-to-csv NAME"),
        ("iperf's report", r"^\[ *(?:ID|SUM)\] Interval\s+Transfer", "put its rates into a CSV file, a row per run"),
    )
)
