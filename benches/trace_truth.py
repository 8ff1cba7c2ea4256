"""Times of a trace against the engine's own: a million random direct I/Os of 4 KiB on a loop device on tmpfs, 32 at a
time, recorded by `iolab record` and timed one by one by the engine, both on CLOCK_MONOTONIC. The engine's time of an
I/O begins before the kernel receives it and ends after the kernel has reported its completion. The trace's queue event
and completion must therefore lie within the engine's time, to the resolution of the time stamps. There is no peer: btt
refuses such a trace.

Blocks are used again while they are in flight. If two I/Os look alike, the trace may report their times as unknown, and
those of the I/Os that came to the same block after them. A bio that is refused because it would have to wait is queued
once more; the refused bio is no I/O of the engine's.

The engine's time is longer than the trace's by what passes before the kernel takes an I/O from the ring and before the
engine takes its completion. Both grow with the queue depth, because one thread submits and completes a batch at a time;
with one I/O at a time there is no batch.
"""

import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import loop_device
import polars as pl
from iolab.domain.native_types import Phase
from iolab.domain.workload import KINDS
from iolab.studies.trace import export, study, trace_of
from iolab.studies.trace.record import record
from result import NotMeasured, Result, bounded, plain
from startup import MEMORY

IOS, QUICK_IOS = 1_000_000, 20_000
SIZE_MIB = 64
BLOCK_BYTES = 4096
DEPTH = 32
BUFFER_KIB = 128 * 1024
RESOLUTION_NS = 1
LOAD = """
import json, sys
from iolab import _native
job = _native.Load.start(sys.stdin.read(), _native.Memory())
while (record := job.wait(1)) is None: pass
sys.stdout.write(record)
"""


@dataclass(frozen=True)
class Truth:
    """I/Os of the engine's log beside the requests of the trace, by place and in the order of time."""

    ios: int
    missing: int
    """I/Os without a request, or requests without an I/O."""
    unknown: int
    """Requests whose times the trace does not show."""
    outside: int
    """I/Os whose events lie outside the engine's time."""
    engine_longer_ns_median: float
    """The engine's time less the trace's."""
    handed_over_ns_median: float
    """From the engine's offer to the queue event."""
    taken_ns_median: float
    """From the completion to when the engine took it."""


