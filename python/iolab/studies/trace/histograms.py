"""Histograms of latency as text: of biolatency (bcc, libbpf-tools, bpftrace), of iolatency (perf-tools), of
HdrHistogram, and those that Prometheus collects.

They hold no request, so that nothing but the distribution is known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from iolab.base.errors import InputError
from iolab.base.histogram import is_known
from iolab.files.importer.posted import Posting
from iolab.files.importer.titles import ATTRIBUTION, OF_ANY_RUN

_UNITS = {
    **dict.fromkeys(("nsecs", "nsec", "ns"), 1),
    **dict.fromkeys(("usecs", "usec", "us"), 1_000),
    **dict.fromkeys(("msecs", "msec", "ms"), 1_000_000),
}
_POWERS = {"": 1, "k": 2**10, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_HEADING = re.compile(r"\s*(nsecs|usecs|msecs)\s*:\s*count\s+distribution")
_HEADING_OF_IOLATENCY = re.compile(r"\s*>=\((ms|us)\)\s*\.\.\s*<\((?:ms|us)\)\s*:\s*I/O")
_HEADING_OF_BPFTRACE = re.compile(
    r"@(?:(?P<map>\w+?)_)?(?P<unit>nsecs?|ns|usecs?|us|msecs?|ms)(?:_(?P<rest>\w+))?(?:\[(?P<of>.*)\])?:\s*$"
)
_NAME = re.compile(r"\s*((?!avg\b)[a-z]\w{0,30})\s*=\s*(\S.*?)\s*$")
"""`disk = 'sda'`, `flags = Read`, `operation = write`: what the next histogram counts."""
_RANGE = re.compile(r"\s*(\d+)\s*(?:->\s*(\d+)\s*)?:\s*(\d+)\s*\|")
_RANGE_OF_BPFTRACE = re.compile(r"\[(\d+)([kKMGT]?)(?:, (\d+)([kKMGT]?))?[)\]]\s+(\d+)\s*\|")
_BUCKET_BEGINS = re.compile(r"\s*(?:\d+\s*->|\[\d+[kKMGT]?(?:,|\)))")
_BAR_ENDS = re.compile(r"\|[^|]*\|\s*$")
_BUCKET_OF_PROMETHEUS = re.compile(
    r"(?P<name>\w{1,120})_(?P<unit>seconds|milliseconds|microseconds|nanoseconds|secs|ms|us|ns)_(?:bucket|(?P<all>count))"
    r"(?:\{(?P<labels>[^}]{0,400})\})? (?P<count>[\d.]{1,20}(?:e\+?\d{1,2})?)\s*(?:\d{1,20})?$"
)
"""`etcd_disk_wal_fsync_duration_seconds_bucket{le="0.002"} 113120`: how many took that long at most."""
_BOUND = re.compile(r',?\s*\ble="(?P<bound>\+Inf|[\d.]{1,20}(?:e[-+]?\d{1,2})?)"')
_UNITS_OF_PROMETHEUS = {
    **dict.fromkeys(("seconds", "secs"), 1e9),
    **dict.fromkeys(("milliseconds", "ms"), 1e6),
    **dict.fromkeys(("microseconds", "us"), 1e3),
    **dict.fromkeys(("nanoseconds", "ns"), 1.0),
}
_HEADING_OF_HDR = re.compile(r"\s*Value(?:\s*\(\s*(?P<unit>\w+)\s*\))?\s+Percentile\s+TotalCount\s+1/\(1-Percentile\)")
_ROW_OF_HDR = re.compile(r"\s*(?P<value>\d{1,15}(?:\.\d{1,9})?)\s+[01]\.\d{1,15}\s+(?P<total>\d{1,18})\s")
_WRK = "Detailed Percentile spectrum"
"""What wrk2 writes above its own, which is in ms."""
_TITLE = re.compile(r"(?:#+ *|[*=]+ *)?([A-Za-z][^@:=|\[\]]{0,60}?)\s*(?:[*=]+|:)\s*$|#+ +([^@:=|\[\]]{1,60}?)\s*$")
"""`before:`, `== before ==`, `## before`: what the histograms below it are called, by whoever put them together."""
_QUOTE = "'"
IMPOSSIBLE_NS = 10**16
"""116 days."""
_BYTES_MAX = 64 * 2**20
_BYTES_LOOKED_AT = 2**16


@dataclass
class Histogram:
    """How many I/Os took how long."""

    name: str
    """The name of the histogram in the text: a disk, a flag; empty if the text has only one."""
    intervals: int = 0
    """Histograms of that name in the text, one after the other; they are counted together."""
    counts: dict[tuple[int, int], int] = field(default_factory=dict)
    """By the latency from which on, and below which, in nanoseconds."""
    impossible: int = 0
    """I/Os in buckets that no I/O reaches: the tool subtracted a later time from an earlier one."""
    is_cut_off: bool = False
    """Whether the text ends in the middle of one of its lines: further buckets may be missing."""

    @property
    def count(self) -> int:
        """I/Os."""
        return sum(self.counts.values())

    @property
    def buckets(self) -> list[tuple[int, int, int]]:
        """From, below and count, in rising order, from the first that is not empty to the last."""
        known = [(low, high, count) for (low, high), count in sorted(self.counts.items())]
        used = [place for place, (*_, count) in enumerate(known) if count]
        return known[used[0] : used[-1] + 1] if used else []

    def within(self, percent: float) -> tuple[int, int] | None:
        """The bucket of a percentile; None of no I/Os."""
        seen, wanted = 0, self.count * percent / 100
        for low, high, count in self.buckets:
            seen += count
            if count and seen >= wanted:
                return low, high
        return None

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        found = {"name": self.name, "intervals": self.intervals, "count": self.count, "histogram_ns": self.buckets}
        found |= {"impossible": self.impossible} if self.impossible else {}
        return found | ({"cut_off": True} if self.is_cut_off else {})


def histograms_of(paths: Sequence[Path]) -> list[Histogram]:
    """The histograms of a text that has some; none of any other file, of several and of a pipe."""
    if len(paths) != 1 or not paths[0].is_file():
        return []
    try:
        with paths[0].open("rb") as file:
            start = file.read(_BYTES_LOOKED_AT)
            lines = _lines(start)
            if b"\0" in start or not any(_unit(line) or _bound(line) or _HEADING_OF_HDR.match(line) for line in lines):
                return []
            lines = _lines(start + file.read(_BYTES_MAX))
    except OSError:
        # Whoever reads it as a trace states why it can't be read.
        return []
    return [*_histograms(lines), *_of_prometheus(lines), *_of_hdr(lines, paths[0])]


@dataclass(frozen=True)
class Moved:
    """Between which latencies a percentile lies in two histograms: no more is known of it."""

    name: str
    percent: float
    before: tuple[int, int]
    after: tuple[int, int]

    @property
    def how(self) -> Literal["higher", "lower", "in the same bucket", "undecided"]:
        """As far as the buckets tell."""
        if self.after[0] >= self.before[1]:
            return "higher"
        if self.after[1] <= self.before[0]:
            return "lower"
        return "in the same bucket" if self.before == self.after else "undecided"

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "name": self.name,
            "percentile": self.percent,
            "baseline_ns": self.before,
            "candidate_ns": self.after,
        } | {"difference": self.how}


PERCENTILES = (50, 90, 99, 99.9, 99.99)


def compare_histograms(baseline: Sequence[Histogram], candidate: Sequence[Histogram]) -> list[Moved]:
    """The percentiles that both know, of histograms of one name, or of the only ones."""
    theirs = {one.name: one for one in candidate}
    are_alone = len(baseline) == len(candidate) == 1
    both = [
        (one, candidate[0] if are_alone else theirs[one.name]) for one in baseline if are_alone or one.name in theirs
    ]
    return [
        Moved(ours.name, percent, before, after)
        for ours, other in both
        for percent in PERCENTILES
        if is_known(percent, ours.count) and is_known(percent, other.count)
        if (before := ours.within(percent)) and (after := other.within(percent))
    ]


def _lines(content: bytes) -> list[str]:
    """Without what posting adds to them: marks of quoting, fences."""
    lines = content.decode(errors="replace").splitlines()
    return [line for _, line in Posting(lines).lines(enumerate(lines, 1))]


def _of_prometheus(lines: Sequence[str]) -> Iterator[Histogram]:
    """Each bucket counts what is in the ones below it too, and `_count` all. Of several readings the last counts."""
    bounds: dict[str, dict[float, int]] = {}
    for name, at, count in filter(None, map(_bound, lines)):
        bounds.setdefault(name, {})[at] = count
    for name, of_name in bounds.items():
        places = sorted(of_name)
        if len(places) < 2:
            continue
        last = places[-1]
        histogram = Histogram(name if math.isinf(last) else f"{name}, those of at most {last / 1e9:g} s", 1)
        for low, high in zip([0.0, *places], places, strict=False):
            limits = round(low), IMPOSSIBLE_NS if math.isinf(high) else round(high)
            histogram.counts[limits] = max(of_name[high] - of_name.get(low, 0), 0)
        if histogram.count:
            yield histogram


def _of_hdr(lines: Sequence[str], path: Path) -> Iterator[Histogram]:
    """HdrHistogram's percentiles, between two of which lie as many as their totals differ by. InputError if nothing
    tells their unit."""
    found: Histogram | None = None
    unit_ns, low, before = 0, 0, 0
    is_wrk = any(_WRK in line for line in lines)
    for number, line in enumerate(lines, 1):
        if heading := _HEADING_OF_HDR.match(line):
            unit_ns = _UNITS.get(heading["unit"] or ("ms" if is_wrk else ""), 0)
            if not unit_ns:
                raise InputError(
                    "HdrHistogram's text states no unit of its values",
                    where=f"{path}:{number}",
                    remedy="write it into this line: Value(ns), Value(us) or Value(ms)",
                )
            if found is None:
                found = Histogram("")
            found.intervals += 1
            low = before = 0
        elif found is not None and (row := _ROW_OF_HDR.match(line)):
            high, total = round(float(row["value"]) * unit_ns), int(row["total"])
            if total > before:
                place = (low, max(high, low))
                found.counts[place] = found.counts.get(place, 0) + total - before
            low, before = max(high, low), max(total, before)
    if found is not None and found.count:
        yield found


def _bound(line: str) -> tuple[str, float, int] | None:
    """What a line of Prometheus counts, up to how many nanoseconds, and how many there are; None of any other line."""
    found = _BUCKET_OF_PROMETHEUS.match(line)
    bound = _BOUND.search(found["labels"] or "") if found else None
    if found is None or (bound is None and not found["all"]):
        return None
    labels = _BOUND.sub("", found["labels"] or "").strip(", ")
    at = float(bound["bound"]) * _UNITS_OF_PROMETHEUS[found["unit"]] if bound else math.inf
    return (f"{found['name']}{{{labels}}}" if labels else found["name"]), at, round(float(found["count"]))


def _histograms(lines: Sequence[str]) -> Iterator[Histogram]:
    found: dict[str, Histogram] = {}
    unit_ns, text, current, closed, title = 0, "", None, False, ""
    for line in lines:
        if named := _NAME.match(line):
            text = f"{named[1]} = {named[2].removeprefix('b').strip(_QUOTE) if _QUOTE in named[2] else named[2]}"
        elif (unit := _unit(line)) is not None:
            unit_ns, name, closed = unit
            # A name stands before its own histogram.
            name, text = ", ".join(filter(None, (title, name or text))), ""
            current = found.setdefault(name, Histogram(name))
            current.intervals += 1
        elif current is not None and (bucket := _bucket(line, closed=closed)):
            low, high, count = bucket
            place = (low * unit_ns, high * unit_ns)
            if place[0] > IMPOSSIBLE_NS:
                current.impossible += count
                continue
            current.counts[place] = current.counts.get(place, 0) + count
        elif titled := _TITLE.match(line):
            name = titled[1] or titled[2]
            title = "" if OF_ANY_RUN.fullmatch(name) or ATTRIBUTION.search(line.rstrip()) else name
    last = next((line for line in reversed(lines) if line.strip()), "")
    if current is not None and _BUCKET_BEGINS.match(last) and not _BAR_ENDS.search(last):
        current.is_cut_off = True
    yield from (one for one in found.values() if one.count or one.impossible)


def _unit(line: str) -> tuple[int, str, bool] | None:
    """The parts of a heading: nanoseconds per unit, what the histogram counts, and whether upper ends belong to their
    buckets."""
    if heading := _HEADING.match(line):
        return _UNITS[heading[1]], "", True
    if heading := _HEADING_OF_IOLATENCY.match(line):
        return _UNITS[heading[1]], "", False
    if heading := _HEADING_OF_BPFTRACE.match(line):
        name = "_".join(filter(None, (heading["map"], heading["rest"])))
        key = f"[{heading['of']}]" if name and heading["of"] else heading["of"] or ""
        return _UNITS[heading["unit"]], f"{name}{key}", False
    return None


def _bucket(line: str, *, closed: bool) -> tuple[int, int, int] | None:
    if found := _RANGE_OF_BPFTRACE.match(line):
        low = int(found[1]) * _POWERS[found[2]]
        high = low + 1 if found[3] is None else int(found[3]) * _POWERS[found[4]]
        return low, high, int(found[5])
    if found := _RANGE.match(line):
        low = int(found[1])
        high = low + 1 if found[2] is None else int(found[2]) + closed
        return low, high, int(found[3])
    return None
