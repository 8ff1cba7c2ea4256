"""iozone's output: the matrix of the default and automatic modes, the throughput mode (-t), CPU utilisation (-+u).

`KB`, `kB` and `Kbytes` are 1024 bytes (iozone.c divides by 1024); with -O the numbers are operations per second, with
-N microseconds per operation. The Excel report of -R repeats the numbers of the matrix, and is read where that is left
out.
"""

from __future__ import annotations

import re

from iolab.base.plain_text import whole_number
from iolab.files.importer.format import Format, TableReader, parser
from iolab.files.importer.results import Results, Row, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.written_number import is_number, number

KIB = 1024
COLUMNS = (
    *("KB", "reclen", "write", "rewrite", "read", "reread", "random_read", "random_write"),
    *("backward_read", "record_rewrite", "stride_read", "fwrite", "frewrite", "fread", "freread"),
)
"""The matrix's columns, left to right. The two header lines name them in parts."""

TESTS = {
    "initial writers": "write",
    "rewriters": "rewrite",
    "readers": "read",
    "re-readers": "reread",
    "reverse readers": "backward_read",
    "stride readers": "stride_read",
    "random readers": "random_read",
    "random writers": "random_write",
    "mixed workload": "mixed",
    "pwrite writers": "pwrite",
    "pread readers": "pread",
    "fwriters": "fwrite",
    "freaders": "fread",
}
"""What the throughput mode calls a test -> the phase."""

_TESTS_OF_OPTION = {
    "0": (2, 3),
    "1": (4, 5),
    "2": (6, 7),
    "3": (8,),
    "4": (9,),
    "5": (10,),
    "6": (11, 12),
    "7": (13, 14),
}
_CPU_TESTS = {"write": "write", "re-write": "rewrite", "read": "read", "re-read": "reread"}
_PLACE_TOLERANCE = 3

_MATRIX = re.compile(r"\s*+kB\s++reclen\s++write\s++rewrite\b", re.IGNORECASE)
_NAME = re.compile(r"(?:random|bkwd|backward|record|stride) (?:read|write|rewrite)\b|\S+", re.IGNORECASE)
_REPORT = re.compile(r"\s*+\"(?P<test>[\w -]{4,30}) report\"\s*+$")
_QUOTED = re.compile(r"\"(\d{1,15})\"")
_REPORTS = {
    "writer": "write",
    "re-writer": "rewrite",
    "reader": "read",
    "re-reader": "reread",
    "random read": "random_read",
    "random write": "random_write",
    "backward read": "backward_read",
    "record rewrite": "record_rewrite",
    "stride read": "stride_read",
    "fwrite": "fwrite",
    "re-fwrite": "frewrite",
    "fread": "fread",
    "re-fread": "freread",
}
"""What the Excel report calls a test -> the phase."""
_SEEN = re.compile(
    r"\s*+(?:\S+:\s*+)?(?P<who>Children see|Parent sees) throughput for\s++(?P<threads>\d{1,15}+)\s++"
    r"(?P<test>\w[\w -]*+)\s*+=\s*+(?P<rate>[\d.]++)\s*+(?P<unit>\S++)",
    re.IGNORECASE,
)
_PER_PROCESS = re.compile(
    r"\s*+(?P<which>Min|Max|Avg) throughput per (?:process|thread)\s*+=\s*+(?P<rate>[\d.]++)\s*+(?P<unit>\S++)"
)
_MIN_XFER = re.compile(r"\s*+Min xfer\s*+=\s*+(?P<size>[\d.]++)\s*+(?P<unit>[kKmMgG]?B)\b")
_CPU = re.compile(
    r"\s*+(?:[^\w\s]\s*+)?(?:(?P<test>[\w-]++) test:\s*+)?"
    r"CPU utilization: Wall time\s++(?P<wall>[\d.]++)\s++CPU time\s++(?P<cpu>[\d.]++)"
    r"(?:\s++CPU utilization\s++(?P<percent>[\d.]++)\s*+%)?",
    re.IGNORECASE,
)
_COMMAND = re.compile(r"\s*+(?:Command line used: |.*?\biozone\s)(?P<arguments>.*)")
_RECORD = re.compile(r"\s*+Record Size\s*+(?:=\s*+)?(?P<size>\d{1,15}+)\s*+(?P<unit>[kKmM]?B)", re.IGNORECASE)
_FILE = re.compile(r"\s*+File size set to\s++(?P<size>\d{1,15}+)\s*+(?P<unit>[kKmMgG]?B)", re.IGNORECASE)
_PROCESSORS = re.compile(
    r"\W*+(?P<count>\d{1,9}+)\s++(?:\w++\s++)??(?:cores?|CPUs?)\s*+[x@]\s*+(?P<frequency>\d{1,15}+(?:\.\d{1,15}+)?)\s*+"
    r"(?P<unit>[GM])Hz\b",
    re.IGNORECASE,
)
"""What a report may state about the machine: `12 Haswell cores x 1.6GHz`."""
_SCALES = {"b": 1, "kb": KIB, "mb": KIB**2, "gb": KIB**3}


