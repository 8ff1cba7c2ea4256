"""What one I/O of the jobs took of the block layer and the device: the numbers that a latency budget is made of.

The block probe observes a little more than the phase; its counts are divided by the phase's own time, and the jobs'
operations by the time that was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal

from iolab.domain.definition import NO_IO, Metric
from iolab.domain.native_types import Activity, BlockObservation, DistributionRecord
from iolab.domain.probe.probe import ProbeReader

if TYPE_CHECKING:
    from iolab.domain.observation import Observation

NS_PER_S = 1e9

_NO_BIO = "no bio of the target's devices was seen"
Stage = Literal["time_in_queue_ns", "time_in_scheduler_ns", "time_in_device_ns", "time_total_ns"]
STAGES: dict[str, tuple[Stage, str]] = {
    "block_ns_per_io": (
        "time_total_ns",
        "Time of bios from the queue event to the completion of their request, per I/O of the jobs.",
    ),
    "queue_ns_per_io": ("time_in_queue_ns", "Time of requests in the queue, per I/O of the jobs."),
    "scheduler_ns_per_io": ("time_in_scheduler_ns", "Time of requests in the scheduler, per I/O of the jobs."),
    "device_ns_per_io": ("time_in_device_ns", "Time of requests at the device, per I/O of the jobs."),
}
"""Metric -> distribution of the observation, and what it is. Sums over what runs side by side, so that the time per I/O
can exceed the latency."""


def metrics(block: ProbeReader[BlockObservation]) -> Iterator[Metric]:
    """The block probe's metrics per I/O."""
    counts: tuple[tuple[str, str, Callable[[BlockObservation], float]], ...] = (
        ("bios_per_io", "Bios that entered the block layer", lambda found: _total(found)["bios_queued"]),
        ("requests_per_io", "Requests issued to the driver", lambda found: _total(found)["requests_issued"]),
        ("splits_per_io", "Further parts of bios that were too large for one request", _splits),
    )
    for name, what, count in counts:
        yield block.metric_per_io(
            name,
            "count",
            "neutral",
            f"{what}, per I/O of the jobs.",
            NO_IO,
            partial(_count_per_io, count=count),
        )
    yield block.metric_per_io(
        "bio_bytes_mean",
        "bytes",
        "neutral",
        "Mean size of the bios that entered the block layer, before any split or merge.",
        _NO_BIO,
        lambda seen, found: _bio_bytes(found),
    )
    yield block.metric_per_io(
        "completions_remote_percent",
        "percent",
        "cost",
        "Share of the requests that completed on another CPU than where their first bio was queued.",
        _NO_BIO,
        lambda seen, found: _remote_percent(found),
    )
    for name, (stage, what) in STAGES.items():
        yield block.metric_per_io(
            name,
            "ns",
            "time",
            what,
            NO_IO,
            partial(_time_per_io, stage=stage),
        )
    yield block.metric_per_io(
        "application_ns_per_io",
        "ns",
        "time",
        "Time from a completion until the job submits the next operation in its place: queue depth x time / "
        "operations, less the mean latency.",
        f"the load is an open loop, or the jobs' queue depths are not known, or {NO_IO}",
        lambda seen, found: _application_ns(seen),
    )


def _count_per_io(
    seen: Observation, found: BlockObservation, count: Callable[[BlockObservation], float]
) -> float | None:
    return _per_io(seen, count(found))


def _time_per_io(seen: Observation, found: BlockObservation, stage: Stage) -> float | None:
    return _per_io(seen, _sum(_total(found)[stage]))


def _per_io(seen: Observation, amount: float) -> float | None:
    phase_s = float(seen.record["elapsed_ns"]) / NS_PER_S
    return seen.per_io(amount * seen.measured_s / phase_s) if phase_s > 0 else None


def _sum(distribution: DistributionRecord) -> float:
    return float(distribution["count"] * (distribution["mean"] or 0))


def _total(found: BlockObservation) -> Activity:
    return found["all"]["total"]


def _splits(found: BlockObservation) -> float:
    return float(sum(device["conservation"]["split"] for device in found["devices"]))


def _bio_bytes(found: BlockObservation) -> float | None:
    """The bytes of issued requests per queued bio."""
    total = _total(found)
    return _sum(total["request_bytes"]) / total["bios_queued"] if total["bios_queued"] else None


def _remote_percent(found: BlockObservation) -> float | None:
    total = _total(found)
    local, remote = total["completions_local"], total["completions_remote"]
    return 100 * remote / (local + remote) if local + remote else None


def _application_ns(seen: Observation) -> float | None:
    """The application's time per operation, over all jobs that keep a fixed number of operations in flight, each until
    its own last one completed."""
    load = getattr(seen.phase, "load", None)
    latency_ns = seen.latency_mean()
    if load is None or latency_ns is None:
        return None
    slots_ns = 0.0
    for group in load["groups"]:
        for job in group["jobs"]:
            found = seen.jobs.get(job["name"])
            if found is None or job["arrival"]["kind"] != "closed":
                return None
            until_ns = min(found["finished_ns"], seen.record["measured_to_ns"])
            slots_ns += job["queue_depth"] * max(0, until_ns - seen.record["measured_from_ns"])
    per_io = seen.per_io(slots_ns)
    return None if per_io is None else max(0.0, per_io - latency_ns)
