"""A workload that offers what a trace shows: mix, sizes, places and arrivals of each process, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.base.quantity import format_bytes, plain
from iolab.base.trace_files import Trace
from iolab.studies.trace.export import frames, task_names

if TYPE_CHECKING:
    import polars as pl

STREAMS_MAX = 12
"""Tasks that stand for themselves; further ones together, those that are sequential apart from the others."""
SIZES_MAX = 6
ROWS_MAX = 5_000_000
BLOCK_BYTES = 4096
SEQUENTIAL_FROM = 0.7
"""Share of requests that begin where the one before ended, from which a stream is called sequential."""
REGULAR_BELOW = 0.5
"""Variance over mean of arrivals in windows of 10 ms, below which they come as by a clock."""
ZIPF_BELOW = 0.9
"""Distinct blocks per request, below which some blocks are hot."""
DURATION_MAX_S = 10.0
DEPTH_MIN, DEPTH_MAX = 32, 4096
"""Room for requests of a stream that had several in flight: on a slower device there are more of them."""
_WINDOW_NS = 10_000_000


@dataclass(frozen=True)
class Stream:
    """What one task did, or what it read or wrote, if the one is sequential and the other is not."""

    name: str
    requests: int
    read_percent: float
    sizes: dict[int, float]
    """Bytes, in whole blocks, and their share in percent."""
    sizes_left_out: float
    """Share of requests of other sizes."""
    sequential_share: float
    zipf_theta: float | None
    rate_iops: float
    dispersion: float
    depth: int
    writes_per_flush: int | None
    span_bytes: int

    @property
    def pattern(self) -> str:
        """The option of a job."""
        if self.sequential_share >= SEQUENTIAL_FROM:
            return "sequential"
        return "random" if self.zipf_theta is None else "zipf"

    def misses(self) -> Iterator[str]:
        """What the synthetic stream has not; a line each."""
        if self.sizes_left_out > 0.005:
            yield f"{self.name}: {self.sizes_left_out:.1%} of its requests have other sizes"
        if 0.05 < self.sequential_share < SEQUENTIAL_FROM or SEQUENTIAL_FROM <= self.sequential_share < 0.95:
            share = f"{self.sequential_share:.1%} of its requests follow one another"
            yield f"{self.name}: {share}; the stream is {self.pattern}"
        if self.dispersion > 2:
            yield (
                f"{self.name}: arrivals come in bursts, {plain(self.dispersion, 3)} times as uneven as those of the "
                "stream (in windows of 10 ms)"
            )


def characterise(trace: Trace) -> list[Stream]:
    """The streams of a trace, those of most requests first.

    Raises:
        InputError: it can't be read, or holds too little.
    """
    import polars as pl

    kept, count = [], 0
    for frame in frames(trace):
        kept.append(frame.select("arrived_ns", "completed_ns", "pid", "operation", "sector", "sectors", "preflush"))
        count += len(frame)
        if count > ROWS_MAX:
            raise InputError(f"more than {ROWS_MAX} requests", where=trace.name, remedy="cut the trace")
    if count < 2:
        raise InputError("fewer than two requests ended in it", where=trace.name)
    names = task_names(trace)
    rows = pl.concat(kept).sort("arrived_ns", maintain_order=True)
    began_ns, ended_ns = rows.select(pl.col("arrived_ns").min(), pl.col("arrived_ns").max().alias("ended")).row(0)
    elapsed_s = max((ended_ns - began_ns) / 1e9, 1e-6)
    parts = _parts(rows)
    if parts.is_empty():
        raise InputError("neither reads nor writes in it", where=trace.name)
    rows = rows.join(parts, on=["pid", "operation"], how="left", maintain_order="left")
    # A flush belongs to what its task writes.
    written = parts.filter(pl.col("operation") == "write").select("pid", of_writes="stream")
    of_task = parts.unique("pid", keep="first").select("pid", of_task="stream")
    rows = rows.join(written, on="pid", how="left", maintain_order="left").join(
        of_task, on="pid", how="left", maintain_order="left"
    )
    rows = rows.with_columns(stream=pl.coalesce("stream", "of_writes", "of_task"))
    return [
        _stream(_name(rows_of, names), rows_of, elapsed_s)
        for _, rows_of in sorted(
            rows.drop_nulls("stream").group_by("stream", maintain_order=True), key=lambda found: found[0]
        )
    ]


def _parts(rows: pl.DataFrame) -> pl.DataFrame:
    """The number of the stream that each task's reads and writes are in: those of most requests first."""
    import polars as pl

    data = rows.filter((pl.col("sectors") > 0) & pl.col("operation").is_in(["read", "write"]))
    end = pl.col("sector") + pl.col("sectors")
    parts = (
        data.with_columns(follows=(pl.col("sector") == end.shift().over("pid", "operation")).fill_null(value=False))
        .group_by("pid", "operation")
        .agg(requests=pl.len(), share=pl.col("follows").mean())
        .with_columns(sequential=pl.col("share") >= SEQUENTIAL_FROM)
    )
    streams = parts.group_by("pid", "sequential").agg(pl.col("requests").sum())
    streams = streams.sort("requests", "pid", "sequential", descending=[True, False, False]).with_row_index("stream")
    last = STREAMS_MAX - 2
    kept = pl.when(pl.col("stream") < last).then("stream").otherwise(last + pl.col("sequential").cast(pl.UInt32))
    streams = streams.with_columns(stream=kept.cast(pl.UInt32))
    return (
        parts.join(streams, on=["pid", "sequential"])
        .sort("stream", "pid", "operation")
        .select("pid", "operation", "stream")
    )


