"""Runs processes that each sort a share of memory, together more than their control group may have: the rest swaps.

The target's devices, bare until then, become swap areas of the highest priority; the swap that a machine has besides is
left as it is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from iolab.base.errors import MachineError
from iolab.base.quantity import format_bytes
from iolab.domain import native_types as native
from iolab.domain.executor import Progress
from iolab.domain.phase_record import PhaseRecord
from iolab.machines.host import members, sort_record
from iolab.machines.host.members import MemberDied, Task
from iolab.machines.host.sort_record import SwapReadings
from iolab.machines.system import cgroup, device_identity, page_cache, storage_stack, swap, swap_guests
from iolab.machines.system.action import EraseSwap, SwapOff, WriteFile

if TYPE_CHECKING:
    from iolab.domain.trial import SortPhase
    from iolab.machines.host.site import TargetPlace
    from iolab.machines.host.surroundings import Surroundings
    from iolab.machines.system.cgroup import Cgroup, Hierarchy

VMSTAT = Path("/proc/vmstat")
SWAPPINESS = Path("/proc/sys/vm/swappiness")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
"""What pswpin and pswpout count (mm/page_io.c)."""
LOOK_EVERY_S = 0.1


def run(phase: SortPhase, around: Surroundings) -> PhaseRecord:
    """The phase's record: a job per process, with what the machine and the group swapped.

    Raises:
        InputError: the devices are too small for what will not fit into memory, or lie on what the kernel must not
            swap to.
        MachineError: no memory controller, no swap, too little memory free, or the kernel killed a process for lack of
            memory.
    """
    for place in around.site.places:
        storage_stack.check_swap(place.path)
    hierarchy = cgroup.find("memory", "memory")
    if hierarchy is None:
        raise cgroup.missing("a memory limit needs the memory controller", "memory", "memory")
    areas = sort_record.areas(phase, [(place.label, place.capacity_bytes or 0) for place in around.site.places])
    sort_record.check_room(phase, areas, around.site.label)
    swap_guests.check_memory(phase.memory_limit_bytes)
    notes = _other_areas() + swap_guests.keep_off(hierarchy, around.undo)
    for place, size_bytes in zip(around.site.places, areas, strict=True):
        _swap_on(place, size_bytes, around)
    group = _limited_group(phase, hierarchy, around)
    if phase.drop_caches:
        notes += page_cache.drop(())
    watch = _Watch(phase, group, around)
    before = _swapped_bytes()
    with _naming_lack_of_memory(phase, group), swap_guests.own_memory_locked():
        records = members.run(_tasks(phase, group), on_snapshots=watch.look, should_stop=around.should_stop)
    swapping = SwapReadings(
        before, watch.swapped_at_first, _swapped_bytes(), watch.swap_bytes_max, _memory_bytes_max(group)
    )
    return sort_record.record(phase, records, swapping, notes)


def _other_areas() -> list[str]:
    others = ", ".join(area for area, _ in swap.areas())
    return [f"swap that was on before ({others}) stays on, with a lower priority"] if others else []


def _swap_on(place: TargetPlace, size_bytes: int, around: Surroundings) -> None:
    uuid = str(uuid4())
    device_identity.check_node(place.path, place.known)
    if place.stays:
        around.undo.before(EraseSwap(str(place.path), uuid))
    swap.make(place.path, size_bytes, uuid=uuid)
    around.undo.before(SwapOff(str(place.path)))
    swap.on(place.path)


def _limited_group(phase: SortPhase, hierarchy: Hierarchy, around: Surroundings) -> Cgroup:
    """In version 1 swappiness is a group's own and goes with it; in version 2 there is only the machine's."""
    group = cgroup.make(hierarchy, "sort", around.undo)
    group.set("memory.limit_in_bytes" if group.version == 1 else "memory.max", str(phase.memory_limit_bytes))
    if phase.swappiness is not None:
        if group.version == 1:
            group.set("memory.swappiness", str(phase.swappiness))
        else:
            around.undo.before(WriteFile(str(SWAPPINESS), SWAPPINESS.read_text().strip()))
            SWAPPINESS.write_text(str(phase.swappiness))
    return group


def _tasks(phase: SortPhase, group: Cgroup) -> list[Task[native.SortRecord]]:
    return [Task(name, "sort", spec, (group,), phase.cpus) for name, spec in sort_record.specs(phase).items()]


class _Watch:
    """What can only be seen while the processes run."""

    def __init__(self, phase: SortPhase, group: Cgroup, around: Surroundings) -> None:
        self._phase = phase
        self._group = group
        self._around = around
        self._due_s = 0.0
        self.swap_bytes_max: int | None = None
        self.swapped_at_first: dict[str, int] | None = None
        """What the machine had swapped when a process was first seen to have sorted all."""

    def look(self, snapshots: Sequence[native.Snapshot]) -> None:
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + LOOK_EVERY_S
        if self.swapped_at_first is None and any((snapshot["fraction"] or 0) >= 1 for snapshot in snapshots):
            self.swapped_at_first = _swapped_bytes()
        swapped = _swap_bytes(self._group)
        if swapped is not None:
            self.swap_bytes_max = max(swapped, self.swap_bytes_max or 0)
        self._around.on_progress(
            Progress(
                phase=self._phase.name,
                doing="running",
                elapsed_ns=max((snapshot["elapsed_ns"] for snapshot in snapshots), default=0),
                fraction=min((snapshot["fraction"] or 0.0 for snapshot in snapshots), default=None),
            )
        )


@contextmanager
def _naming_lack_of_memory(phase: SortPhase, group: Cgroup) -> Iterator[None]:
    try:
        yield
    except MemberDied as death:
        if not _killed_for_memory(group):
            raise
        raise MachineError(
            f"the kernel killed a process for lack of memory: {format_bytes(phase.memory_limit_bytes)} and the swap "
            "are used up",
            where=death.name,
            remedy="raise [target] size, or lower processes or share",
        ) from death


def _killed_for_memory(group: Cgroup) -> bool:
    return (_field(group, "memory.oom_control" if group.version == 1 else "memory.events", "oom_kill") or 0) > 0


def _swap_bytes(group: Cgroup) -> int | None:
    if group.version == 1:
        return _field(group, "memory.stat", "swap")
    text = group.get("memory.swap.current")
    return None if text is None else int(text)


def _memory_bytes_max(group: Cgroup) -> int | None:
    text = group.get("memory.max_usage_in_bytes" if group.version == 1 else "memory.peak")
    return None if text is None else int(text)


def _field(group: Cgroup, file: str, name: str) -> int | None:
    """A number in a file of lines `name number`."""
    for line in (group.get(file) or "").splitlines():
        words = line.split()
        if words[0] == name:
            return int(words[1])
    return None


def _swapped_bytes() -> dict[str, int]:
    """Since boot, whole machine."""
    fields = dict(line.split() for line in VMSTAT.read_text().splitlines())
    names = {"swap_in_bytes": "pswpin", "swap_out_bytes": "pswpout"}
    return {metric: int(fields[field]) * PAGE_BYTES for metric, field in names.items() if field in fields}
