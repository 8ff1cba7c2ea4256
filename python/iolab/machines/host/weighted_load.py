"""Runs a load whose jobs are in control groups: a process per innermost group.

A process and not a thread, because version 2 of control groups gives I/O to whole processes; in version 1 it is done
alike, so that numbers of both can be compared. When a group of those that have weights alone is done, it competes no
more, and the others are stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.domain import members_of
from iolab.domain import native_types as native
from iolab.domain.phase_record import PhaseRecord
from iolab.machines.host import groups, load, members
from iolab.machines.host.members import Task
from iolab.machines.system import page_cache

if TYPE_CHECKING:
    from iolab.domain.trial import WeightedGroup, WeightedLoadPhase
    from iolab.machines.host.groups import Groups
    from iolab.machines.host.surroundings import Surroundings


def run(phase: WeightedLoadPhase, around: Surroundings) -> PhaseRecord:
    """One phase record (crates/measure/workload/src/record.rs) of all groups together.

    Raises:
        InputError: the engine finds the phase impossible.
        MachineError: the weights cannot be enforced, or the kernel refuses the load.
    """
    made = around.groups.get(phase.name, groups.NONE)
    notes = made.notes + _not_owned(phase, made)
    if phase.load["drop_caches"]:
        notes += page_cache.drop(Path(file["path"]) for file in phase.load["files"])
    before = made.stalled_us()
    records = members.run(
        [_task(phase, group, made) for group in phase.members],
        on_snapshots=lambda snapshots: around.on_progress(load.progress(phase, _together(snapshots))),
        should_stop=around.should_stop,
        ends_all=_ends_all(phase),
    )
    stalled = {name: now - before[name] for name, now in made.stalled_us().items() if name in before}
    together = members_of.merged(phase, records, [*notes, *_ended_early(phase, records)])
    together["stopped"] = around.should_stop()
    if stalled:
        together["io_stalled_us"] = stalled
    return together


def _ends_all(phase: WeightedLoadPhase) -> list[str]:
    """The members whose end, the first's of them, is the end of all."""
    if not phase.groups:
        return [member.name for member in phase.members]
    return [] if phase.ends_with is None else [phase.ends_with]


def _task(phase: WeightedLoadPhase, group: WeightedGroup, made: Groups) -> Task[PhaseRecord]:
    return Task(group.name, "load", members_of.share(phase, group), made.of.get(group.name, ()))


def _together(snapshots: Sequence[native.Snapshot]) -> native.Snapshot:
    fractions = [snapshot["fraction"] for snapshot in snapshots]
    known = [fraction for fraction in fractions if fraction is not None]
    return {
        "elapsed_ns": max((snapshot["elapsed_ns"] for snapshot in snapshots), default=0),
        "ops": sum(snapshot["ops"] for snapshot in snapshots),
        "bytes": sum(snapshot["bytes"] for snapshot in snapshots),
        "errors": sum(snapshot["errors"] for snapshot in snapshots),
        "fraction": min(known, default=None) if len(known) == len(fractions) else None,
        "warming_up": any(snapshot["warming_up"] for snapshot in snapshots),
        "done": all(snapshot["done"] for snapshot in snapshots),
    }


def _not_owned(phase: WeightedLoadPhase, made: Groups) -> list[str]:
    buffered_writes = any(
        job["read_share"] < 1 and not group["direct"] for group in phase.load["groups"] for job in group["jobs"]
    )
    owned = all(any(one.owns_buffered_writes for one in cgroups) for cgroups in made.of.values())
    if not buffered_writes or owned:
        return []
    return [
        "buffered writes reach the device from the kernel's own threads, which are the root group's unless one group "
        "of version 2 has the controllers io and memory both: the weights and limits do not hold for them here"
    ]


def _ended_early(phase: WeightedLoadPhase, records: Sequence[PhaseRecord]) -> list[str]:
    """Jobs that read a file once, because from its second reading on the page cache would answer."""
    bounded = {
        job["name"]
        for group in phase.load["groups"]
        for job in group["jobs"]
        if job["until"].get("bytes") is not None and job["until"].get("duration_ns") is not None
    }
    ended = [
        job["name"]
        for record in records
        for group in record["groups"]
        for job in group["jobs"]
        if job["name"] in bounded and job["read"]["bytes"] >= _length(phase, job["name"])
    ]
    if not ended:
        return []
    return [
        f"{', '.join(ended)} came to the end of the file before the time was over; when a group has no job left, the "
        "others are stopped (raise file_size to measure for longer)"
    ]


def _length(phase: WeightedLoadPhase, name: str) -> int:
    jobs = (job for group in phase.load["groups"] for job in group["jobs"])
    return next(int(job["length_bytes"]) for job in jobs if job["name"] == name)