class _Reader(TableReader):
    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self.tests: list[int] = []
        """The columns that the command line asks for."""
        self.facts: dict[str, int] = {}
        self.current: Row | None = None
        self.edges: list[int] = []
        self.metric, self.scale = "rate_bytes_per_s", float(KIB)
        self.threads = ""
        self.has_matrix = source.has_line(_MATRIX)
        self.report = ""
        """The phase of the Excel report that is being read."""

    @property
    def setting(self) -> str:
        return self.captions.section or self.source.stem_without_round

    def header(self, line: Line) -> bool:
        if found := _REPORT.match(line.text):
            self.report = "" if self.has_matrix else _REPORTS.get(found["test"].lower(), found["test"].lower())
            self.columns = []
            if self.report:
                self.table = self.results.table(line.number)
            return bool(self.report)
        if not _MATRIX.match(line.text):
            return False
        # In one line, the names of a test's two parts stand together.
        names = list(_NAME.finditer(line.text))
        self.edges, self.columns = [found.end() for found in names][: len(COLUMNS)], list(COLUMNS[: len(names)])
        self.table = self.results.table(line.number)
        return True

    def row(self, line: Line, table: Table) -> bool:
        if self.report:
            return self._row_of_report(line, table)
        if len(line.words) < 3 or not all(is_number(word) for word in line.words[:3]):
            return False
        file_kib, record_kib = (whole_number(word) for word in line.words[:2])
        if file_kib is None or record_kib is None:
            return False
        cells = self._cells(line)
        if not cells:
            self.results.problem("the row's numbers can't be parted into columns, left out", line.number)
            return True
        workload = f"iozone[file_kib={file_kib},record_kib={record_kib}]"
        self._add_workload(workload, file_kib * KIB, record_kib * KIB)
        for place, value in cells.items():
            table.row(self.setting, workload, COLUMNS[place]).add(
                self.metric, value * self.scale or None, absent="below the precision that iozone prints"
            )
        return True

    def _row_of_report(self, line: Line, table: Table) -> bool:
        """A row of rates below sizes of records, behind the size of its file; all sizes are in quotes, in KiB."""
        sizes = [int(size) for size in _QUOTED.findall(line.text)]
        if not self.columns and len(sizes) == len(line.words):
            self.columns = [str(size) for size in sizes]
            return bool(sizes)
        if len(sizes) != 1 or not 1 < len(line.words) <= len(self.columns) + 1:
            return False
        for record, word in zip(self.columns, line.words[1:], strict=False):
            workload = f"iozone[file_kib={sizes[0]},record_kib={record}]"
            self._add_workload(workload, sizes[0] * KIB, int(record) * KIB)
            value = number(word)
            table.row(self.setting, workload, self.report).add(
                self.metric, value * self.scale or None if value is not None else None, absent="not in the report"
            )
        return True

    def _cells(self, line: Line) -> dict[int, float]:
        """Column -> number: all of them, or by where they stand, or by the tests that the command line names."""
        words = ((found.end(), number(found[0])) for found in re.finditer(r"\S+", line.text))
        spans = [(edge, value) for edge, value in words if value is not None][2:]
        if len(spans) == len(self.columns) - 2:
            return {place + 2: value for place, (_, value) in enumerate(spans)}
        by_place: dict[int, float] = {}
        for edge, value in spans:
            place = min(range(2, len(self.edges)), key=lambda column: abs(self.edges[column] - edge), default=0)
            if place and abs(self.edges[place] - edge) <= _PLACE_TOLERANCE and place not in by_place:
                by_place[place] = value
        if len(by_place) == len(spans):
            return by_place
        return {place: value for place, (_, value) in zip(self.tests, spans, strict=False)}

    def between(self, line: Line) -> None:
        if found := _SEEN.match(line.text):
            self._throughput(line, found)
        elif found := _PER_PROCESS.match(line.text):
            if self.current:
                name = {"Min": "min", "Max": "max", "Avg": "mean"}[found["which"]]
                self._add(self.current, f"rate_per_process_bytes_per_s_{name}", found["rate"], found["unit"])
        elif found := _MIN_XFER.match(line.text):
            if self.current:
                scale = _SCALES[found["unit"].lower()]
                self.current.add("transfer_bytes_min", number(found["size"], scale))
        elif found := _CPU.match(line.text):
            self._cpu(line, found)
        elif found := _RECORD.match(line.text):
            self.facts["record"] = int(found["size"]) * _SCALES[found["unit"].lower()]
        elif found := _FILE.match(line.text):
            self.facts["file"] = int(found["size"]) * _SCALES[found["unit"].lower()]
        elif "iozone" in line.text and (found := _COMMAND.match(line.text)):
            self._options(found["arguments"].split())
        elif found := _PROCESSORS.match(line.text):
            scale = 1000 if found["unit"].upper() == "G" else 1
            cpu = {"count_online": int(found["count"]), "frequency_mhz": float(found["frequency"]) * scale}
            self.results.machine["cpu"] = cpu
        elif re.search(r"output is in (?:ops/sec|operations per second)", line.text.lower()):
            self.metric, self.scale = "iops", 1.0
        elif "output is in microseconds" in line.text.lower():
            self.metric, self.scale = "latency_ns_mean", 1000.0

    def _options(self, arguments: list[str]) -> None:
        asked = re.findall(r"-i\s?(\d)(?!\d)", " ".join(arguments))
        self.tests = sorted({place for option in asked for place in _TESTS_OF_OPTION.get(option, ())})
        for word in arguments:
            if found := re.fullmatch(r"-([srt])(\d{1,15})([kmg]?)", word):
                option, size, unit = found.groups()
                if option == "t":
                    self.threads = size
                else:
                    key = "file" if option == "s" else "record"
                    self.facts[key] = int(size) * _SCALES[(unit or "k") + "b"]

    def _throughput(self, line: Line, found: re.Match[str]) -> None:
        phase = TESTS.get(" ".join(found["test"].lower().split()), "_".join(found["test"].lower().split()))
        self.threads = found["threads"]
        if found["who"].lower().startswith("children"):
            self.current = self.results.table(line.number).row(self.setting, self._workload(), phase)
            self._add(self.current, "rate_sum_bytes_per_s", found["rate"], found["unit"])
        elif self.current:
            self._add(self.current, "rate_bytes_per_s", found["rate"], found["unit"])

    def _add(self, row: Row, metric: str, value: str, unit: str) -> None:
        if unit.lower().startswith("ops"):
            if metric == "rate_bytes_per_s":
                row.add("iops", number(value))
            return
        scale = _SCALES.get(unit.lower().replace("bytes", "b").partition("/")[0])
        row.add(metric, None if scale is None else number(value, scale), absent=f"unknown unit {unit}")

    def _cpu(self, line: Line, found: re.Match[str]) -> None:
        row = self.current
        if found["test"]:
            phase = _CPU_TESTS.get(found["test"].lower(), found["test"].lower())
            row = self.results.table(line.number).row(self.setting, self._workload(), phase)
        elif row is None:
            row = self.results.table(line.number).row(self.setting, self._workload())
        wall, cpu = number(found["wall"]), number(found["cpu"])
        row.add("elapsed_s", wall)
        row.add("cpu_s", cpu)
        percent = number(found["percent"]) if found["percent"] else None
        row.add("cpu_percent", percent if percent is not None else (100 * cpu / wall if wall and cpu else None))

    def _workload(self) -> str:
        parts = {
            "file_kib": str(self.facts["file"] // KIB) if "file" in self.facts else "",
            "record_kib": str(self.facts["record"] // KIB) if "record" in self.facts else "",
            "threads": self.threads,
        }
        variant = ",".join(f"{key}={value}" for key, value in parts.items() if value)
        workload = f"iozone[{variant}]" if variant else "iozone"
        self._add_workload(workload, self.facts.get("file"), self.facts.get("record"))
        return workload

    def _add_workload(self, workload: str, file_bytes: int | None, record_bytes: int | None) -> None:
        known = {"file_size": file_bytes, "record_size": record_bytes, "threads": int(self.threads or 1)}
        options = {key: value for key, value in known.items() if value}
        self.results.workloads.setdefault(workload, {"kind": "iozone", **options})


def _recognises(source: Source) -> bool:
    return any(source.has_line(pattern) for pattern in (_MATRIX, _SEEN, _CPU, _REPORT))


FORMAT = Format(
    name="iozone",
    own=re.compile(r"\s*+(?:Time Resolution|Children see|Parent sees|(?:Min|Max|Avg) (?:throughput|xfer))\b"),
    help="iozone: the matrix, the throughput mode, CPU utilisation, the Excel report of -R alone",
    recognises=_recognises,
    titled=True,
    parse=parser(_Reader),
    words=("iozone", "reclen", "rewrite", "reread", "Children see throughput", "Record Size", "CPU utilization"),
)
