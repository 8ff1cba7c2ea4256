"""Keeps what is not measured off a swap area, as far as the kernel lets us.

A swap area is the whole machine's: no kernel ties one to a control group. Other processes' pages come to it when the
machine is short of memory, or when their own group is at its limit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import MachineError
from iolab.base.quantity import format_bytes
from iolab.machines.system import swap
from iolab.machines.system.action import WriteFile

if TYPE_CHECKING:
    from iolab.machines.system.cgroup import Hierarchy
    from iolab.machines.system.undo import UndoJournal

MEMINFO = Path("/proc/meminfo")
RESERVE_BYTES = 64 << 20
"""Free memory that stays free, so that the kernel has no reason to swap what is not in the limited group."""
NO_SWAP = "0"

# bits/mman.h
MCL_CURRENT = 1
MCL_ONFAULT = 4
_libc = ctypes.CDLL(None, use_errno=True)


def check_memory(limit_bytes: int) -> None:
    """Refuses a limit that leaves the machine itself short of memory: then everybody's pages would go to the area.

    Raises:
        MachineError
    """
    fields = dict(line.split(":") for line in MEMINFO.read_text().splitlines())
    available_bytes = int(fields["MemAvailable"].split()[0]) * 1024
    if available_bytes < limit_bytes + RESERVE_BYTES:
        raise MachineError(
            f"{format_bytes(limit_bytes)} of memory for the processes leave the machine less than "
            f"{format_bytes(RESERVE_BYTES)} of the {available_bytes >> 20}MiB that it has now: other processes would "
            "be swapped to the target as well",
            where="memory_limit",
            remedy="lower memory_limit, or end other programs",
        )


def keep_off(hierarchy: Hierarchy, undo: UndoJournal) -> list[str]:
    """Forbids swap to the existing groups, if that takes nothing from them: in version 2 of control groups, and if no
    other swap is on. Returns notes of what can still come."""
    if swap.areas():
        return ["groups that could swap before may swap to the target as well, when they are at their limits"]
    if hierarchy.version == 1:
        return [
            "control groups of version 1 cannot forbid swap to others: a process whose group is at its memory limit "
            "may swap to the target as well"
        ]
    for file in sorted(hierarchy.root.glob("*/memory.swap.max")):
        previous = file.read_text().strip()
        if previous != NO_SWAP:
            undo.before(WriteFile(str(file), previous))
            file.write_text(NO_SWAP)
    return []


@contextmanager
def own_memory_locked() -> Iterator[None]:
    """This process, which has to take the area off again, is not swapped to it itself."""
    locked = _libc.mlockall(MCL_CURRENT | MCL_ONFAULT) == 0
    try:
        yield
    finally:
        if locked:
            _libc.munlockall()
