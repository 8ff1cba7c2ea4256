"""sysbench's report, versions 0.5 to 1.1: fileio, cpu, memory, threads, mutex and the SQL tests.

Megabytes are 2^20 bytes, latencies milliseconds with two decimals. Lines of --report-interval become a time series;
--histogram is not read.
"""

from __future__ import annotations

import re

from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Row
from iolab.files.importer.series import Series
from iolab.files.importer.source import Line, Source
from iolab.files.importer.text import number

MIB, NS_PER_MS, NS_PER_S = 2**20, 1e6, 1e9
TOO_SMALL = "below the two decimals that sysbench prints"

_BEGIN = re.compile(r"Running the test with following options:")
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
}
"""A line of the report -> what the workload is called."""
_PRIMES = re.compile(r"Prime numbers limit:\s++\d")
_BLOCK = re.compile(r"\s*+[Bb]lock size:?\s++(?P<size>\d{1,9}+[KM]?(?:iB)?)\s*+$")
_FIELD = re.compile(r"\s++(?P<name>[a-z0-9][\w ,/()]*?):\s++(?P<value>\d[\d.]*+)(?P<unit>s?)\s*+$")
_PER_SECOND = re.compile(r"\s++(?P<name>[a-z ]+):\s++(?P<count>\d{1,15}+)\s++\((?P<rate>[\d.]++) per sec\.\)")
_OPERATIONS = re.compile(r"Total operations: \d{1,15}+ \(\s*+(?P<rate>[\d.]++) per second\)")
_TRANSFERRED = re.compile(r"[\d.]++ MiB transferred \((?P<rate>[\d.]++) MiB/sec\)")
_PERCENTILE = re.compile(r"(?P<which>\d{1,2})th percentile$")
_INTERVAL = re.compile(r"\[\s*+(?P<second>\d{1,9})(?:\.\d{1,9})?s\s*+\] (?P<rest>.*)")
_PART = re.compile(r"(?P<name>reads|writes|tps|qps|eps): (?P<value>\d[\d.]*+)")
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
    "tps": ("all", "transactions_per_s", 1.0),
    "qps": ("all", "queries_per_s", 1.0),
    "eps": ("all", "events_per_s", 1.0),
}
_COUNTED = {"transactions": "transactions_per_s", "queries": "queries_per_s"}
_SUMS = ("iops", "rate_bytes_per_s")


class _Reader:
    def __init__(self, source: Source, results: Results) -> None:
        self.source = source
        self.results = results
        self._forget()

    def _forget(self) -> None:
        self.test = ""
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
            if _BEGIN.match(line.text.strip()):
                self._finish()
                self.first = line.number
            elif self.first:
                self._line(line)
        self._finish()

    def _line(self, line: Line) -> None:
        text = line.text.rstrip()
        if text.strip() in _TESTS:
            self.test = _TESTS[text.strip()]
        elif found := _THREADS.match(text.strip()):
            self.threads = found["count"]
        elif _PRIMES.match(text):
            self.test = "cpu"
        elif found := _BLOCK.match(text):
            self.block = found["size"].removesuffix("iB")
        elif found := _INTERVAL.match(text.strip()):
            self._interval(int(found["second"]), found["rest"])
        elif found := _PER_SECOND.match(text):
            if metric := _COUNTED.get(found["name"]):
                self.values["all", metric] = number(found["rate"])
        elif found := _OPERATIONS.match(text):
            self.values["all", "events_per_s"] = number(found["rate"])
        elif found := _TRANSFERRED.match(text):
            self.values["all", "rate_bytes_per_s"] = _scaled(found["rate"], MIB)
        elif text.strip().endswith(":"):
            self.in_latency = text.startswith("Latency (ms)")
        elif found := _FIELD.match(text):
            self._field(found["name"], found["value"])

    def _field(self, name: str, value: str) -> None:
        if self.in_latency:
            percentile = _PERCENTILE.match(name)
            metric = f"latency_ns_p{percentile['which']}" if percentile else _LATENCIES.get(name)
            if metric in (*_LATENCIES.values(), "latency_ns_p50", "latency_ns_p90", "latency_ns_p95", "latency_ns_p99"):
                self.values["all", str(metric)] = _scaled(value, NS_PER_MS) or None
        elif name in _RATES:
            op, metric, scale = _RATES[name]
            if number(value):
                self.values[op, metric] = _scaled(value, scale)
        elif name in ("total time", "time elapsed"):
            self.values["all", "elapsed_s"] = number(value)
        elif name == "total number of events":
            self.events = number(value)

    def _interval(self, second: int, rest: str) -> None:
        if len(self.seconds) < 2:
            self.seconds.append(second)
        for found in _PART.finditer(rest):
            op, metric, scale = _PARTS[found["name"]]
            value = _scaled(found["value"], scale)
            if value is not None:
                self.series.setdefault((op, metric), Series()).add(value)

    def _finish(self) -> None:
        """The row of the report that ends here."""
        if self.values:
            row = self.results.table(self.first).row(self.source.stem_without_round, self._workload())
            self._add(row)
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

    def _workload(self) -> str:
        test = self.test or "test"
        parts = {"block": self.block if test != "sql" else "", "threads": self.threads}
        variant = ",".join(f"{key}={value}" for key, value in parts.items() if value)
        workload = f"sysbench {test}[{variant}]" if variant else f"sysbench {test}"
        self.results.workloads.setdefault(workload, {"kind": "sysbench"})
        return workload


def _scaled(text: str, scale: float) -> float | None:
    value = number(text)
    return None if value is None else value * scale


def _recognises(source: Source) -> bool:
    """Its two headings, so that a program with a similar report is not taken for it."""
    return source.has_line(_BEGIN) and any(
        line.startswith(("General statistics:", "Throughput:", "Threads started!")) for line in source.text_lines
    )


FORMAT = Format(
    name="sysbench",
    help="sysbench's reports: fileio, cpu, memory, threads and SQL tests",
    recognises=_recognises,
    parse=lambda source, results: _Reader(source, results).read(),
    words=("sysbench", "Number of threads", "General statistics", "Latency (ms)", "Threads fairness"),
)
