"""Two traces beside each other: stretches of time are the units, long enough to be independent."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from iolab.base.errors import InputError
from iolab.base.trace_files import Trace
from iolab.domain.verdict.unpaired_samples import judge_unpaired
from iolab.files.importer.unread import TRACE, UNREAD
from iolab.studies.trace.export import frames

if TYPE_CHECKING:
    import polars as pl

    from iolab.domain.definition import Nature
    from iolab.domain.verdict.judgement import Judgement

BLOCKS_MIN = 8
BLOCKS_MAX = 64
RELATED_FROM = 0.25
"""Correlation of a stretch with the next, from which longer ones are taken."""
ONE_EACH = (
    "One trace each is not an experiment: the verdicts are about these two stretches of time. Whatever else differed "
    "between them (the load, the hour, the state of the device) is in the difference."
)
_LOOKED_AT, _LINES_LOOKED_AT = 4096, 3
"""Bytes, and lines, of which the first may say that it is tracing."""
_PUBLIC = re.compile(
    r"\d{18},[^,]+,\d+,(?:Read|Write),\d+,\d+,\d+"
    r"|\d+,[RW],\d+,\d+,\d{13,}"
    r"|\d{10},\d+,\d+,[01],\d+"
    r"|\d+,\d+,\d+,[rRwW],\d+\.\d+(?:,.*)?"
    r"|(?:Timestamp,Response,IOType,LUN,Offset,Size|\d+\.\d+,[\d.]*,[RW],\d+,\d+,\d+)"
)
"""Lines of MSR Cambridge, Alibaba, Tencent, SPC and Systor '17: crates/measure/trace/src/input/public.rs."""
_MAGICS = (b"\x17\x08\x44tracing", b"PERFILE2", b"\x07tae", b"\x08tae", b"# tracer:", b"fio version ")


@dataclass(frozen=True)
class TraceComparison:
    """One metric of both traces."""

    metric: str
    baseline_blocks: int
    candidate_blocks: int
    block_s: float
    judgement: Judgement | None
    """None if there are not enough independent stretches."""
    why_not: str | None


def is_trace(path: Path) -> bool:
    """Whether a file is a trace beyond doubt; any other table of I/Os may be anything, and is compared as one."""
    if not path.is_file():
        return not path.exists() and Path(f"{path}.blktrace.0").is_file()
    with path.open("rb") as file:
        begin = file.read(_LOOKED_AT)
    lines = begin.decode(errors="replace").splitlines()[:_LINES_LOOKED_AT]
    return (
        begin.startswith(_MAGICS)
        or (len(lines) > 1 and all(map(_PUBLIC.fullmatch, lines[:2])))
        or any(one.line.search(line) for one in UNREAD if one.remedy == TRACE for line in lines)
    )


def compare_traces(baseline: Trace, candidate: Trace, same_within: float = 0.02) -> list[TraceComparison]:
    """Latency and rate of both, judged by stretches of time.

    Raises:
        InputError: one can't be read, or lacks what is compared.
    """
    both = [_requests(trace) for trace in (baseline, candidate)]
    stage = "whole" if all(rows["whole_ns"].count() for rows in both) else "device"
    if not all(rows[f"{stage}_ns"].count() for rows in both):
        raise InputError("has no latency to compare", where=f"{baseline.name}, {candidate.name}")
    return [
        _judged(f"{stage}_ns_{name}", both, f"{stage}_ns", name, same_within) for name in ("mean", "p50", "p99")
    ] + [_judged("requests_per_s", both, f"{stage}_ns", "rate", same_within)]


def _requests(trace: Trace) -> pl.DataFrame:
    import polars as pl

    ended = pl.col("completed_ns")
    kept = [
        frame.select(
            "completed_ns",
            whole_ns=ended - pl.col("queued_ns"),
            device_ns=ended - pl.col("issued_ns"),
        )
        for frame in frames(trace)
    ]
    if not kept:
        raise InputError("no request ended in it", where=trace.name)
    return pl.concat(kept).drop_nulls("completed_ns").sort("completed_ns")


def _judged(metric: str, both: list[pl.DataFrame], column: str, name: str, same_within: float) -> TraceComparison:
    shortest_ns = min(int(rows["completed_ns"][-1] - rows["completed_ns"][0]) for rows in both)
    blocks = BLOCKS_MAX
    while blocks >= BLOCKS_MIN:
        block_ns = max(1, shortest_ns // blocks)
        series = [_blocks(rows, block_ns, column, name) for rows in both]
        if all(len(values) >= BLOCKS_MIN and abs(_lag_1(values)) < RELATED_FROM for values in series):
            # More requests per second are no success of the device: somebody asked for them.
            nature: Nature = "neutral" if name == "rate" else "time"
            judged = [_spread(values, blocks) for values in series]
            judgement = judge_unpaired(*judged, nature=nature, same_within=same_within)
            return TraceComparison(metric, len(judged[0]), len(judged[1]), block_ns / 1e9, judgement, None)
        blocks //= 2
    why = f"fewer than {BLOCKS_MIN} independent stretches of time: record longer"
    return TraceComparison(metric, 0, 0, shortest_ns / 1e9 / BLOCKS_MIN, None, why)


def _blocks(rows: pl.DataFrame, block_ns: int, column: str, name: str) -> list[float]:
    """A value per whole stretch of time; of one without requests, only its rate has one."""
    import polars as pl

    since = pl.col("completed_ns") - rows["completed_ns"][0]
    figures = {
        "mean": pl.col(column).mean(),
        "p50": pl.col(column).quantile(0.5),
        "p99": pl.col(column).quantile(0.99),
    }
    if name == "rate":
        counts = np.bincount(rows.select(since // block_ns).to_series().to_numpy())
        return [float(count) / (block_ns / 1e9) for count in counts[:-1]]
    grouped = rows.group_by((since // block_ns).alias("block"), maintain_order=True).agg(value=figures[name])
    return [float(value) for value in grouped["value"][:-1] if value is not None]


def _spread(values: list[float], most: int) -> list[float]:
    """At most this many, spread evenly, of each trace: averages of several stretches are not like single ones."""
    return values if len(values) <= most else [values[index * len(values) // most] for index in range(most)]


def _lag_1(values: list[float]) -> float:
    """Correlation of each value with the next; 0 if nothing varies."""
    centred = np.array(values) - np.mean(values)
    total = float((centred**2).sum())
    return 0.0 if total == 0 else float((centred[1:] * centred[:-1]).sum()) / total
