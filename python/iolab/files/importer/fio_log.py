"""fio's logs (write_bw_log, write_iops_log, write_lat_log): `time in ms, value, direction, block size[, offset[,
...]]`.

The file's name gives the kind of value (`_bw`, `_iops`, `_lat`, `_clat`, `_slat`): KiB/s, operations per second, or ns.
fio 2 wrote latencies in microseconds (`fio-lat-log-usec`); nothing in the file shows which. A line per operation (fio's
default) has a block size, a line per window (log_avg_msec) has 0 in its place.

Read in one pass: counts and sums by direction, latency counts in buckets at most 0.8 % wide, means by time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from iolab._native import IoLog, LogDirection
from iolab.base.errors import InputError
from iolab.base.histogram import few, known_quantile
from iolab.files.importer import pieces
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Row
from iolab.files.importer.series import INTERVALS_MAX
from iolab.files.importer.source import Source

KIB = 1024
NS_PER_MS = 1e6
WAYS = {0: "read", 1: "write"}
LINES_LOOKED_AT = 50
OTHER_CLOCK_MS = 10**9
"""No job begins its log after eleven days."""
TIME_DIGITS_MAX = 20
LATENCIES = ("lat", "clat", "slat")

_LINE = re.compile(
    r"\s*+\d{1,20}+,\s*+\d{1,20}+,\s*+[0-3],\s*+\d{1,20}+(?>(?:,\s*+(?:0x)?[\da-f]++){0,3})\s*+$", re.ASCII
)
_NAME = re.compile(r".*_(?P<kind>bw|iops|lat|clat|slat)(?:\.(?P<job>\d+))?\.log$")

Kind = Literal["bw", "iops", "lat"]


@dataclass(frozen=True)
class _Log:
    kind: Kind
    scale: float
    """The factor from a value to bytes per second, operations per second or ns."""
    setting: str
    workload: str


def _parse(source: Source, results: Results, kind: Kind, value_ns: float = 1.0) -> None:
    fields = next((line.count(",") + 1 for line in source.head_lines if _LINE.match(line)), 0)
    if not fields:
        raise _no_line(source, 1, next(line for line in source.head_lines if line.strip()))
    named = _NAME.match(source.file_name)
    scale = {"bw": float(KIB), "iops": 1.0, "lat": value_ns}[kind]
    log = _Log(kind, scale, source.stem_without_round, f"fio {named['kind']} log" if named else f"fio {kind} log")
    content = source.content
    end = pieces.end_of_whole_lines(content.path, fields, ",", results)
    origin_ms = _origin_ms(source)
    width_ms = max(1, -(-(_last_ms(content.path) - origin_ms + 1) // INTERVALS_MAX))
    try:
        directions = pieces.added_up(content.path, source.begin, end, lambda: _Sums(width_ms, origin_ms)).directions()
    except ValueError as error:
        raise _no_line(source, *pieces.line_at(content.path, error.args[0])) from None
    row = results.table(1).row(log.setting, log.workload)
    for number, direction in enumerate(directions):
        if direction is not None and number not in WAYS:
            results.problem("trims and syncs are left out")
        elif direction is not None:
            if log.kind == "lat" and not direction.bytes:
                results.problem("a line is the mean of a window (log_avg_msec): it has no quantiles of operations")
            _add(row, log, WAYS[number], direction, width_ms)


class _Sums:
    """What a piece of a log comes to, its times counted from `origin_ms`."""

    def __init__(self, width_ms: int, origin_ms: int) -> None:
        self.log = IoLog(width_ms)
        self.origin_ms = origin_ms

    def add(self, text: bytes, begin: int, end: int, offset: int) -> None:
        """As `pieces.Sums` says."""
        if not self.origin_ms:
            self.log.add(text, begin, end, offset)
            return
        lines = text[begin:end].splitlines(keepends=True)
        moved = [self._moved(line) for line in lines]
        try:
            self.log.add(b"".join(moved), 0, sum(map(len, moved)), 0)
        except ValueError as error:
            place = b"".join(moved)[: error.args[0]].count(b"\n")
            raise ValueError(offset + sum(map(len, lines[:place]))) from None

    def _moved(self, line: bytes) -> bytes:
        time, comma, rest = line.partition(b",")
        digits = time.strip()
        known = digits.isdigit() and len(digits) <= TIME_DIGITS_MAX
        return b"%d%b%b" % (max(0, int(digits) - self.origin_ms), comma, rest) if known else line

    def merge(self, later: Self) -> None:
        """As `pieces.Sums` says."""
        self.log.merge(later.log)

    def directions(self) -> list[LogDirection | None]:
        """By fio's number of the direction."""
        return self.log.directions()


