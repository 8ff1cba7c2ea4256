"""Whether a block device keeps up with a trace's arrivals: looked at before a replay, with random reads alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from iolab import _native
from iolab.base.quantity import plain
from iolab.domain import native_types as native
from iolab.domain.workload import KINDS
from iolab.domain.workload.load import file_json, group_json, job_json, phase_json, until_json
from iolab.domain.workload.trace import TraceOptions

LOOK_NS = 300_000_000
BLOCK_BYTES = 4096
PATIENCE_S = 10.0


@dataclass(frozen=True)
class Headroom:
    """What a device made of reads that arrived at a trace's mean rate, independently of one another."""

    offered_per_s: float
    reached_per_s: float
    in_system: float
    """The mean number of reads that waited or were in flight: rate times time (Little, Operations Research 9, 1961)."""
    depth: int
    """The most that may be in flight, of all threads."""

    @property
    def is_full(self) -> bool:
        """Whether the queue is full, so that arrivals are late whatever the CPUs do."""
        return self.in_system >= self.depth

    def __str__(self) -> str:
        offered, reached = (plain(one, 3) for one in (self.offered_per_s, self.reached_per_s))
        if self.is_full:
            return (
                f"the trace offers {offered} I/Os a second, and here {reached} random reads of 4 KiB a second are "
                f"reached with {self.depth} in flight: arrivals will be late because the queue is full"
            )
        return (
            f"the trace offers {offered} I/Os a second, and so many random reads of 4 KiB keep "
            f"{plain(self.in_system, 2)} of {self.depth} in flight here: late arrivals are the CPUs' or a burst's"
        )


def headroom(device: Path, options: TraceOptions, size_bytes: int) -> Headroom | None:
    """Looks for a third of a second, and only reads. None if the trace reads nothing or has no times of its own, and
    if the device can't be read, which the replay reports.

    Args:
        size_bytes: how much of the device is used.
    """
    schedule = options.schedule
    elapsed_s = schedule["elapsed_ns"] * options.time_scale / 1e9
    reads = any(process["reads"] for process in schedule["processes"])
    length_bytes = size_bytes // BLOCK_BYTES * BLOCK_BYTES
    if options.timing != "recorded" or not reads or elapsed_s <= 0 or not length_bytes:
        return None
    phases = KINDS["trace"].phases(options, 1)
    groups: list[native.GroupSpec] = phases[-1].load["groups"]  # type: ignore[union-attr]
    file = file_json("headroom", length_bytes, extend=False)
    file |= {"path": str(device), "create": False}
    file.pop("place", None)
    load = phase_json(
        "headroom",
        files=[file],
        groups=[_reading(group, length_bytes, elapsed_s) for group in groups],
        seed=1,
    )
    try:
        under_way = _native.Load.start(json.dumps(load), _native.Memory())
        record = under_way.wait(PATIENCE_S)
        if record is None:
            under_way.stop()
            return None
    except (OSError, ValueError):
        return None
    return _seen(json.loads(record), schedule["ios"] / elapsed_s, groups)


def _reading(group: native.GroupSpec, length_bytes: int, elapsed_s: float) -> native.GroupSpec:
    """The same thread with as many arrivals a second, each a read."""
    (job,) = group["jobs"]
    rate_per_s = (job["until"]["ops"] or 1) / elapsed_s
    reads = job_json(
        job["name"],
        files=[0],
        align_bytes=BLOCK_BYTES,
        length_bytes=length_bytes,
        seed=job["seed"],
        pattern={"kind": "uniform"},
        read_share=1.0,
        queue_depth=job["queue_depth"],
        arrival={"kind": "open", "rate_per_s": rate_per_s, "spacing": "poisson"},
        until=until_json(duration_ns=LOOK_NS),
    )
    return group_json(
        group["name"], engine=group["engine"], direct=True, jobs=[reads], realtime=group.get("realtime", False)
    )


def _seen(
    record: native.PhaseRecordOfJobRecord, offered_per_s: float, groups: list[native.GroupSpec]
) -> Headroom | None:
    reads = [job["read"] for group in record["groups"] for job in group["jobs"]]
    count = sum(one["count"] for one in reads)
    if not count:
        return None
    waited_ns = sum(one["count"] * one["latency"]["mean_ns"] for one in reads if one["latency"])
    return Headroom(
        offered_per_s,
        count * 1e9 / record["elapsed_ns"],
        waited_ns / record["elapsed_ns"],
        sum(job["queue_depth"] for group in groups for job in group["jobs"]),
    )
