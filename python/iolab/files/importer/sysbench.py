"""sysbench's report, versions 0.4 to 1.1: fileio, cpu, memory, threads, mutex and the SQL tests.

Megabytes are 2^20 bytes, latencies milliseconds with two decimals. Lines of --report-interval become a time series;
--histogram is not read.
"""

from __future__ import annotations

import re

from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Row
from iolab.files.importer.series import Series
from iolab.files.importer.source import Line, Source
from iolab.files.importer.written_number import number

MIB, NS_PER_MS, NS_PER_S = 2**20, 1e6, 1e9
TOO_SMALL = "below the two decimals that sysbench prints"

_BEGIN = re.compile(r"Running the test with following options:")
_BANNER = re.compile(r"sysbench [\d.]{1,20}+\S*:?\s.*multi-threaded system evaluation benchmark")
"""Versions before 1.0 print it above the other; people leave out what is between it and the results."""
_PART_HEADING = re.compile(
    r"(?:File operations|Throughput|SQL statistics|OLTP test statistics):$|\[\s*+\d{1,9}s\s*+\] (?:threads|thds): \d"
)
"""Where a report is posted from on whose beginning is left out."""
_MIB = re.compile(r"\s++(?:read|written), MiB/s:\s++\d")
_FURTHER = re.compile(r"General statistics:|Throughput:|Threads started!|Test execution summary:|Latency \(ms\):")
_COMMAND = re.compile(r"(?:[$#>] )?(?:\S*/)?sysbench\s.*--")
_OPTION = re.compile(r"--(?P<name>[\w-]{1,40}+)=(?P<value>\S{1,80}+)")
_THREADS = re.compile(r"Number of threads:\s++(?P<count>\d{1,9}+)\s*+$")
_TESTS = {
    "Doing sequential read test": "fileio seqrd",
    "Doing sequential write (creation) test": "fileio seqwr",
    "Doing sequential rewrite test": "fileio seqrewr",
    "Doing random read test": "fileio rndrd",
    "Doing random write test": "fileio rndwr",
    "Doing random r/w test": "fileio rndrw",
    "Running memory speed test with the following options:": "memory",
    "SQL statistics:": "sql",
    "OLTP test statistics:": "sql",
}
"""A line of the report -> what the workload is called."""
_PRIMES = re.compile(r"Prime numbers limit:\s++\d")
_BLOCK = re.compile(r"\s*+[Bb]lock size:?\s++(?P<size>\d{1,9}+[KM]?(?:iB|b)?)\s*+$")
_FIELD = re.compile(r"\s*+(?P<name>[a-z0-9][\w ,/().]*?):\s++(?P<value>\d[\d.]*+)(?P<unit>m?s)?\s*+$")
_PER_SECOND = re.compile(r"\s*+(?P<name>[a-z ]+):\s++(?P<count>\d{1,15}+)\s++\((?P<rate>[\d.]++) per sec\.\)")
_OPERATIONS = re.compile(r"Total operations: \d{1,15}+ \(\s*+(?P<rate>[\d.]++) per second\)")
_TRANSFERRED = re.compile(r"[\d.]++ MiB transferred \((?P<rate>[\d.]++) MiB/sec\)")
_OLD_TRANSFERRED = re.compile(
    r"Read (?P<read>[\d.]++)(?P<of_read>[KMGT]?)b\s+Written (?P<write>[\d.]++)(?P<of_write>[KMGT]?)b\s+"
    r"Total transferred \S++\s+\((?P<rate>[\d.]++)(?P<of_rate>[KMGT]?)b/sec\)"
)
"""Of version 0.4, by powers of 1024 bytes."""
_OLD_REQUESTS = re.compile(r"\s*+(?P<rate>[\d.]++) Requests/sec executed")
_LATENCY_HEADING = re.compile(r"(?:Latency \(ms\)|\s*+(?:per-request statistics|response time|Response time)):")
_PERCENTILE = re.compile(r"(?:approx\.\s++)?(?P<which>\d{1,2})(?>(?:th)?)\s++percentile$")
_INTERVAL = re.compile(r"\[\s*+(?P<second>\d{1,9})(?:\.\d{1,9})?s\s*+\] (?P<rest>.*)")
_PART = re.compile(
    r"(?P<name>(?:reads|writes)(?=: [\d.]{1,20}+ MiB/s)|fsyncs(?=: [\d.]{1,20}+/s)|tps|qps|eps): (?P<value>\d[\d.]*+)"
)
"""`reads` without a unit are the queries of an SQL test."""
_RATES = {
    "reads/s": ("read", "iops", 1.0),
    "writes/s": ("write", "iops", 1.0),
    "fsyncs/s": ("all", "fsyncs_per_s", 1.0),
    "read, MiB/s": ("read", "rate_bytes_per_s", float(MIB)),
    "written, MiB/s": ("write", "rate_bytes_per_s", float(MIB)),
    "events per second": ("all", "events_per_s", 1.0),
    "events/s (eps)": ("all", "events_per_s", 1.0),
}
_LATENCIES = {"min": "latency_ns_min", "avg": "latency_ns_mean", "max": "latency_ns_max"}
_PARTS = {
    "reads": ("read", "rate_bytes_per_s", float(MIB)),
    "writes": ("write", "rate_bytes_per_s", float(MIB)),
    "fsyncs": ("all", "fsyncs_per_s", 1.0),
    "tps": ("all", "transactions_per_s", 1.0),
    "qps": ("all", "queries_per_s", 1.0),
    "eps": ("all", "events_per_s", 1.0),
}
_PREPARED = re.compile(r"(?P<size>\d{1,20}+) bytes written in (?P<time>[\d.]{1,20}+) seconds \(")
"""How long it took to write the files of a test of files."""
_COUNTED = {"transactions": "transactions_per_s", "queries": "queries_per_s"}
_FIRST_PARTS = ("File operations:", "SQL statistics:", "OLTP test statistics:")
"""What a report begins with, less what stands above it."""
_SUMS = ("iops", "rate_bytes_per_s")


