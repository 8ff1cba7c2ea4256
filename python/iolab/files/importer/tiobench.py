"""tiobench's tables, and tables that people cut out of them.

Columns are found by the header, wherever it stands: `Identifier [Size] [Size] [Thr] Rate (CPU%) Latency Latency >2s
>10s Eff`. Megabytes are 2^20 bytes and latencies milliseconds (tiotest.c divides by 1024 * 1024; tiobench.pl's
legend). A line of the same identifier and threads in a later table of the same test is the next round.

tiobench.pl adds up the mean latency, the maximum and the shares above 2 and 10 s over its runs (`--numruns`) and never
divides them. What is imported is a run's: divided, if the text states how many runs there were.
"""

from __future__ import annotations

import math
import re
from statistics import median

from iolab.base.toml import TomlTable
from iolab.files.importer.format import Format, TableReader, parser
from iolab.files.importer.results import Results, Row, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.text import numbers

MEGABYTE = 2**20
COUNT_END = 2.0**63
_HEADER = re.compile(r"(?>.*?\bRate\b).*\(CPU%\)\s++Latency\s++Latency\b", re.IGNORECASE)
_TITLE = re.compile(r"\s*+(?P<pattern>sequential|random)\s++(?P<way>read|write)s\b\s*+(?P<more>.*)$", re.IGNORECASE)
_FILE_SIZE = re.compile(r"(?<!\d)(?P<size>\d{1,9}+)\s*+(?P<unit>megs?|mb|gb)\b", re.IGNORECASE)
_BLOCK_SIZE = re.compile(
    r"(?:block size\s*+=\s*+(?P<bytes>\d{1,15}+)\s*+bytes)|(?:^\s*+(?P<kib>\d{1,9}+)k\s++block\s?size)", re.IGNORECASE
)
_THREADS = re.compile(r"\s*+(?P<threads>\d{1,9}+) threads\b", re.IGNORECASE)
_RUNS = re.compile(r"numruns[\s=:]++(?P<runs>\d{1,4}+)\b|\bRun #(?P<run>\d{1,4}+): ", re.IGNORECASE)
_SUMMED = ("latency_mean", "latency_max", "over_2s", "over_10s")
ROUNDED = 1.02
"""Posted figures are rounded: a quotient of two is this far off at most."""
_NAMES = {">2s": "over_2s", ">10s": "over_10s", "(cpu%)": "cpu", "rate": "rate", "thr": "threads", "eff": "efficiency"}


