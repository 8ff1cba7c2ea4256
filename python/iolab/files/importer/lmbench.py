"""lmbench's summary, and lines of its programs.

The summary has tables in columns of fixed width, of a heading in several lines above a rule of dashes. A row is a host;
where it comes again, it is the next round."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from iolab.files.importer.figures import KB, MB, NUMBER, US, figures_format, of, phase_name, rule
from iolab.files.importer.format import Format
from iolab.files.importer.headings import of_cells
from iolab.files.importer.results import Results, Table
from iolab.files.importer.source import Source
from iolab.files.importer.written_number import number

WORKLOAD = "lmbench"
HEADING_LINES_MAX = 4
NAMES = 2
"""Host and operating system, before the columns of figures."""
_SECTION = re.compile(
    r"\s*+(?P<what>\S[^-]{3,60}?) (?:- times )?in (?P<unit>(?:nano|micro)seconds|MB/s)"
    r"\s*+(?:- (?:smaller|bigger) is better.*)?$"
)
_RULE = re.compile(r"\s*+-{5,}+ -{5,}+(?>(?: -{3,}+)+)\s*+$")
_PLAIN = re.compile(r"\s*+[-=]{20,}+\s*+$")
_FIGURE = re.compile(r"(?P<number>\d[\d.]*+)(?P<thousands>K?)")
_UNITS = {"nanoseconds": ("time_ns", 1.0), "microseconds": ("time_ns", US), "MB/s": ("rate_bytes_per_s", MB)}
"""Megabytes are 10^6 bytes (lib_timing.c)."""


class _Section(NamedTuple):
    what: str
    unit: str
    heading: list[str]


def _slots(dashes: str) -> list[tuple[int, int]]:
    return [found.span() for found in re.finditer(r"-+", dashes)]


def _cells(text: str, slots: Sequence[tuple[int, int]]) -> list[str]:
    """Each word belongs to the column that it begins in, or ends in."""
    cells = [""] * len(slots)
    for word in re.finditer(r"\S+", text):
        place = next((place for place, (_, end) in enumerate(slots) if word.start() < end), len(slots) - 1)
        cells[place] = f"{cells[place]} {word[0]}".strip()
    return cells


def _parse(source: Source, results: Results) -> None:
    section: _Section | None = None
    slots: list[tuple[int, int]] = []
    names: list[str] = []
    table: Table | None = None
    for line in source.lines(results.problem):
        text = line.text.expandtabs()
        if found := _SECTION.match(text):
            section, table = _Section(found["what"].replace("*", ""), found["unit"], []), None
        elif section is not None and _RULE.match(text):
            slots = _slots(text)
            names = of_cells([_cells(line, slots) for line in section.heading[-HEADING_LINES_MAX:]])
            table = results.table(line.number, caption=section.what)
        elif section is not None and table is not None:
            if not _add(table, section, names, slots, text):
                table = None
        elif section is not None and text.strip() and not _PLAIN.match(text):
            section.heading.append(text)


def _add(table: Table, section: _Section, names: list[str], slots: list[tuple[int, int]], text: str) -> bool:
    cells = _cells(text, slots)
    figures = [_FIGURE.fullmatch(cell) for cell in cells]
    if not cells[0] or not any(figures[NAMES:]):
        return False
    metric, scale = _UNITS[section.unit]
    workload = f"{WORKLOAD} {section.what.partition(',')[0].lower()}"
    for name, cell, found in zip(names[NAMES:], cells[NAMES:], figures[NAMES:], strict=True):
        if name.lower() == "mhz" or not name:
            continue
        value = number(found["number"]) if found else None
        factor = scale * (KB if found and found["thousands"] else 1.0)
        row = table.row(cells[0], workload, phase_name(name))
        row.add(metric, None if value is None else value * factor, absent=f"{cell!r} in the table" if cell else "empty")
    return True


def _recognises(source: Source) -> bool:
    return any(map(_SECTION.match, source.text_lines)) and any(map(_RULE.match, source.text_lines))


SUMMARY = Format(
    name="lmbench",
    help="lmbench's summary: times and rates of each column, a setting for each host",
    recognises=_recognises,
    parse=_parse,
    words=("L M B E N C H", "smaller is better", "bigger is better", "File & VM system latencies"),
    titled=True,
)

PROGRAMS = figures_format(
    "lmbench-programs",
    "lines of lmbench's lat_fs, and of bw_file_rd and its like below their commands",
    recognised_by=r"0k\s++\d{2,9}+\s++\d++\s++\d++\s*+$|.{0,80}?\bbw_(?:file_rd|mmap_rd|mem|pipe|unix) \S",
    words=("lat_fs", "bw_file_rd", "bw_mem"),
    titled=True,
    rules=[
        # Sizes, files, and how many were created and deleted a second (lat_fs.8).
        rule(
            rf"(?P<workload>\d{{1,4}}k)\s++\d{{2,9}}+\s++(?P<created>{NUMBER})\s++(?P<deleted>{NUMBER})\s*+$",
            created=of("operations_per_s", phase="create"),
            deleted=of("operations_per_s", phase="delete"),
        ),
        rule(rf"\d{{1,6}}\.\d{{2,6}} (?P<rate>{NUMBER})\s*+$", rate=of("rate_bytes_per_s", MB)),
    ],
)

FORMATS = (SUMMARY, PROGRAMS)
