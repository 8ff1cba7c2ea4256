"""How urgent the load's I/O and its threads are.

They are set on the process that runs the trial before any phase starts, and its threads and children inherit them:
engine, metadata loads, commands and fio alike. The priority is the process's own, so the kernel takes it back with the
process. Sources: ioprio_set(2), include/uapi/linux/ioprio.h, setpriority(2), copy_io in kernel/fork.c.
"""

from __future__ import annotations

import ctypes
import os
import platform
from contextlib import suppress
from pathlib import Path

from typing_extensions import override

from iolab.base.errors import MachineError
from iolab.machines.host.control.applier import AppliedValue, Applier, Context
from iolab.machines.system import rights

CLASSES = {"none": 0, "rt": 1, "be": 2, "idle": 3}
_CLASS_SHIFT = 13
_WHO_PROCESS = 1
_SYSCALLS = {"x86_64": (251, 252), "aarch64": (30, 31), "riscv64": (30, 31)}
"""ioprio_set and ioprio_get, which the C library does not wrap."""
AUTOGROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")
"""1: each session is a group, and CPU time is shared out among groups first (sched(7))."""
_libc = ctypes.CDLL(None, use_errno=True)


class IoPriority(Applier):
    """The I/O class and level of the jobs' threads (ioprio_set(2))."""

    @override
    def apply(self, context: Context, value: str) -> AppliedValue:
        before = _io_priority()
        _set_io_priority(self.name, _number(value))
        context.until_end.callback(_give_back_io_priority, before)
        return AppliedValue(_words(before), self.read(context))

    @override
    def read(self, context: Context) -> str:
        return _words(_io_priority())


class Nice(Applier):
    """The nice value of the jobs' threads (setpriority(2))."""

    @override
    def apply(self, context: Context, value: int) -> AppliedValue:
        before = self.read(context)
        try:
            os.setpriority(os.PRIO_PROCESS, 0, value)
        except PermissionError as error:
            raise MachineError(
                f"{self.name}: below {before} is not allowed without root", remedy=rights.AS_ROOT
            ) from error
        context.until_end.callback(_give_back_nice, before)
        if value != before and _sessions_are_groups():
            context.notes.append(
                "nice: it counts among the processes of one session only, because kernel.sched_autogroup_enabled is 1"
            )
        return AppliedValue(before, self.read(context))

    @override
    def read(self, context: Context) -> int:
        return os.getpriority(os.PRIO_PROCESS, 0)


def _sessions_are_groups() -> bool:
    try:
        return AUTOGROUPS.read_text().strip() == "1"
    except OSError:
        return False


def _number(words: str) -> int:
    name, _, level = words.partition("/")
    return CLASSES[name] << _CLASS_SHIFT | int(level or 0)


def _words(number: int) -> str:
    name = next(name for name, value in CLASSES.items() if value == number >> _CLASS_SHIFT & 7)
    return f"{name}/{number & 7}" if name in ("rt", "be") else name


def _io_priority() -> int:
    """The I/O priority of the calling thread."""
    return int(_libc.syscall(_system_calls()[1], _WHO_PROCESS, 0))


def _set_io_priority(name: str, number: int) -> None:
    if _libc.syscall(_system_calls()[0], _WHO_PROCESS, 0, number) == 0:
        return
    error = ctypes.get_errno()
    raise MachineError(
        f"{name}: the kernel refuses {_words(number)}: {os.strerror(error)}",
        remedy=rights.AS_ROOT if os.geteuid() != 0 else None,
    )


def _system_calls() -> tuple[int, int]:
    found = _SYSCALLS.get(platform.machine())
    if found is None:
        raise MachineError(f"io_priority: iolab does not know the system call's number on {platform.machine()}")
    return found


def _give_back_io_priority(number: int) -> None:
    with suppress(MachineError):  # without root the process ends with it
        _set_io_priority("io_priority", number)


def _give_back_nice(nice: int) -> None:
    with suppress(PermissionError):  # likewise
        os.setpriority(os.PRIO_PROCESS, 0, nice)


APPLIERS: tuple[Applier, ...] = (IoPriority("io_priority"), Nice("nice"))
