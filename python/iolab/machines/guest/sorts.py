"""Sorting in a guest: its drives become swap, its processes have a control group of less memory than they need."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from iolab.base.errors import InputError
from iolab.base.quantity import format_bytes
from iolab.domain.phase_record import PhaseRecord
from iolab.domain.trial import GuestMachine, SortPhase
from iolab.domain.trial.trial import derive_seed
from iolab.machines.guest import programs
from iolab.machines.guest.agent_message import SortRecords
from iolab.machines.guest.steps import CGROUPS, Plan
from iolab.machines.host import sort_record
from iolab.machines.host.sort_record import SwapReadings

_GROUP = f"{CGROUPS}/sort"
_IN_MEMORY = ("null_blk", "scsi_debug")
"""Drives that keep what is written in the machine's own memory."""
_KERNEL_BYTES = 96 << 20
"""What the kernel and its first filesystem take of the memory: some 70 MiB of Debian's."""


def add(plan: Plan, phase: SortPhase, machine: GuestMachine, drives: Sequence[tuple[str, int]]) -> None:
    """The steps of the phase.

    Args:
        drives: the path of each, and its bytes.

    Raises:
        InputError: memory or drives are too small.
        MachineError: this machine has no mkswap.
    """
    areas = sort_record.areas(phase, drives)
    sort_record.check_room(phase, areas, "target.size")
    _check_memory(phase, machine)
    mkswap = programs.pack(plan.archive, "mkswap", "util-linux")
    for number, ((path, has), size) in enumerate(zip(drives, areas, strict=True)):
        own = str(uuid.UUID(int=derive_seed(plan.seed, "swap", number), version=4))
        of_size = [] if size == has else [str(size // 1024)]
        plan.add("run", argv=[mkswap, "--uuid", own, path, *of_size])
        plan.add("swap", path=path)
    plan.add("mount", source="cgroup2", place=CGROUPS, filesystem="cgroup2", options="")
    plan.add("write", path=f"{CGROUPS}/cgroup.subtree_control", value="+memory", optional=False)
    plan.add("directory", path=_GROUP)
    plan.add("write", path=f"{_GROUP}/memory.max", value=str(phase.memory_limit_bytes), optional=False)
    if phase.swappiness is not None:
        plan.add("write", path="/proc/sys/vm/swappiness", value=str(phase.swappiness), optional=False)
    processes = [{"sort": spec, "cpus": phase.cpus} for spec in sort_record.specs(phase).values()]
    step = plan.add("sort", processes=processes, group=_GROUP, drop_caches=phase.drop_caches)
    plan.phases[step] = phase


def record(phase: SortPhase, answer: SortRecords) -> PhaseRecord:
    """The record of what the agent reported (crates/measure/guest-agent/src/sorts.rs)."""
    swapping = SwapReadings(answer.before, answer.first, answer.after, answer.swap_bytes_max, answer.memory_bytes_max)  # type: ignore[arg-type]
    return sort_record.record(phase, answer.records, swapping, ())


def _check_memory(phase: SortPhase, machine: GuestMachine) -> None:
    of_drives = sort_record.beyond(phase) if machine.drive in _IN_MEMORY else 0
    wanted = phase.memory_limit_bytes + of_drives + _KERNEL_BYTES
    if wanted > machine.memory_bytes:
        swapped = f", {format_bytes(of_drives)} that {machine.drive} keeps" if of_drives else ""
        raise InputError(
            f"the machine has {format_bytes(machine.memory_bytes)}; memory_limit{swapped} and the kernel take "
            f"{format_bytes(wanted)}",
            where="guest.memory",
            remedy="raise it, or lower memory_limit",
        )
