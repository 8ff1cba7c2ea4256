"""What one I/O of the jobs took of the block layer and the device: the numbers that a latency budget is made of.

The block probe observes a little more than the phase; its counts are divided by the phase's own time, and the jobs'
operations by the time that was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from iolab.domain.definition import NO_IO, Metric, Nature

if TYPE_CHECKING:
    from iolab.domain.observation import Observation

Json = dict[str, Any]
NS_PER_S = 1e9

_NO_BIO = "no bio of the target's devices was seen"
STAGES = {
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


def metrics(probe: str) -> Iterator[Metric]:
    """The block probe's metrics per I/O."""

    def metric(
        name: str,
        unit: str,
        nature: Nature,
        help: str,
        absent: str,
        of: Callable[[Observation, Json], float | None],
    ) -> Metric:
        def read(seen: Observation) -> float | None:
            found = seen.probe(probe)
            return None if found is None else of(seen, found)

        return Metric(name, unit, nature, help, "probe", read, absent, probe=probe)

    for name, what, count in (
        ("bios_per_io", "Bios that entered the block layer", lambda found: _total(found)["bios_queued"]),
        ("requests_per_io", "Requests issued to the driver", lambda found: _total(found)["requests_issued"]),
        ("splits_per_io", "Further parts of bios that were too large for one request", _splits),
    ):
        yield metric(
            name,
            "count",
            "neutral",
            f"{what}, per I/O of the jobs.",
            NO_IO,
            lambda seen, found, count=count: _per_io(seen, count(found)),  # type: ignore[misc]
        )
    yield metric(
        "bio_bytes_mean",
        "bytes",
        "neutral",
        "Mean size of the bios that entered the block layer, before any split or merge.",
        _NO_BIO,
        lambda seen, found: _bio_bytes(found),
    )
    yield metric(
        "completions_remote_percent",
        "percent",
        "cost",
        "Share of the requests that completed on another CPU than where their first bio was queued.",
        _NO_BIO,
        lambda seen, found: _remote_percent(found),
    )
    for name, (distribution, what) in STAGES.items():
        yield metric(
            name,
            "ns",
            "time",
            what,
            NO_IO,
            lambda seen, found, distribution=distribution: _per_io(seen, _sum(_total(found)[distribution])),  # type: ignore[misc]
        )
    yield metric(
        "application_ns_per_io",
        "ns",
        "time",
        "Time from a completion until the job submits the next operation in its place: queue depth x time / "
        "operations, less the mean latency.",
        f"the load is an open loop, or the jobs' queue depths are not known, or {NO_IO}",
        lambda seen, found: _application_ns(seen),
    )


def _per_io(seen: Observation, amount: float) -> float | None:
    phase_s = float(seen.record["elapsed_ns"]) / NS_PER_S
    return seen.per_io(amount * seen.measured_s / phase_s) if phase_s > 0 else None


def _sum(distribution: Json) -> float:
    return float(distribution["count"] * (distribution["mean"] or 0))


def _total(found: Json) -> Json:
    total: Json = found["all"]["total"]
    return total


def _splits(found: Json) -> float:
    return float(sum(device["conservation"]["split"] for device in found["devices"]))


def _bio_bytes(found: Json) -> float | None:
    """Of requests issued and bios queued: of all that entered, as far as it was issued."""
    total = _total(found)
    return _sum(total["request_bytes"]) / total["bios_queued"] if total["bios_queued"] else None


def _remote_percent(found: Json) -> float | None:
    total = _total(found)
    local, remote = total["completions_local"], total["completions_remote"]
    return 100 * remote / (local + remote) if local + remote else None


def _application_ns(seen: Observation) -> float | None:
    """Of all jobs that keep a fixed number of operations in flight, each until its own last one completed."""
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
