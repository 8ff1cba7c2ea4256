"""iostest's AVERAGE tables: a column per group and the total, under header settings such as `slice_idle=8`.

Rates are fio's KB/s of that time, 1024 bytes per second (the table has `[bw in KB/s]`). A line `*** name`, or else the
header values in which the tables of a file differ, name the setting; tables under equal ones are rounds. A group is a
job.
"""

from __future__ import annotations

import re

from iolab.base.plain_text import whole_number
from iolab.files.importer.format import Format, TableReader
from iolab.files.importer.results import Results, Row, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.text import numbers

KIB = 1024
_COLUMNS = re.compile(r"\s*+job\s++Set\s++NR\s++\S", re.IGNORECASE)
_TITLE = re.compile(r"\w\[[\w-]++\]\s*+\[bw in (?P<unit>\w++)/s\]", re.IGNORECASE)
_PAIR = re.compile(r"(?P<key>\w++)=(?P<value>\S++)")
_UNITS = {"kb": KIB, "mb": KIB**2}
_KEYS_OF_THE_WORKLOAD = ("Workload", "Filesz", "bs", "DIR", "DEV", "NRGRP", "GROUPMODE")
_FIXED = 3
FACTS_MAX = 100
"""Header settings above a table."""


class _Reader(TableReader):
    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self.facts: dict[str, str] = {}
        self.is_header_open = False
        self.unit = KIB
        self.tables: list[tuple[Table, str | None, dict[str, str]]] = []

    def header(self, line: Line) -> bool:
        if not _COLUMNS.match(line.text):
            return False
        self.columns = line.words
        self.table = self.results.table(line.number, caption=self.captions.current)
        self.tables.append((self.table, self.captions.section, dict(self.facts)))
        self.is_header_open = False
        return True

    def between(self, line: Line) -> None:
        if found := _TITLE.search(line.text):
            self.unit = _UNITS.get(found["unit"].lower(), KIB)
            return
        pairs = [(found["key"], found["value"]) for word in line.words if (found := _PAIR.fullmatch(word))]
        if pairs and len(pairs) == len(line.words):
            if not self.is_header_open:
                self.facts = {}
            self.facts |= dict(pairs)
            self.is_header_open = True
            if len(self.facts) > FACTS_MAX:
                self.facts = dict(list(self.facts.items())[:FACTS_MAX])
                self.results.problem(f"more than {FACTS_MAX} settings above a table, those after them are left out")

    def row(self, line: Line, table: Table) -> bool:
        words = line.words
        if len(words) != len(self.columns) or whole_number(words[1]) is None:
            return False
        jobs_per_group = whole_number(words[2])
        if jobs_per_group is None:
            return False
        cells = numbers(self.source, line, words[_FIXED:], self.columns[_FIXED:])
        if cells is None:
            return False
        job_set = "" if words[1] == "1" else f",set={words[1]}"
        workload = f"{words[0]}[jobs_per_group={words[2]}{job_set}]"
        self._add_workload(workload, words[0], jobs_per_group)
        row = table.row(self.source.stem_without_round, workload)
        for column, value in zip(self.columns[_FIXED:], cells, strict=True):
            _add(row, column, None if value is None else value * self.unit)
        return True

    def _add_workload(self, workload: str, job: str, jobs_per_group: int) -> None:
        groups = sum(column.lower() != "total" for column in self.columns[_FIXED:])
        sizes = {"file_size": _size(self.facts.get("Filesz", "")), "block_size": _size(self.facts.get("bs", ""))}
        options = {"kind": "iostest", "job": job, "groups": groups, "jobs_per_group": jobs_per_group}
        self.results.workloads.setdefault(workload, options | {key: size for key, size in sizes.items() if size})


def _size(text: str) -> int:
    """`512M` -> bytes, 0 if it is none."""
    found = re.fullmatch(r"(\d{1,15})([KMGkmg]?)", text)
    return int(found[1]) * {"": 1, "k": KIB, "m": KIB**2, "g": KIB**3}[found[2].lower()] if found else 0


def _add(row: Row, column: str, rate_bytes_per_s: float | None) -> None:
    job = "all" if column.lower() == "total" else column
    row.add("rate_bytes_per_s", rate_bytes_per_s, job=job)


def _parse(source: Source, results: Results) -> None:
    reader = _Reader(source, results)
    reader.read()
    every = [facts for _, _, facts in reader.tables]
    keys = [key for key in dict.fromkeys(key for facts in every for key in facts) if key not in _KEYS_OF_THE_WORKLOAD]
    differing = [key for key in keys if len({facts.get(key) for facts in every}) > 1]
    for table, section, facts in reader.tables:
        named = section or ",".join(f"{key}={facts[key]}" for key in differing if key in facts)
        name = named or source.stem_without_round
        results.settings.setdefault(name, {}).update(facts)
        for row in table.rows:
            row.setting = name


FORMAT = Format(
    name="iostest",
    help="iostest's AVERAGE tables: a column per group",
    recognises=lambda source: source.has_line(_COLUMNS),
    parse=_parse,
    words=("AVERAGE[", "[bw in KB/s]", "job Set NR", "total", "GROUPMODE="),
)