class _Reader(TableReader):
    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self.phase: str | None = None
        self.filesystem = ""
        self.file_bytes: int | None = None
        self.block_bytes: int | None = None
        self.threads: int | None = None
        found = [match for line in source.text_lines if (match := _RUNS.search(line))]
        self.runs = max((int(match["runs"] or match["run"]) for match in found), default=0)
        """0: the text does not state it."""
        self.first_line: int | None = None
        self.least_runs: list[tuple[Line, str, float]] = []
        """By row, the number of runs, and parts of one, that the mean latency takes at the rate."""

    def header(self, line: Line) -> bool:
        if not _HEADER.match(line.text):
            return False
        self.columns = _columns(line.words)
        self.table = self.results.table(line.number)
        return True

    def between(self, line: Line) -> None:
        text = line.text
        if found := _TITLE.match(text):
            self.phase = f"{found['pattern']}_{found['way']}".lower()
            self.filesystem = found["more"].split()[0] if found["more"].split() else ""
        elif found := _BLOCK_SIZE.search(text):
            self.block_bytes = int(found["bytes"]) if found["bytes"] else int(found["kib"]) * 1024
        elif re.search(r"file size|\bfiles\s*$", text, re.IGNORECASE) and (found := _FILE_SIZE.search(text)):
            self.file_bytes = int(found["size"]) * (2**30 if found["unit"].lower() == "gb" else MEGABYTE)
        elif found := _THREADS.match(text):
            self.threads = int(found["threads"])

    def row(self, line: Line, table: Table) -> bool:
        words = line.words
        cells = numbers(self.source, line, words[-len(self.columns) :], self.columns)
        identifier = "_".join(words[: -len(self.columns)])
        if cells is None or not identifier:
            return False
        values = dict(zip(self.columns, cells, strict=True))
        threads = values.get("threads", self.threads)
        block_bytes = values.get("size_2", self.block_bytes)
        size = values.get("size")
        file_bytes = size * MEGABYTE if size else self.file_bytes
        parts = {"filesystem": self.filesystem, "threads": f"{threads:.15g}" if threads else ""}
        workload = f"tiobench[{','.join(f'{key}={value}' for key, value in parts.items() if value)}]"
        known: TomlTable = {
            "threads": threads,
            "file_size": file_bytes,
            "block_size": block_bytes,
            "runs": self.runs or None,
        }
        options = {key: int(value) for key, value in known.items() if value and 0 < value < COUNT_END}
        self.results.workloads.setdefault(workload, {"kind": "tiobench", **options})
        self.first_line = self.first_line or line.number
        if (rate := values.get("rate")) and (mean := values.get("latency_mean")) and threads and block_bytes:
            self.least_runs.append((line, identifier, mean * rate * MEGABYTE / (1000 * threads * block_bytes)))
        for key in _SUMMED:
            if (value := values.get(key)) is not None:
                values[key] = value / (self.runs or 1)
        _add(table.row(identifier, workload, self.phase or "unnamed_test"), values)
        return True

    def read(self) -> None:
        super().read()
        if self.first_line is not None:
            self._report_runs(self.first_line)

    def _report_runs(self, line: int) -> None:
        """What was assumed of sums, and which rows contradict it: a thread makes its calls one after the other."""
        too_long = [one for one in self.least_runs if one[2] > (self.runs or 1) * ROUNDED]
        if self.runs:
            for row, identifier, least in too_long:
                what = f"the mean latency of {identifier} takes {least:.2f} runs at its rate, of {self.runs}"
                self.results.problem(f"{what}: the row contradicts itself", row.number)
            return
        what = "tiobench.pl adds up latencies and Lat% over its runs, whose number the text does not state"
        how = "read as one run; a line such as 'numruns 3' in the text changes that"
        if too_long:
            runs = math.ceil(median(least for _, _, least in too_long))
            rows = f"{len(too_long)} of {len(self.least_runs)} rows are too long for one run at their rate, as sums of"
            how = f"{rows} {runs} would be; {how}"
        self.results.problem(f"{what}: {how}", line)


def _columns(words: list[str]) -> list[str]:
    """Names of the header's columns after the identifier, whose word may be missing."""
    names: list[str] = []
    for word in words:
        name = _NAMES.get(word.lower(), word.lower())
        if name == "latency":
            name = "latency_max" if "latency_mean" in names else "latency_mean"
        elif name == "size" and "size" in names:
            name = "size_2"
        names.append(name)
    known = {*_NAMES.values(), "latency_mean", "latency_max", "size", "size_2"}
    return [*names[1:]] if names[0] not in known else names


def _add(row: Row, values: dict[str, float | None]) -> None:
    for column, metric, scale in (
        ("rate", "rate_bytes_per_s", MEGABYTE),
        ("cpu", "cpu_percent", 1),
        ("latency_mean", "latency_ns_mean", 1e6),
        ("latency_max", "latency_ns_max", 1e6),
        ("over_2s", "latency_share_over_2s", 0.01),
        ("over_10s", "latency_share_over_10s", 0.01),
    ):
        if column in values:
            value = values[column]
            row.add(metric, None if value is None else value * scale)


FORMAT = Format(
    name="tiobench",
    help="tiobench's tables: rate, CPU, latency by threads",
    recognises=lambda source: source.has_line(_HEADER),
    parse=parser(_Reader),
    words=("Identifier", "Sequential", "Latency", "(CPU%)", "Thr", ">10s"),
)