def _name(rows: pl.DataFrame, names: dict[int, str]) -> str:
    """`fio-12`, and of several tasks `others`."""
    pids = rows["pid"].unique().to_list()
    return f"{names.get(pids[0], 'task')}-{pids[0]}" if len(pids) == 1 else "others"


def _stream(name: str, rows: pl.DataFrame, elapsed_s: float) -> Stream:
    import polars as pl

    data = rows.filter((pl.col("sectors") > 0) & pl.col("operation").is_in(["read", "write"]))
    blocks = (data["sectors"].cast(pl.Int64) * 512 + BLOCK_BYTES - 1) // BLOCK_BYTES * BLOCK_BYTES
    counted = blocks.rename("size").value_counts(sort=True)
    most = counted.head(SIZES_MAX)
    shares = {int(size): count / len(data) for size, count in most.iter_rows()}
    total = sum(shares.values())
    end = pl.col("sector") + pl.col("sectors")
    follows = data.select(pl.col("sector") == end.shift().over("pid", "operation")).to_series().fill_null(value=False)
    windows = (data["arrived_ns"] // _WINDOW_NS).rename("window").value_counts()
    held = max(1, int(elapsed_s * 1e9 / _WINDOW_NS))
    mean = len(data) / held
    squares = float((windows["count"].cast(pl.Float64) ** 2).sum()) / held
    flushes = rows.filter((pl.col("operation") == "flush") | pl.col("preflush")).height
    writes = data.filter(pl.col("operation") == "write").height
    return Stream(
        name=name,
        requests=len(data),
        read_percent=round(100 * (1 - writes / len(data)), 1),
        sizes={size: round(100 * share / total, 2) for size, share in shares.items()},
        sizes_left_out=max(0.0, 1 - total),
        sequential_share=float(follows.mean() or 0.0),  # type: ignore[arg-type]
        zipf_theta=_zipf(data["sector"] // (BLOCK_BYTES // 512)),
        rate_iops=round(len(data) / elapsed_s, 3),
        dispersion=max(0.0, squares - mean * mean) / mean,
        depth=_depth(data),
        writes_per_flush=max(1, round(writes / flushes)) if flushes and writes else None,
        span_bytes=int((end_of(data) - data["sector"].min()) * 512),  # type: ignore[operator]
    )


def end_of(data: pl.DataFrame) -> int:
    """The sector after the last."""
    return int((data["sector"] + data["sectors"]).max())  # type: ignore[arg-type]


def _zipf(blocks: pl.Series) -> float | None:
    """The skew of a Zipf distribution with these frequencies by rank, by least squares of their logarithms; None if
    blocks hardly come again."""
    import numpy as np

    counts = blocks.rename("block").value_counts(sort=True)["count"].to_numpy()
    if len(counts) / max(1, counts.sum()) > ZIPF_BELOW or len(counts) < 10:
        return None
    ranks = np.arange(1, len(counts) + 1)
    seen = counts >= 2
    if seen.sum() < 5 or counts[0] == counts[seen][-1]:
        return None
    slope = np.polyfit(np.log(ranks[seen]), np.log(counts[seen]), 1)[0]
    return round(float(min(3.0, max(0.1, -slope))), 2)


def _depth(data: pl.DataFrame) -> int:
    """Room for twice as many requests as were in flight at once: how many there are follows from their rate. One, if
    the task waited for each; 32 if it is unknown when they ended."""
    import polars as pl

    ended = data.drop_nulls("completed_ns")
    if ended.is_empty():
        return DEPTH_MIN
    steps = pl.concat(
        [
            ended.select(at="arrived_ns", by=pl.lit(1, pl.Int64)),
            ended.select(at="completed_ns", by=pl.lit(-1, pl.Int64)),
        ]
    )
    most = int(steps.sort("at", "by")["by"].cum_sum().max() or 1)  # type: ignore[arg-type]
    return 1 if most <= 1 else min(DEPTH_MAX, max(DEPTH_MIN, 2 * most))


def experiment(streams: list[Stream], elapsed_s: float, size_bytes: int) -> str:
    """The text of an experiment whose workload offers the streams, on files of at most this many bytes."""
    lines = [
        "# What a trace offered, made by iolab characterise: each stream is an open loop with its task's mix,",
        "# sizes, pattern and mean rate. No name of a file and no content of the traced machine is in it.",
        'title = "A workload with the characteristics of a trace"',
        "",
        "[target]",
        'kind = "directory"',
        "",
        "[workloads.trace]",
        'kind = "mix"',
        f'duration = "{max(0.1, min(elapsed_s, DURATION_MAX_S)):.3g}s"',
    ]
    for number, stream in enumerate(streams):
        blocks = ", ".join(f'"{format_bytes(size)}" = {share:g}' for size, share in stream.sizes.items())
        size = max(max(stream.sizes) * 4, min(size_bytes, stream.span_bytes)) // BLOCK_BYTES * BLOCK_BYTES
        lines += [
            "",
            f"[workloads.trace.jobs.stream-{number}]  # {counted(stream.requests, 'request')}",
            f'pattern = "{stream.pattern}"',
            *([f"zipf_theta = {stream.zipf_theta}"] if stream.pattern == "zipf" else []),
            f"read_percent = {stream.read_percent:g}",
            f"block_size = {{ {blocks} }}",
            f"queue_depth = {stream.depth}",
            f'file_size = "{format_bytes(size)}"',
            f"rate_iops = {stream.rate_iops:g}",
            f'spacing = "{"constant" if stream.dispersion < REGULAR_BELOW else "poisson"}"',
            *([f"fdatasync_every = {stream.writes_per_flush}"] if stream.writes_per_flush else []),
        ]
    return "\n".join(lines) + "\n"
