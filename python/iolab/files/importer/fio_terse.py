"""fio's terse lines, versions 2 to 5: a job is a line of numbers between semicolons, whose place states what they are.

Sizes are KiB, latencies microseconds (fio's HOWTO, "Terse output").
"""

from __future__ import annotations

import re
from typing import Any

from iolab.base.strict_json import JsonObject
from iolab.files.importer.fio_sequence import Heading, Member, Sequence
from iolab.files.importer.results import Results
from iolab.files.importer.source import Line
from iolab.files.importer.written_number import number

LINE = re.compile(
    r"\s*+(?:2;[^;]{1,200};|(?P<before>[^;]{0,200}?(?<![\w.]))[345];fio-[^;]{1,60};[^;]{1,200};)\d{1,9};\d{1,9};"
    r"(?:\d[\d.]{0,30};){4}",
    re.ASCII,
)
_LABEL = re.compile(r"\W*(?P<label>(?!\d{4}-)\S*[^\W\d]\S*?)(?::\d+)?\W*")
"""`ext4.log:12:`, as grep writes it: what the line is of. A time is none, nor is a mark."""
PERCENTILES = 20
SIDE = 4 + 4 + 4 + PERCENTILES + 4 + 5
"""Size, rate, operations per second, time; the latencies; their quantiles; the bandwidth's samples."""
SIDE_OF_5 = SIDE + 6
RATES = 4
"""The cells of a side up to its time."""
_LATENCIES = {"slat_ns": 4, "clat_ns": 8, "lat_ns": 32}
"""Where they begin in a side."""
PROCESSOR = 5
AFTER = PROCESSOR + 7 + 10 + 12
"""CPU, depths, shares of latencies."""
DISK = 9
US = 1e3
_PERCENTILE = re.compile(r"(?P<share>\d{1,3}+\.\d{1,6}+)%=(?P<at>[\d.]++)")


class Reader:
    """The terse lines of a text."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.runs = Sequence()
        self.heading = Heading()
        self._label = ""
        self._program = ""
        """The version of fio that wrote the last line: lines of two are of two runs."""

    def read(self, line: Line) -> bool:
        """Whether it is one."""
        found = LINE.match(line.text)
        if not found:
            self.heading.read(line.text)
            return False
        before = found["before"] or ""
        cells = line.text.strip()[len(before) :].split(";")
        if (named := _LABEL.fullmatch(before)) and named["label"] != self._label:
            self._label = named["label"]
            self.heading.name(self._label)
        version = int(cells[0])
        if (program := cells[1] if version > 2 else "") != self._program:
            self._program = program
            self.runs.close(None)
        begin = 4 if version == 2 else 5
        width = SIDE_OF_5 if version == 5 else SIDE
        # fio 3 has trims in version 2 too.
        ways: tuple[str, ...] = ("read", "write", "trim")
        if version == 3 or (version == 2 and len(cells) < begin + 3 * width + AFTER):
            ways = ("read", "write")
        end = begin + len(ways) * width
        if is_cut := len(cells) <= end + PROCESSOR:
            # The last cell may lack digits.
            cells = cells[:-1]
            ways = tuple(way for place, way in enumerate(ways) if len(cells) >= begin + place * width + RATES)
            self.results.problem(
                f"the line is cut off: rates of {' and '.join(ways)}s are read, what comes behind is not there",
                line.number,
            )
        elif len(cells) < end + AFTER:
            self.results.problem("the line ends in its shares of latencies, which are not read", line.number)
        raw: dict[str, Any] = {
            "jobname": cells[begin - 3] if version > 2 else cells[1],
            "groupid": int(cells[begin - 2]),
            "error": int(cells[begin - 1]),
        }
        shares: dict[str, float] = {}
        for place, way in enumerate(ways):
            at = begin + place * width
            raw[way], share = _side(cells[at : at + width])
            if raw[way]["io_bytes"] and share:
                shares[way] = share
        if not is_cut:
            raw |= _processor(cells[end : end + PROCESSOR])
        raw["job_runtime"] = max(raw[way]["runtime"] for way in ways)
        self.runs.add(Member(line.number, raw, shares, None), self.heading.take())
        for disk in range(end + AFTER, len(cells) - DISK + 1, DISK):
            self.runs.disk(cells[disk])
        return True


def _side(cells: list[str]) -> tuple[JsonObject, float]:
    """A direction as fio's JSON has it, and its share in the group's rate."""
    size, _, iops, runtime = map(_value, cells[:4])
    side: JsonObject = {"io_bytes": size * 1024, "io_kbytes": size, "iops": iops, "runtime": runtime}
    # A line that is cut off ends anywhere.
    times = {name: _latency(cells[at : at + 4]) for name, at in _LATENCIES.items() if len(cells) >= at + 4}
    percentiles = [found for cell in cells[12 : 12 + PERCENTILES] if (found := _PERCENTILE.match(cell))]
    if percentiles:
        times["clat_ns"]["percentile"] = {f"{float(one['share']):.6f}": _value(one["at"]) * US for one in percentiles}
    return {**side, **times}, _value(cells[38]) / 100 if len(cells) > 38 else 0.0


def _latency(cells: list[str]) -> JsonObject:
    return {name: _value(cell) * US for name, cell in zip(("min", "max", "mean", "stddev"), cells, strict=True)}


def _processor(cells: list[str]) -> JsonObject:
    names = ("usr_cpu", "sys_cpu", "ctx", "majf", "minf")
    return {name: _value(cell) for name, cell in zip(names, cells, strict=True)}


def _value(cell: str) -> float:
    return number(cell) or 0.0
