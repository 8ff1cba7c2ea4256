"""dstat's output, also dool's and pcp-dstat's, and its CSV: CPU shares, bytes and requests of all disks or of each.

`k` and `M` of its table are powers of 1024. The first line, averages since the boot, is left out if others follow.
Network, memory, paging and the rest are not read.
"""

from __future__ import annotations

import csv
import re

from typing_extensions import override

from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.sysstat import Means, OutputReader, add_means, sample
from iolab.files.importer.written_number import number

WORKLOAD = "dstat"
CPU = "cpu"
STATES = {
    "usr": "user",
    "sys": "system",
    "idl": "idle",
    "wai": "iowait",
    "stl": "steal",
    "hiq": "irq",
    "siq": "softirq",
}
WAYS = {"read": "read", "writ": "write"}
_CPU_GROUP = re.compile(r"total[ -](?:cpu[ -])?usage")
_DISK_GROUP = re.compile(r"(?P<kind>dsk|io)/(?P<device>[\w.-]{1,60}?)-*+")
_TOGETHER = re.compile(r"-++(?=(?:dsk|io)/)")
_AMOUNT = re.compile(r"(?P<digits>\d[\d.]{0,20}+)(?P<unit>[BkKMGT]?)")

Place = tuple[str, str, str]
"""Device or `CPU`, metric, operation."""


def _meaning(group: str, column: str) -> Place | None:
    if _CPU_GROUP.fullmatch(group) and column in STATES:
        return CPU, f"cpu_{STATES[column]}_percent", "all"
    found = _DISK_GROUP.fullmatch(group)
    if found and column in WAYS:
        return found["device"], "rate_bytes_per_s" if found["kind"] == "dsk" else "iops", WAYS[column]
    return None


class _Reader(OutputReader):
    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self.line = 1
        self.groups: list[str] = []
        self.is_csv = False
        self.places: list[Place | None] = []
        self.widths: list[int] = []
        """How many columns stand between two bars."""
        self.first: dict[str, Means] = {}
        self.later: dict[str, Means] = {}

    def header(self, line: Line) -> bool:
        if groups := _groups(line.text):
            self.is_csv, self.groups, self.table = line.text.lstrip().startswith('"'), groups, None
            return True
        if not self.groups or self.table is not None:
            return False
        columns = self._columns(line.text)
        self.places = [_meaning(group, column) for group, column in columns]
        if not any(self.places):
            return False
        self.columns = [column for _, column in columns]
        unread = dict.fromkeys(
            name for (_, name), place in zip(columns, self.places, strict=True) if place is None and name != "time"
        )
        if unread and not self.first:
            self.results.problem(f"columns that are not read: {', '.join(unread)}")
        self.table = self.results.table(line.number)
        if not self.first:
            self.line = line.number
        return True

    def _columns(self, text: str) -> list[tuple[str, str]]:
        if self.is_csv:
            names = next(csv.reader([text]), [])
            return list(zip(self.groups, (name.rpartition(":")[2] for name in names), strict=False))
        self.widths = [len(re.findall(r"[^\s:]+", part)) for part in text.split("|")]
        parts = [part.split() for part in re.split(r"[|:]", text)]
        groups = self.groups
        if len(parts) != len(groups):
            # Of groups that are not read, the devices' names may stand in one word: `sda--sdb`.
            groups = [name for group in groups for name in ([group] if "/" in group else re.split(r"-+", group))]
        if len(parts) != len(groups):
            return []
        return [(group, column) for group, part in zip(groups, parts, strict=True) for column in part]

    def _words(self, text: str) -> list[str]:
        parts = text.split("|")
        if len(parts) != len(self.widths):
            return re.split(r"[|\s]+|(?<=[\dBkKMGT]):(?=\s*\d+[BkKMGT ])", text.strip())
        words: list[str] = []
        for part, width in zip(parts, self.widths, strict=True):
            is_read = any(self.places[len(words) : len(words) + width])
            # What is not read may hold colons of its own, and a date before the time of day.
            words += re.findall(r"[^\s:]+", part) if is_read else [""] * width
        return words

    def row(self, line: Line, table: Table) -> bool:
        words = [cell.strip() for cell in line.text.split(",")] if self.is_csv else self._words(line.text)
        if not self._fit(words):
            return False
        means = self.later if self.first else self.first
        for place, word in zip(self.places, words, strict=False):
            value = _amount(word)
            if place is not None and value is not None:
                device, metric, op = place
                sample(means.setdefault(device, {}), metric, value, op=op)
        return True

    def _fit(self, words: list[str]) -> bool:
        known = [word for place, word in zip(self.places, words, strict=False) if place is not None]
        enough = len(words) >= len(self.places) - (self.places[-1] is None)
        return enough and any(known) and all(not word or _amount(word) is not None for word in known)

    @override
    def begin(self, *, continues: bool) -> None:
        self.finish()
        self.first, self.later = {}, {}

    @override
    def finish(self) -> None:
        """Adds the output that ends here: a workload for each device, and one for the CPUs."""
        chosen = self.later or self.first
        table = self.results.table(self.line)
        for device in sorted(chosen, key=lambda device: device == CPU):
            add_means(
                table.row(self.source.stem_without_round, f"{WORKLOAD} {device}"), chosen[device], interval_s=None
            )
        if self.first and self.later:
            self.results.problem("the first line, averages since the boot, is left out")


def _groups(text: str) -> list[str]:
    """The name of the group above each column of a CSV, or above each part of a table; none for another line."""
    if text.lstrip().startswith('"'):
        names = next(csv.reader([text]), [])
        filled: list[str] = []
        for name in names:
            filled.append(name or (filled[-1] if filled else ""))
        found = filled
    elif text.lstrip().startswith("-"):
        # Groups of one kind stand without a space between them: `--dsk/sda-----dsk/sdb--`.
        found = [part for word in text.split() for part in _TOGETHER.split(word.strip("-"))]
    else:
        return []
    return found if any(_CPU_GROUP.fullmatch(name) or _DISK_GROUP.fullmatch(name) for name in found) else []


def _amount(word: str) -> float | None:
    found = _AMOUNT.fullmatch(word)
    value = number(found["digits"]) if found else None
    return (
        value * 1024.0 ** " KMGT".index((found["unit"].upper() or " ").replace("B", " "))
        if found and value is not None
        else None
    )


FORMAT = Format(
    name="dstat",
    help="dstat's table or CSV, also dool's and pcp-dstat's: disks and CPUs",
    recognises=lambda source: any(map(_groups, source.text_lines)),
    parse=_Reader.parse,
    titled=True,
    words=("dsk/total", "usr", "idl", "wai", "writ", "csw"),
)