def _origin_ms(source: Source) -> int:
    """What times are counted from: 0, unless they are dates (log_unix_epoch) or of some other clock. Then the first
    counts as the first millisecond: when the job started is not on record."""
    times = [int(line.partition(",")[0]) for line in source.head_lines[:LINES_LOOKED_AT] if _LINE.match(line)]
    first = min(times, default=0)
    return first - 1 if first >= OTHER_CLOCK_MS else 0


def _no_line(source: Source, number: int, text: str) -> InputError:
    return InputError(
        f"no line of an fio log: '{text.strip()[:40]}'",
        where=f"{source.name}:{number}",
        remedy="expected time, value, direction, block size: whole numbers; --from FORMAT if it is something else",
    )


def _add(row: Row, log: _Log, op: str, direction: LogDirection, width_ms: int) -> None:
    by_operation = direction.bytes > 0
    _add_total(row, log, op, direction, by_operation)
    if log.kind == "lat" and by_operation:
        _add_buckets(
            row,
            log,
            op,
            [(int(highest * log.scale), count) for highest, count in direction.buckets],
            direction.max * log.scale,
        )
    for place, interval in enumerate(direction.intervals):
        if interval[0]:
            amount = _of_interval(log, by_operation, interval, width_ms)
            row.interval(_metric(log), place * width_ms * NS_PER_MS, amount, op=op)


def _add_total(row: Row, log: _Log, op: str, direction: LogDirection, by_operation: bool) -> None:
    seconds = direction.last_ms / 1000
    if log.kind == "lat":
        row.add("latency_ns_mean", direction.mean * log.scale, op=op)
        if by_operation:
            row.add("latency_ns_stddev", direction.stddev * log.scale, op=op)
            row.add("latency_ns_min", direction.min * log.scale, op=op)
            row.add("latency_ns_max", direction.max * log.scale, op=op)
            row.add("ops", float(direction.count), op=op)
    elif by_operation:
        amount = direction.bytes if log.kind == "bw" else direction.count
        row.add(_metric(log), amount / seconds if seconds else None, op=op, absent="all within a millisecond")
    else:
        row.add(_metric(log), direction.mean * log.scale, op=op)


def _add_buckets(row: Row, log: _Log, op: str, buckets: list[tuple[int, int]], highest: float) -> None:
    row.histogram(buckets, op=op)
    for short, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)):
        found = known_quantile([(at, at, count) for at, count in buckets], share, highest)
        row.add(f"latency_ns_{short}", found, op=op, absent=few(share))


def _of_interval(log: _Log, by_operation: bool, interval: tuple[int, int, int], width_ms: int) -> float:
    count, size, total = interval
    if log.kind == "lat" or not by_operation:
        return total / count * log.scale
    return (size if log.kind == "bw" else count) * 1000 / width_ms


def _metric(log: _Log) -> str:
    return {"bw": "rate_bytes_per_s", "iops": "iops", "lat": "latency_ns_mean"}[log.kind]


def _last_ms(path: Path) -> int:
    """The time in the last whole line."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - (1 << 16)))
        lines = file.read().decode(errors="replace").splitlines()
    whole = [line for line in lines if _LINE.match(line)]
    return min(int(whole[-1].partition(",")[0]), 2**53) if whole else 0


def _is_log(source: Source, kinds: tuple[str, ...]) -> bool:
    lines = [line for line in source.head_lines if line.strip()][:LINES_LOOKED_AT]
    named = _NAME.match(source.file_name)
    kind = named["kind"] if named else None
    if not lines or not all(_LINE.match(line) for line in lines[: max(1, len(lines) - 1)]):
        return False
    if kind is None:
        raise InputError(
            "numbers like an fio log's, and the name doesn't show of what",
            where=source.name,
            remedy=f"name it with --from {', '.join(one.name for one in FORMATS)}, or csv",
        )
    return kind in kinds


FORMATS = (
    Format(
        name="fio-bw-log",
        help="fio's write_bw_log: rates in KiB/s",
        recognises=lambda source: _is_log(source, ("bw",)),
        parse=lambda source, results: _parse(source, results, "bw"),
        words=("_bw.", ".log"),
        among_text=False,
    ),
    Format(
        name="fio-iops-log",
        help="fio's write_iops_log",
        recognises=lambda source: _is_log(source, ("iops",)),
        parse=lambda source, results: _parse(source, results, "iops"),
        words=("_iops.", ".log"),
        among_text=False,
    ),
    Format(
        name="fio-lat-log",
        help="fio's write_lat_log: lat, clat and slat in ns, as fio 3 writes them",
        recognises=lambda source: _is_log(source, LATENCIES),
        parse=lambda source, results: _parse(source, results, "lat"),
        words=("_lat.", ".log"),
        among_text=False,
    ),
    Format(
        name="fio-lat-log-usec",
        help="the same as fio 2 writes them, in microseconds; needs --from",
        recognises=lambda source: False,
        parse=lambda source, results: _parse(source, results, "lat", 1e3),
        words=("_lat.", ".log"),
        among_text=False,
    ),
)
