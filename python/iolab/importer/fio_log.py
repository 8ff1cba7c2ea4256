"""fio's logs (write_bw_log, write_iops_log, write_lat_log): `time in ms, value, direction, block size[, offset[,
...]]`.

What the value is, the file's name says (`_bw`, `_iops`, `_lat`, `_clat`, `_slat`): KiB/s, operations per second, or
ns. fio 2 wrote latencies in microseconds (`fio-lat-log-usec`); nothing in the file tells. A line per operation (fio's
default) has a block size, a line per window (log_avg_msec) has 0 in its place.

Read in one streaming pass: counts and sums by direction, latency counts in buckets at most 1 % wide, means by time.
"""

from __future__ import annotations

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
BUCKET_BITS = 7
"""Buckets keep so many bits below the leading one: 1/128 wide."""
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
    whole = frame.select(READ_COLUMNS).drop_nulls()
    value = pl.col("value")
    queries = [
        whole.group_by("direction").agg(
            pl.len().alias("count"),
            pl.col("bytes").sum(),
            value.min().alias("min"),
            value.max().alias("max"),
            value.mean().alias("mean"),
            value.std(ddof=0).alias("stddev"),
            pl.col("time_ms").max().alias("last_ms"),
        ),
        whole.group_by("direction", (pl.col("time_ms") // width_ms).alias("place")).agg(
            pl.len().alias("count"), pl.col("bytes").sum(), value.mean().alias("mean")
        ),
    ]
    if log.kind == "lat":
        queries.append(whole.group_by("direction", _bucket(value).alias("at")).agg(pl.len().alias("count")))
    totals, series, *buckets = stream.collect(queries)
    row = results.table(1).row(log.setting, log.workload)
    for total in totals.sort("direction").iter_rows(named=True):
        op = WAYS.get(total["direction"])
        if op is None:
            results.problem("trims and syncs are left out")
            continue
        by_operation = total["bytes"] > 0
        _add_total(row, log, op, total, by_operation)
        if buckets and by_operation:
            counts = buckets[0].filter(pl.col("direction") == total["direction"]).sort("at")
            _add_buckets(row, log, op, [(int(at * log.scale), n) for _, at, n in counts.iter_rows()])
        if buckets and not by_operation:
            results.problem("a line is the mean of a window (log_avg_msec): no quantiles of operations can be told")
        of_way = series.filter(pl.col("direction") == total["direction"]).sort("place")
        for _, place, count, size, mean in of_way.iter_rows():
            metric, amount = _of_interval(log, by_operation, count, size, mean, width_ms)
            row.interval(metric, place * width_ms * NS_PER_MS, amount, op=op)


def _bucket(value: pl.Expr) -> pl.Expr:
    """The upper bound of the value's bucket, exact for small ones."""
    import polars as pl

    magnitude = value.clip(lower_bound=1).log(2).floor().cast(pl.Int64)
    width = pl.lit(2, dtype=pl.Int64).pow((magnitude - BUCKET_BITS).clip(lower_bound=0)).cast(pl.Int64)
    return (value // width + 1) * width - 1


def _add_total(row: Row, log: _Log, op: str, total: dict[str, float], by_operation: bool) -> None:
    seconds = total["last_ms"] / 1000
    if log.kind == "lat":
        row.add("latency_ns_mean", total["mean"] * log.scale, op=op)
        if by_operation:
            row.add("latency_ns_stddev", total["stddev"] * log.scale, op=op)
            row.add("latency_ns_min", total["min"] * log.scale, op=op)
            row.add("latency_ns_max", total["max"] * log.scale, op=op)
            row.add("ops", total["count"], op=op)
    elif by_operation:
        amount = total["bytes"] if log.kind == "bw" else total["count"]
        row.add(_metric(log), amount / seconds if seconds else None, op=op, absent="all within a millisecond")
    else:
        row.add(_metric(log), total["mean"] * log.scale, op=op)


def _add_buckets(row: Row, log: _Log, op: str, buckets: list[tuple[int, int]]) -> None:
    row.histogram(buckets, op=op)
    for short, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)):
        row.add(f"latency_ns_{short}", quantile([(at, at, count) for at, count in buckets], share), op=op)


def _of_interval(log: _Log, by_operation: bool, count: int, size: int, mean: float, width_ms: int) -> tuple[str, float]:
    if log.kind == "lat" or not by_operation:
        return _metric(log), mean * log.scale
    return _metric(log), (size if log.kind == "bw" else count) * 1000 / width_ms


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