class _Reader:
    def __init__(self, source: Source, results: Results) -> None:
        self.source = source
        self.results = results
        self.first_options: dict[str, dict[str, str]] = {}
        """Of each workload."""
        self._forget()

    def _forget(self) -> None:
        self.test = ""
        self.options: dict[str, str] = {}
        """Of the command above the report."""
        self.threads = self.block = ""
        self.first = 0
        self.in_latency = False
        self.values: dict[tuple[str, str], float | None] = {}
        self.series: dict[tuple[str, str], Series] = {}
        self.seconds: list[int] = []
        """The first two times of the time series."""
        self.events: float | None = None

    def read(self) -> None:
        for line in self.source.lines(self.results.problem):
            text = line.text.strip()
            if _COMMAND.match(text):
                self._finish()
                self.options = {found["name"]: found["value"] for found in _OPTION.finditer(text)}
            elif found := _PREPARED.match(text):
                self._prepared(found, line)
            elif _BANNER.match(text) or _BEGIN.match(text):
                if self.values:
                    self._finish()
                self.first = self.first or line.number
            elif self.first or _PART_HEADING.match(text):
                if self.values and text in _FIRST_PARTS:
                    self._finish()
                self.first = self.first or line.number
                self._line(line)
        self._finish()

    def _prepared(self, found: re.Match[str], line: Line) -> None:
        size, elapsed_s = number(found["size"]), number(found["time"])
        row = self.results.table(line.number).row(self.source.stem_without_round, "sysbench fileio prepare")
        row.add("bytes", size, op="write")
        row.add("rate_bytes_per_s", size / elapsed_s if size and elapsed_s else None, op="write")
        row.add("elapsed_s", elapsed_s)

    def _line(self, line: Line) -> None:
        text = line.text.rstrip()
        if text.startswith("FATAL: "):
            self.results.problem(f"sysbench failed: {text[7:]}", line.number)
        elif text.strip() in _TESTS:
            self.test = _TESTS[text.strip()]
        elif found := _THREADS.match(text.strip()):
            self.threads = found["count"]
        elif _PRIMES.match(text):
            self.test = "cpu"
        elif found := _BLOCK.match(text):
            self.block = found["size"].removesuffix("iB").removesuffix("b")
        elif found := _INTERVAL.match(text.strip()):
            self._interval(int(found["second"]), found["rest"])
        elif found := _PER_SECOND.match(text):
            if metric := _COUNTED.get(found["name"]):
                self.values["all", metric] = number(found["rate"])
        elif found := _OPERATIONS.match(text):
            self.values["all", "events_per_s"] = number(found["rate"])
        elif found := _TRANSFERRED.match(text):
            self.values["all", "rate_bytes_per_s"] = number(found["rate"], MIB)
        elif found := _OLD_TRANSFERRED.match(text):
            self._old_rates(found)
        elif found := _OLD_REQUESTS.match(text):
            self.values["all", "iops"] = number(found["rate"])
        elif text.strip().endswith(":"):
            self.in_latency = bool(_LATENCY_HEADING.match(text))
        elif found := _FIELD.match(text):
            self._field(found["name"], found["value"])

    def _old_rates(self, found: re.Match[str]) -> None:
        """The rate of all, and of each way in proportion to its bytes."""
        read, write, rate = (
            number(found[way], 1024.0 ** " KMGT".index(found[f"of_{way}"] or " ")) or 0.0
            for way in ("read", "write", "rate")
        )
        self.values["all", "rate_bytes_per_s"] = rate
        for way, size in (("read", read), ("write", write)):
            if size:
                self.values[way, "rate_bytes_per_s"] = rate * size / (read + write)

    def _field(self, name: str, value: str) -> None:
        if self.in_latency:
            percentile = _PERCENTILE.match(name)
            metric = f"latency_ns_p{percentile['which']}" if percentile else _LATENCIES.get(name)
            if metric in (*_LATENCIES.values(), "latency_ns_p50", "latency_ns_p90", "latency_ns_p95", "latency_ns_p99"):
                self.values["all", str(metric)] = number(value, NS_PER_MS) or None
        elif name in _RATES:
            op, metric, scale = _RATES[name]
            if number(value):
                self.values[op, metric] = number(value, scale)
        elif name in ("total time", "time elapsed"):
            self.values["all", "elapsed_s"] = number(value)
        elif name == "total number of events":
            self.events = number(value)

    def _interval(self, second: int, rest: str) -> None:
        if len(self.seconds) < 2:
            self.seconds.append(second)
        for found in _PART.finditer(rest):
            op, metric, scale = _PARTS[found["name"]]
            value = number(found["value"], scale)
            if value is not None:
                self.series.setdefault((op, metric), Series()).add(value)

    def _finish(self) -> None:
        """The row of the report that ends here; of one that is cut off before its end, the means of its intervals."""
        if not self.values and self.series:
            self.values = {place: series.mean for place, series in self.series.items() if series.mean}
            self.results.problem(
                "the report ends before its results: its intervals' means stand for them, without latencies", self.first
            )
        if self.values:
            workload = self._workload()
            setting = self._setting(workload)
            self._add(self.results.table(self.first).row(setting, workload))
            self.results.add_setting_facts(setting, self.options)
        self._forget()

    def _add(self, row: Row) -> None:
        for metric in _SUMS:
            parts = [self.values.get((op, metric)) for op in ("read", "write")]
            known = [part for part in parts if part is not None]
            if known and ("all", metric) not in self.values:
                row.add(metric, sum(known))
        elapsed_s = self.values.get(("all", "elapsed_s"))
        rates = [metric for _, metric in self.values if metric.endswith("_per_s") or metric == "iops"]
        if not rates and elapsed_s and self.events is not None:
            row.add("events_per_s", self.events / elapsed_s)
        for (op, metric), value in self.values.items():
            row.add(metric, value, op=op, absent=TOO_SMALL)
        begin, end = (*self.seconds, 0, 0)[:2]
        period_s = max(1, end - begin)
        for (op, metric), series in self.series.items():
            for place, mean in series.intervals():
                row.interval(metric, place * period_s * NS_PER_S, mean, op=op)

    def _setting(self, workload: str) -> str:
        """What differs from the first command of the same workload stands behind the file's name."""
        first = self.first_options.setdefault(workload, self.options)
        differs = [f"{name}={value}" for name, value in self.options.items() if first.get(name) != value]
        lacks = [f"no {name}" for name in first if name not in self.options]
        return " ".join((self.source.stem_without_round, *differs, *lacks))

    def _workload(self) -> str:
        mode = self.options.get("file-test-mode")
        test = self.test or (f"fileio {mode}" if mode else self.options.get("test", "test"))
        parts = {"block": self.block if test != "sql" else "", "threads": self.threads}
        variant = ",".join(f"{key}={value}" for key, value in parts.items() if value)
        workload = f"sysbench {test}[{variant}]" if variant else f"sysbench {test}"
        self.results.workloads.setdefault(workload, {"kind": "sysbench"})
        return workload


def _recognises(source: Source) -> bool:
    """Its headings, so that a program with a similar report is not taken for it."""
    if source.has_line(_BANNER) and source.has_line(_OLD_TRANSFERRED):
        return True
    if source.has_line(_MIB):
        return True
    began = source.has_line(_BEGIN) or any(_PART_HEADING.match(line.strip()) for line in source.text_lines)
    return began and any(map(_FURTHER.match, source.text_lines))


FORMAT = Format(
    name="sysbench",
    own=re.compile(
        r"\s*+(?:\[ \d++s \] |(?:min|avg|max|total|time|events|ignored|reconnects|approx\.|sum)\b.*:|\s++[\d.]++ \|)"
    ),
    help="sysbench's reports: fileio, cpu, memory, threads and SQL tests",
    recognises=_recognises,
    parse=lambda source, results: _Reader(source, results).read(),
    titled=True,
    words=("sysbench", "Number of threads", "General statistics", "Latency (ms)", "Threads fairness"),
)
