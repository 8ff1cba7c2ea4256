"""A load whose members are processes of their own: what each of them does, and what their records are together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab.domain import native_types as native
from iolab.domain.phase_record import PhaseRecord

if TYPE_CHECKING:
    from iolab.domain.trial import WeightedGroup, WeightedLoadPhase

SKEW_NOTED_NS = 20_000_000


def share(phase: WeightedLoadPhase, member: WeightedGroup) -> native.Phase:
    """The member's jobs, and the files that they use under new numbers: a process opens no other's."""
    engine_groups = [
        found for found in phase.load["groups"] if any(job["name"] in member.jobs for job in found["jobs"])
    ]
    used = sorted({file for found in engine_groups for job in found["jobs"] for file in job["files"]})
    renumbered: list[native.GroupSpec] = [
        {**found, "jobs": [{**job, "files": [used.index(file) for file in job["files"]]} for job in found["jobs"]]}
        for found in engine_groups
    ]
    files = [phase.load["files"][file] for file in used]
    spec: native.Phase = {**phase.load, "files": files, "groups": renumbered, "drop_caches": False}
    stops_with = spec.get("stops_with")
    if stops_with is not None and not set(stops_with["jobs"]) <= set(member.jobs):
        del spec["stops_with"]  # another process's job: that one's end ends this one
    return spec


def merged(phase: WeightedLoadPhase, records: Sequence[PhaseRecord], notes: list[str]) -> PhaseRecord:
    """All of the same clock and, but for the skew, the same start."""
    first = records[0]
    of_all = [group for record in records for group in record["groups"]]
    starts = [record["started_unix_ns"] for record in records]
    if max(starts) - min(starts) > SKEW_NOTED_NS:
        notes = [*notes, f"the groups started up to {(max(starts) - min(starts)) / 1e6:.0f} ms apart"]
    of_all[0] = {**of_all[0], "notes": [*of_all[0]["notes"], *notes]}
    return {
        **first,
        "phase": phase.name,
        "started_unix_ns": min(starts),
        "elapsed_ns": max(record["elapsed_ns"] for record in records),
        "wall_clock_shift_ns": max((record["wall_clock_shift_ns"] for record in records), key=abs),
        "measured_to_ns": max(record["measured_to_ns"] for record in records),
        "groups": of_all,
        "process_cpu_user_ns": sum(record["process_cpu_user_ns"] for record in records),
        "process_cpu_system_ns": sum(record["process_cpu_system_ns"] for record in records),
    }
