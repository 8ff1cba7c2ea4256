"""The comparison tables of the kernel test robot (lkp-tests' `compare`): a column for a commit, a row for a figure.

The first commit is the baseline, and a setting is called as the mail's list of commits has it. A figure is a mean over
the robot's runs; its spread, in percent, is stated beside it and becomes a figure of its own, `NAME_stddev_percent`.
"""

from __future__ import annotations

import re

from iolab.base.plain_text import counted
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Row, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.written_number import number

COMMITS_MAX = 20
OF_MACHINE = frozenset(("compiler", "cpufreq_governor", "kconfig", "rootfs", "tbox_group", "ucode", "testcase"))
"""Parameters that are the same in both columns and name no part of the test; `testcase` is its name."""
_COMMITS = re.compile(r"\s*+(?:[0-9a-f]{8,40}\s++){1,19}[0-9a-f]{8,40}\s*+$")
_HEADER = re.compile(r"\s*+%stddev(?>(?:\s++%change\s++%stddev)+)\s*+$")
_COMMIT = re.compile(r"\s*+(?P<hash>[0-9a-f]{8,40})\s++(?P<subject>\S.{0,120})")
_PARAMETERS = re.compile(r"\s*+(?P<names>\w[\w-]*+(?>(?:/\w[\w-]*+)+)):\s*+$")
_VALUE = r"(?P<{0}>\d[\d.]*+(?:e[+-]?\d++)?)(?:\s*+(?:±|=\w\w=\w\w|[^\s\w.+-])\s*+(?P<{0}_spread>\d++)%)?"
_FIRST = re.compile(r"\s*+" + _VALUE.format("value"))
_NEXT = re.compile(r"\s++[+-][\d.]++(?:e[+-]?\d++)?%?\s++" + _VALUE.format("value"))
_NAME = re.compile(r"\s++(?P<name>\S.{0,200}?)\s*+$")


class _Reader:
    def __init__(self, source: Source, results: Results) -> None:
        self.source = source
        self.results = results
        self.subjects: dict[str, str] = {}
        self.hashes: list[str] = []
        self.parameters: list[str] = []
        self.workload = "lkp"
        self.table: Table | None = None
        self.rows: list[Row] = []
        self.spreads: list[tuple[Row, str, float | None]] = []

    def read(self) -> None:
        for line in self.source.lines(self.results.problem):
            self._line(line)
        for row, name, spread in self.spreads:
            row.add(name, spread)

    def _line(self, line: Line) -> None:
        if self.parameters:
            self._values(line)
        elif found := _PARAMETERS.match(line.text):
            self.parameters = found["names"].split("/")
        elif _COMMITS.match(line.text):
            self.hashes, self.table = line.words, None
        elif _HEADER.match(line.text):
            self._open(line)
        elif (self.table is None or not self._row(line)) and (found := _COMMIT.match(line.text)):
            self.subjects[found["hash"]] = found["subject"]

    def _values(self, line: Line) -> None:
        """The line below the parameters' names; a value that has a slash leaves the test's name unknown."""
        values, names, self.parameters = line.text.strip().split("/"), self.parameters, []
        known = dict(zip(names, values, strict=True)) if len(names) == len(values) else {}
        test = known.get("testcase", "lkp")
        options = ",".join(f"{name}={value}" for name, value in known.items() if name not in OF_MACHINE)
        self.workload = f"{test}[{options}]" if options else test

    def _open(self, line: Line) -> None:
        columns = line.text.count("%stddev")
        if len(self.hashes) != columns:
            self.results.problem(
                f"{counted(len(self.hashes), 'commit')} above {counted(columns, 'column')}: the table is left out",
                line.number,
            )
            return
        self.table = self.results.table(line.number)
        self.rows = [self.table.row(self._setting(commit), self.workload) for commit in self.hashes]

    def _setting(self, commit: str) -> str:
        """The commit and its subject, if the mail lists it."""
        short = next((one for one in self.subjects if commit.startswith(one) or one.startswith(commit)), None)
        return commit[:12] if short is None else f"{short} {self.subjects[short]}"

    def _row(self, line: Line) -> bool:
        cells, at = [], 0
        for place in range(len(self.rows)):
            found = (_NEXT if place else _FIRST).match(line.text, at)
            if found is None:
                return False
            cells.append(found)
            at = found.end()
        named = _NAME.match(line.text, at)
        if named is None:
            return False
        name = re.sub(r"[^\w%-]+", "_", named["name"]).strip("_")
        for row, cell in zip(self.rows, cells, strict=True):
            row.add(name, number(cell["value"]))
            if cell["value_spread"]:
                self.spreads.append((row, f"{name}_stddev_percent", number(cell["value_spread"])))
        return True


FORMAT = Format(
    name="lkp",
    help="the kernel test robot's tables: a column for each commit, a row for each figure",
    recognises=lambda source: source.has_line(_HEADER),
    parse=lambda source, results: _Reader(source, results).read(),
    words=("%stddev", "%change", "testcase", "tbox_group", "commit:"),
)
