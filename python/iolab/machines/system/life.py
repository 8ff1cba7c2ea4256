"""Signs of life of processes: a task that waits in the kernel, and is never woken, shows none.

Read from /proc files that never wait themselves (proc(5); `cmdline` would, of one stuck in a page fault).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
UNINTERRUPTIBLE = "D"
RUNNING = "R"
NAMED_MAX = 3
SIGKILL_BIT = 1 << (signal.SIGKILL - 1)
PF_EXITING = 0x4
"""A flag in /proc/PID/stat (linux/sched.h)."""


@dataclass(frozen=True)
class Task:
    """A thread as it is at a moment."""

    process: int
    thread: int
    name: str
    state: str
    """A letter, as ps shows it."""
    switches: int
    """How often it was taken off a CPU: unchanged as long as it waits for one and the same thing."""
    waits_in: str
    """The kernel's function; empty if the kernel does not report it."""

    @property
    def is_stuck(self) -> bool:
        """If it stays as it is: no signal reaches it."""
        return self.state == UNINTERRUPTIBLE

    def __str__(self) -> str:
        where = f", in {self.waits_in}" if self.waits_in else ""
        return f"{self.name} (process {self.process}) waits in the kernel{where}"


def tasks_of(processes: Iterable[int]) -> list[Task]:
    """All threads of the processes and of those that they started; those that have ended are left out."""
    found = []
    for process in _with_descendants(processes):
        with suppress(OSError):
            for entry in (PROC / str(process) / "task").iterdir():
                task = _task(process, int(entry.name))
                if task is not None:
                    found.append(task)
    return found


class Watch:
    """How long there has been no sign of life; looks when asked."""

    def __init__(self) -> None:
        self._since_s: dict[tuple[int, int], float] = {}
        """When each thread was first seen with so many switches."""
        self._moved_s = time.monotonic()
        self.tasks: list[Task] = []
        """As they were when last looked at."""

    def look(self, processes: Iterable[int], *, without_thread: int | None = None) -> None:
        """Takes in how these processes, and those that they started, are now.

        Args:
            without_thread: of whom nothing is expected: the one that looks.
        """
        now_s = time.monotonic()
        self.tasks = [task for task in tasks_of(processes) if task.thread != without_thread]
        moves = {(task.thread, task.switches) for task in self.tasks}
        if moves != self._since_s.keys() or any(task.state == RUNNING for task in self.tasks):
            self._moved_s = now_s
        self._since_s = {move: self._since_s.get(move, now_s) for move in moves}

    @property
    def quiet_s(self) -> float:
        """For how long no task has moved, nor come, nor gone."""
        return time.monotonic() - self._moved_s

    def stuck(self) -> list[tuple[Task, float]]:
        """Those that no signal reaches, each with the seconds for which it has been seen waiting, the longest first."""
        now_s = time.monotonic()
        found = [(task, now_s - self._since_s[task.thread, task.switches]) for task in self.tasks if task.is_stuck]
        return sorted(found, key=lambda one: -one[1])


def description(stuck: list[tuple[Task, float]]) -> str:
    """What is stuck since when, alike tasks once; empty when nothing is."""
    longest_s: dict[str, float] = {}
    for task, for_s in stuck:
        longest_s.setdefault(str(task), for_s)
    return _first([f"{who} since {clock(for_s)}" for who, for_s in longest_s.items()])


def named(stuck: Iterable[Task]) -> str:
    """The same at first sight, when its beginning is unknown."""
    return _first(list(dict.fromkeys(map(str, stuck))))


def clock(quiet_s: float) -> str:
    """The time of day this long ago."""
    return time.strftime("%H:%M:%S", time.localtime(time.time() - quiet_s))


def is_alive(process: int) -> bool:
    """Whether anything of a process is left but its entry."""
    try:
        return _fields(PROC / str(process) / "stat")[0] not in "ZX"
    except OSError:
        return False


def is_dying(process: int) -> bool:
    """Whether it is there, and runs nothing of its program any more: it was killed or has exited, and is gone once the
    kernel has waited for its I/O in flight."""
    directory = PROC / str(process)
    try:
        status = (directory / "status").read_text(errors="replace")
        state, *_, flags = _fields(directory / "stat")[:7]
    except OSError:
        return False
    pending = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
    killed = any(signals & SIGKILL_BIT for signals in pending)
    return killed or state in "ZX" or bool(int(flags) & PF_EXITING)


def _first(names: list[str]) -> str:
    more = len(names) - NAMED_MAX
    return "; ".join(names[:NAMED_MAX]) + (f"; and {more} more" if more > 0 else "")


def _with_descendants(processes: Iterable[int]) -> list[int]:
    found = list(dict.fromkeys(processes))
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                children.setdefault(int(_fields(entry / "stat")[1]), []).append(int(entry.name))
    for process in found:  # grows meanwhile
        found += [child for child in children.get(process, []) if child not in found]
    return found


def _task(process: int, thread: int) -> Task | None:
    directory = PROC / str(process) / "task" / str(thread)
    try:
        lines = (directory / "status").read_text(errors="replace").splitlines()
    except OSError:
        return None
    fields = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    switches = sum(int(value) for name, value in fields.items() if name.endswith("ctxt_switches"))
    state = fields.get("State", "X")[:1]
    if state in "ZX":
        return None
    waits_in = ""
    with suppress(OSError):
        waits_in = (directory / "wchan").read_text().strip().removeprefix("0")
    return Task(process, thread, fields.get("Name", "?"), state, switches, waits_in)


def _fields(stat: Path) -> list[str]:
    """Behind the name, which may hold anything: state, parent, ..."""
    return stat.read_text(errors="replace").rpartition(")")[2].split()