def measure(quick: bool) -> list[Result]:
    ios = QUICK_IOS if quick else IOS
    with (
        tempfile.TemporaryDirectory(prefix="iolab-bench-", dir=MEMORY) as name,
        loop_device.bare(size_mib=SIZE_MIB) as device,
    ):
        # A loop device keeps this setting after its file is gone, and the next file would have it.
        nomerges = Path("/sys/block") / device.name / "queue" / "nomerges"
        before = nomerges.read_text()
        nomerges.write_text("2")
        try:
            found = compared(device, Path(name), ios)
            alone = compared(device, Path(name), ios // 10, depth=1)
        finally:
            nomerges.write_text(before)
    what = f"of {found.ios:,} I/Os"
    command = f"iolab record {device} -- (random, 4 KiB, queue depth {DEPTH})"
    return [
        bounded(f"times outside the engine's, {what}", "I/Os", [found.outside], limit=0.5, commands=[command]),
        bounded(f"missing or extra in the trace, {what}", "I/Os", [found.missing], limit=0.5),
        bounded(f"unknown times, {what}", "percent", [100 * found.unknown / found.ios], limit=1.0),
        bounded("the engine's time over the trace's, median", "ns", [found.engine_longer_ns_median], limit=100_000),
        plain("the engine's time before the queue event, median", "ns", [found.handed_over_ns_median]),
        plain("the engine's time after the completion, median", "ns", [found.taken_ns_median]),
        bounded(
            "the engine's time over the trace's, one I/O at a time, median",
            "ns",
            [alone.engine_longer_ns_median],
            limit=100_000,
        ),
    ]


def compared(device: Path, directory: Path, ios: int, depth: int = DEPTH) -> Truth:
    """Offers so many I/Os to the device, recorded by both, and compares."""
    log, recording, rows = directory / "log.csv", directory / "recorded.dat", directory / "rows.parquet"
    load = phase(device, log, ios, depth)
    (directory / "load.json").write_text(json.dumps(load))
    command = ["sh", "-c", f'"{sys.executable}" -c "$0" < "$1" > "$2"', LOAD]
    command += [str(directory / "load.json"), str(directory / "record.json")]
    recorded = record(device, recording, command=command, buffer_kib=BUFFER_KIB)
    if recorded.status != 0:
        raise NotMeasured("the load did not end well")
    if recorded.events_lost:
        raise NotMeasured(f"{recorded.events_lost} events found no room while it was recorded: the machine is too busy")
    trace = trace_of([recording])
    if study(trace)["malformed"]:
        raise AssertionError("a recording with malformed events")
    export(trace, "parquet", rows)
    return beside(pl.read_csv(log), pl.read_parquet(rows), number(device))


def phase(device: Path, log: Path, ios: int, depth: int) -> Phase:
    given = {"pattern": "random", "queue_depth": depth, "operations": ios, "block_size": f"{BLOCK_BYTES}B"}
    given |= {"read_percent": 70, "file_size": f"{SIZE_MIB}MiB", "layout": False, "drop_caches": False}
    kind = KINDS["io"]
    load = kind.phases(kind.options.model_validate(given), 1)[-1].load  # type: ignore[union-attr]
    (file,), (group,) = load["files"], load["groups"]
    file |= {"path": str(device), "create": False}
    group["io_log"] = str(log)
    return load


def number(device: Path) -> str:
    found = device.stat().st_rdev
    return f"{os.major(found)}:{os.minor(found)}"


def beside(log: pl.DataFrame, rows: pl.DataFrame, device: str) -> Truth:
    """The k-th I/O to end of a block beside its k-th request."""
    ours = log.with_columns(
        sector=pl.col("offset_bytes") // 512, began_ns=pl.col("ended_ns") - pl.col("latency_ns")
    ).sort("began_ns")
    ours = ours.sort("ended_ns").with_columns(place=pl.col("ended_ns").cum_count().over("sector"))
    first_ns = ours["began_ns"].min()
    theirs = rows.filter(
        (pl.col("device") == device)
        & pl.col("operation").is_in(["read", "write"])
        & (pl.col("error") == 0)
        & (pl.col("arrived_ns") >= pl.lit(first_ns) - RESOLUTION_NS)
    )
    theirs = theirs.sort("completed_ns").with_columns(place=pl.col("completed_ns").cum_count().over("sector"))
    both = ours.join(theirs, on=["sector", "place"], how="full", coalesce=True)
    missing = both.filter(pl.col("began_ns").is_null() | pl.col("arrived_ns").is_null())
    paired = both.filter(pl.col("began_ns").is_not_null() & pl.col("arrived_ns").is_not_null())
    known = paired.filter(pl.col("queued_ns").is_not_null() & pl.col("completed_ns").is_not_null())
    unknown = paired.filter(pl.col("queued_ns").is_null() | pl.col("completed_ns").is_null())
    early = (pl.col("began_ns") - pl.col("queued_ns").cast(pl.Int64)).clip(0)
    late = (pl.col("completed_ns").cast(pl.Int64) - pl.col("ended_ns")).clip(0)
    excess = known.select(excess=pl.max_horizontal(early, late))["excess"]
    before = known["queued_ns"].cast(pl.Int64) - known["began_ns"]
    after = known["ended_ns"] - known["completed_ns"].cast(pl.Int64)
    return Truth(
        ios=len(log),
        missing=len(missing),
        unknown=len(unknown),
        outside=int((excess > RESOLUTION_NS).sum()),
        engine_longer_ns_median=_median(before + after),
        handed_over_ns_median=_median(before),
        taken_ns_median=_median(after),
    )


def _median(values: pl.Series) -> float:
    return float(values.median() or 0.0)  # type: ignore[arg-type]
