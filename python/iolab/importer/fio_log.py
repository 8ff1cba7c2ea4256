"""fio's logs (write_bw_log, write_iops_log, write_lat_log): `time in ms, value, direction, block size[, offset[,
...]]`.

What the value is, the file's name says (`_bw`, `_iops`, `_lat`, `_clat`, `_slat`): KiB/s, operations per second, or
ns. fio 2 wrote latencies in microseconds (`fio-lat-log-usec`); nothing in the file tells. A line per operation (fio's
default) has a block size, a line per window (log_avg_msec) has 0 in its place.

Read in one streaming pass: counts and sums by direction, latency counts in buckets at most 1 % wide, means by time.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from iolab.errors import InputError
from iolab.histogram import quantile
from iolab.importer import stream
from iolab.importer.format import Format
from iolab.importer.results import Results, Row
from iolab.importer.series import INTERVALS_MAX
from iolab.importer.source import Source

if TYPE_CHECKING:
    import polars as pl

KIB = 1024
NS_PER_MS = 1e6
COLUMNS = ("time_ms", "value", "direction", "bytes", "offset", "priority", "issue_ns")
READ_COLUMNS = COLUMNS[:4]
WAYS = {0: "read", 1: "write"}
BUCKETS_PER_E = 128
"""Buckets of latency for each factor of e: each is 0.8 % wide."""
_BUCKETS, _PLACES = 1 << 13, 1 << 20
"""More than there can be: a bucket, an interval and a direction are one number while counting."""
LINES_LOOKED_AT = 50
LATENCIES = ("lat", "clat", "slat")

_LINE = re.compile(r"\s*\d+,\s*-?\d+,\s*[0-3],\s*\d+(?:,\s*(?:0x)?[\da-f]+){0,3}\s*$")
_NAME = re.compile(r"(?P<stem>.*)_(?P<kind>bw|iops|lat|clat|slat)(?:\.(?P<job>\d+))?\.log$")

Kind = Literal["bw", "iops", "lat"]


@dataclass(frozen=True)
class _Log:
    kind: Kind
    scale: float
    """Of a value, to bytes per second, operations per second or ns."""
    setting: str
    workload: str


def _parse(source: Source, results: Results, kind: Kind, value_ns: float = 1.0) -> None:
    import polars as pl

    fields = next((line.count(",") + 1 for line in source.head_lines if _LINE.match(line)), 0)
    if not fields:
        first = next(line for line in source.head_lines if line.strip())
        raise InputError(f"no line of an fio log: '{first[:40]}'", where=f"{source.name}:1", remedy="see --from")
    named = _NAME.match(source.path.name)
    scale = {"bw": float(KIB), "iops": 1.0, "lat": value_ns}[kind]
    log = _Log(kind, scale, source.stem_without_round, f"fio {named['kind']} log" if named else f"fio {kind} log")
    if named:
        log = _Log(kind, scale, named["stem"], log.workload)
    stream.report_cut_end(source.path, fields, ",", results)
    columns = COLUMNS[:fields]
    schema = {name: pl.Int64 if name in READ_COLUMNS else pl.String for name in columns}
    frame = pl.scan_csv(source.path, has_header=False, schema=schema, truncate_ragged_lines=True)
    try:
        _read(frame, _last_ms(source.path), log, results)
    except pl.exceptions.PolarsError as error:
        numeric = {name: place for place, name in enumerate(READ_COLUMNS)}
        stream.refuse_text(source.path, numeric, separator=",", header_lines=0)
        stream.unreadable(source.path, error)


def _read(frame: pl.LazyFrame, last_ms: int, log: _Log, results: Results) -> None:
    import polars as pl

    width_ms = max(1, -(-(last_ms + 1) // INTERVALS_MAX))
    cells = _cells(frame, width_ms, with_buckets=log.kind == "lat")
    row = results.table(1).row(log.setting, log.workload)
    for direction in cells["direction"].unique().sort():
        of_way = cells.filter(pl.col("direction") == direction)
        op = WAYS.get(direction)
        if op is None:
            results.problem("trims and syncs are left out")
            continue
        total = of_way.select(*_sums(), pl.col("last_ms").max()).row(0, named=True)
        by_operation = total["bytes"] > 0
        _add_total(row, log, op, total, by_operation)
        if log.kind == "lat" and by_operation:
            counts = of_way.group_by("bucket").agg(pl.col("count").sum()).sort("bucket")
            _add_buckets(row, log, op, [(int(_highest_of(bucket) * log.scale), n) for bucket, n in counts.iter_rows()])
        elif log.kind == "lat":
            results.problem("a line is the mean of a window (log_avg_msec): no quantiles of operations can be told")
        for part in of_way.group_by("place").agg(_sums()).sort("place").iter_rows(named=True):
            metric, amount = _of_interval(log, by_operation, part, width_ms)
            row.interval(metric, part["place"] * width_ms * NS_PER_MS, amount, op=op)


def _cells(frame: pl.LazyFrame, width_ms: int, *, with_buckets: bool) -> pl.DataFrame:
    """Counts and sums by direction, interval and latency bucket: the one pass over the file."""
    import polars as pl

    value = pl.col("value")
    place = (pl.col("time_ms") // width_ms).clip(0, _PLACES - 1)
    bucket = (value.clip(lower_bound=1).cast(pl.Float64).log() * BUCKETS_PER_E).cast(pl.Int64)
    key = (pl.col("direction") * _PLACES + place) * _BUCKETS + (bucket if with_buckets else 0)
    squares = value.cast(pl.Float64).pow(2)
    (cells,) = stream.collect(
        [
            frame.select(READ_COLUMNS)
            .drop_nulls()
            .group_by(key.alias("key"))
            .agg(
                pl.len().cast(pl.Int64).alias("count"),
                pl.col("bytes").sum(),
                value.cast(pl.Float64).sum().alias("sum"),
                squares.sum().alias("squares"),
                value.min().alias("min"),
                value.max().alias("max"),
                pl.col("time_ms").max().alias("last_ms"),
            )
        ]
    )
    return cells.with_columns(
        (pl.col("key") // (_PLACES * _BUCKETS)).alias("direction"),
        (pl.col("key") // _BUCKETS % _PLACES).alias("place"),
        (pl.col("key") % _BUCKETS).alias("bucket"),
    )


def _sums() -> list[pl.Expr]:
    import polars as pl

    added = [pl.col(name).sum() for name in ("count", "bytes", "sum", "squares")]
    return [*added, pl.col("min").min(), pl.col("max").max()]


def _highest_of(bucket: int) -> int:
    """The highest latency in the bucket."""
    return math.floor(math.exp((bucket + 1) / BUCKETS_PER_E))


def _add_total(row: Row, log: _Log, op: str, total: dict[str, float], by_operation: bool) -> None:
    seconds = total["last_ms"] / 1000
    mean = total["sum"] / total["count"]
    if log.kind == "lat":
        row.add("latency_ns_mean", mean * log.scale, op=op)
        if by_operation:
            variance = max(0.0, total["squares"] / total["count"] - mean * mean)
            row.add("latency_ns_stddev", math.sqrt(variance) * log.scale, op=op)
            row.add("latency_ns_min", total["min"] * log.scale, op=op)
            row.add("latency_ns_max", total["max"] * log.scale, op=op)
            row.add("ops", total["count"], op=op)
    elif by_operation:
        amount = total["bytes"] if log.kind == "bw" else total["count"]
        row.add(_metric(log), amount / seconds if seconds else None, op=op, absent="all within a millisecond")
    else:
        row.add(_metric(log), mean * log.scale, op=op)


def _add_buckets(row: Row, log: _Log, op: str, buckets: list[tuple[int, int]]) -> None:
    row.histogram(buckets, op=op)
    for short, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)):
        row.add(f"latency_ns_{short}", quantile([(at, at, count) for at, count in buckets], share), op=op)


def _of_interval(log: _Log, by_operation: bool, part: dict[str, float], width_ms: int) -> tuple[str, float]:
    if log.kind == "lat" or not by_operation:
        return _metric(log), part["sum"] / part["count"] * log.scale
    return _metric(log), (part["bytes"] if log.kind == "bw" else part["count"]) * 1000 / width_ms


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
    named = _NAME.match(source.path.name)
    kind = named["kind"] if named else None
    if not lines or not all(_LINE.match(line) for line in lines[: max(1, len(lines) - 1)]):
        return False
    if kind is None:
        raise InputError(
            "numbers like an fio log's, and the name doesn't say of what",
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
        help="the same of fio 2, in microseconds; has to be named",
        recognises=lambda source: False,
        parse=lambda source, results: _parse(source, results, "lat", 1e3),
        words=("_lat.", ".log"),
        among_text=False,
    ),
)
