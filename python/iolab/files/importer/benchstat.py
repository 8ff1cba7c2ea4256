"""Tables of Go's benchstat, old and new, and of benchcmp before it: a row per benchmark, a column per file, which is a
setting. The unit stands in the header, its prefix in the cell (golang.org/x/perf/benchunit)."""

from __future__ import annotations

import re

from iolab.base.plain_text import counted
from iolab.files.importer.format import Format, TableReader, parser
from iolab.files.importer.results import Results, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.text import QUOTED_MAX
from iolab.files.importer.written_number import number

_TWO_FILES = re.compile(
    r"\s*+(?:name|bench(?:mark)?)\s++old (?P<unit>\S{1,40}+(?: [a-z]{1,20}+)?)\s++new (?P=unit)\s++delta\s*+$"
)
_MORE_FILES = re.compile(r"\s*+name \\ (?P<unit>\S{1,40}+)\s++(?P<files>\S.*)$")
_UNITS = re.compile(r"\s*+│\s++(?P<unit>\S{1,40}+)\s++(?>(?:│\s++(?P=unit)(?:\s++vs base)?\s*+)+)│?\s*+$")
_FILES = re.compile(r"\s*+│[^│]*[^\W\d][^│]*│.*")
_SUFFIX = re.compile(r"\.(?:txt|log|out|bench)$")
_CELL = re.compile(
    r"\s++(?P<digits>\d[\d.,]*+)(?P<unit>[A-Za-zµμ/]*+)(?:\s?±\s*+(?:\d++%|∞)(?:\s?[¹²³⁴⁵])?)?"
    r"(?:\s++(?:~|[-+][\d.]++%|\?)?(?:\s*+\([^()]{1,60}+\))?(?:\s?[¹²³⁴⁵])?(?=\s|$))?"
)
"""A figure, its spread, and the change to the first one behind it."""
_HEADLESS = re.compile(
    r"\s*+[^\s\u2502]{1,160}+\s++\d[\d.,]*+(?P<unit>[A-Za-z\u00b5\u03bc/]++)\s?"
    r"\u00b1[^\u00b1]{1,40}\u00b1[^()\u00b1]{1,40}\(p=[\d.]++ n=\d"
)
"""A row of two files, with its unit, that may have lost its header."""
_NO_CHANGE = re.compile(r"\s++~\s*+\(")
"""What benchstat has in place of a change that its own test does not find: `~ (p=0.177 n=6)`."""
_NAME = re.compile(r"\s*+(?P<name>[^\s│]{1,160}+)")
_OPERATIONS = re.compile(
    r"(?:ops?|quer(?:y|ies)|tx(?:ns?)?|rows|req(?:uest)?s?|msgs?|keys|transactions)/s(?:ec)?|[tq]ps"
)
_TIMES = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "sec": 1e9}
_DECIMAL = {"": 1.0, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
_PREFIXES = {**_DECIMAL, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_RATES = {f"{prefix}B/s": scale for prefix, scale in _PREFIXES.items()}


def _known(unit: str) -> tuple[str, dict[str, float]] | None:
    """The metric of a header's unit, and the scales of what may stand behind its figures; None if iolab has none."""
    if unit == "time/op":
        return "latency_ns_mean", _TIMES
    if unit == "speed":
        return "rate_bytes_per_s", _RATES
    of_time = unit.removesuffix("/op")
    metric = (
        ("latency_ns_mean", _TIMES[of_time])
        if of_time != unit and of_time in _TIMES
        else ("rate_bytes_per_s", _RATES[unit])
        if unit in _RATES
        else ("iops" if unit.lower() == "iops" else "operations_per_s", 1.0)
        if unit.lower() == "iops" or _OPERATIONS.fullmatch(unit)
        else None
    )
    return metric and (metric[0], {prefix: scale * metric[1] for prefix, scale in _PREFIXES.items()})


class _Reader(TableReader):
    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self.files: list[str] = []
        self.known: tuple[str, dict[str, float]] | None = None
        self.unchanged: dict[str, None] = {}

    def header(self, line: Line) -> bool:
        if _FILES.match(line.text) and not _UNITS.match(line.text):
            names = [name for name in (cell.strip() for cell in line.text.split("│")) if name]
            self.files = [_SUFFIX.sub("", name) for name in names]
            return True
        found = _TWO_FILES.match(line.text) or _MORE_FILES.match(line.text) or _UNITS.match(line.text)
        if found is None:
            if self.table is None and (row := _HEADLESS.match(line.text)):
                self.columns = self.files = ["old", "new"]
                self.known = _known("time/op" if row["unit"] in _TIMES else "speed")
                self.table = self.results.table(line.number)
            return False
        if found.re is not _UNITS:
            self.files = ["old", "new"] if found.re is _TWO_FILES else found["files"].split()
        self.columns = self.files
        self.known = _known(found["unit"])
        if self.known is None:
            what = f"the table of {found['unit'][:QUOTED_MAX]} is left out: iolab has no such metric"
            self.results.problem(what, line.number)
        self.table = self.results.table(line.number)
        return True

    def row(self, line: Line, table: Table) -> bool:
        named = _NAME.match(line.text)
        if named is None:
            return False
        cells: list[re.Match[str]] = []
        place = named.end()
        while (found := _CELL.match(line.text, place)) and len(cells) < len(self.files):
            cells.append(found)
            place = found.end()
        if not cells:
            return False
        if self.known is None or named["name"] == "geomean":
            return True
        if _NO_CHANGE.search(line.text):
            self.unchanged[named["name"]] = None
        metric, scales = self.known
        if len(cells) < len(self.files) or any(one["unit"] not in scales for one in cells):
            self.results.problem("a row with fewer figures than files, or of another unit: left out", line.number)
            return True
        for file, one in zip(self.files, cells, strict=True):
            value = number(one["digits"].replace(",", ""), scales[one["unit"]])
            table.row(file, f"go-bench {named['name']}").add(metric, value)
        return True

    def end(self) -> None:
        if self.unchanged:
            self.results.problem(
                f"benchstat itself finds no difference (~) in {counted(len(self.unchanged), 'benchmark')}: "
                f"{', '.join(self.unchanged)}; its p, n and spreads are left out: give iolab what both runs printed"
            )


FORMAT = Format(
    name="benchstat",
    help="benchstat's and benchcmp's tables of Go benchmarks; each file is a setting, its spread is left out",
    recognises=lambda source: any(map(source.has_line, (_TWO_FILES, _MORE_FILES, _UNITS, _HEADLESS))),
    parse=parser(_Reader),
    words=("old time/op", "new time/op", "delta", "vs base", "geomean"),
)
