"""What fio prints last, `Run status group`, where a mail quotes nothing else: rates, bytes and time by direction."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from iolab.files.importer.fio_sequence import Heading
from iolab.files.importer.fio_text import FORMAT as FIO_TEXT
from iolab.files.importer.fio_text import JOB, OWN, amount, size_in_bytes
from iolab.files.importer.format import Format
from iolab.files.importer.results import MAIN, Results, Row
from iolab.files.importer.source import Source

WORKLOAD = "fio"

NO_GROUP = -1
"""The group of lines without a heading of fio's, as grep prints them."""
_GROUP = re.compile(r"\s*+Run status group (?P<group>\d{1,9}+)\b")
_TOTAL = re.compile(
    r"\s*+(?:(?P<label>[^\s:][^:]{0,80}):\s*+)?(?P<way>READ|WRITE|TRIM|MIXED): "
    r"(?:bw=(?P<rate>[\d.]++[KMGTP]?i?B)/s)?.{0,120}?\bio=\s*+(?P<size>[\d.]{1,20}+ ?[KMGTP]?i?[Bb]?)"
    r"(?P<old>, aggrb=)?.{0,120}?\b(?:run|maxt)=(?:\d{1,15}+-)?(?P<ms>\d{1,15}+)\s?msec"
)
_CUT_OFF = re.compile(r"\s*+(?:READ|WRITE|TRIM|MIXED): (?:io=|bw=)")
_OPS = {"READ": "read", "WRITE": "write", "TRIM": "discard"}


@dataclass
class _Run:
    line: int
    heading: str | None
    groups: dict[int, list[re.Match[str]]] = field(default_factory=dict)


def _parse(source: Source, results: Results) -> None:
    runs: list[_Run] = []
    heading, group = Heading(), NO_GROUP
    for line in source.lines(results.problem):
        if found := _GROUP.match(line.text):
            group, title = int(found["group"]), heading.take()
            if title or not runs or group in runs[-1].groups:
                runs.append(_Run(line.number, title))
            runs[-1].groups[group] = []
        elif found := _TOTAL.match(line.text):
            is_alone = group == NO_GROUP or found["label"]
            run = _run_alone(runs, line.number, found, heading) if is_alone else runs[-1]
            run.groups.setdefault(group, []).append(found)
        elif found := JOB.match(line.text):
            heading.name(found["name"])
        else:
            if _CUT_OFF.match(line.text):
                results.problem("the line is cut off before its bytes and time: it is left out", line.number)
            heading.read(line.text)
    results.problem("only fio's summary was read: no operations, latencies or CPU time stand in it")
    for run in runs:
        table = results.table(run.line, heading=run.heading)
        groups = {number: totals for number, totals in run.groups.items() if totals}
        for number, totals in groups.items():
            phase = MAIN if len(groups) == 1 else f"group_{number}"
            _add(table.row(run.heading or source.stem_without_round, WORKLOAD, phase), totals)


def _run_alone(runs: list[_Run], line: int, found: re.Match[str], heading: Heading) -> _Run:
    """The run of a line that stands below no group: the last of its name, or of all if it has none, if that has no
    line of this direction yet; else a new one. grep prints the reads of all files first, if asked so."""
    title = found["label"] or heading.take()
    last = next((run for run in reversed(runs) if run.heading == title or not found["label"]), None)
    is_its = last is not None and (not title or title == last.heading)
    if last is not None and is_its and found["way"] not in [one["way"] for of in last.groups.values() for one in of]:
        return last
    runs.append(_Run(line, title or (runs[-1].heading if runs else None)))
    return runs[-1]


def _add(row: Row, totals: list[re.Match[str]]) -> None:
    bytes_of = {total["way"]: _bytes(total) for total in totals}
    milliseconds_of = {total["way"]: int(total["ms"]) for total in totals}
    moved = sum(size for way, size in bytes_of.items() if way != "TRIM") or sum(bytes_of.values())
    _add_rate(row, moved, max(milliseconds_of.values()), "all")
    for way, size in bytes_of.items():
        if op := _OPS.get(way):
            _add_rate(row, size, milliseconds_of[way], op)
    row.add("elapsed_s", max(milliseconds_of.values()) / 1000)


def _bytes(total: re.Match[str]) -> float:
    size = size_in_bytes(total["size"], is_old=bool(total["old"]))
    return amount(total, size) if total["rate"] and int(total["ms"]) else size


def _add_rate(row: Row, size: float, milliseconds: int, op: str) -> None:
    rate = size * 1000 / milliseconds if milliseconds else None
    row.add("rate_bytes_per_s", rate, op=op, absent="no time was measured")
    row.add("bytes", size, op=op)


FORMAT = Format(
    name="fio-summary",
    help="the end of fio's output, or lines of it, if nothing else is there; each heading is a setting",
    recognises=lambda source: source.has_line(_TOTAL) and not FIO_TEXT.recognises(source),
    parse=_parse,
    own=OWN,
    words=("Run status group", "READ: bw=", "WRITE: bw=", "aggrb="),
)
