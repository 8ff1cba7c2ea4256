"""When a test gives up on a program: by what the program does. Seconds of the clock say as much about who else is busy
on the machine.
"""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

LOOK_EVERY_S = 2.0
SLOWER = float(os.environ.get("IOLAB_TESTS_SLOWER", "1"))
"""How many times longer everything takes here, as on an emulated processor."""
IDLE_LIMIT_S = 120.0
"""Chosen: no program of the tests sleeps or waits for a device as long as that."""
CPU_LIMIT_S = 600.0
"""Chosen: ten times what the longest command of the quick tests takes."""
IDLE_SHARE = 0.02
"""Of a CPU; a program that only asks again and again whether something has come takes less. Chosen."""
Ended = TypeVar("Ended")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def wait(ended: Callable[[float], Ended | None], pid: int, cpu_limit_s: float = CPU_LIMIT_S) -> Ended:
    """What `ended` returns; it waits at most as many seconds as it is given, and returns None if there is nothing yet.

    Raises:
        subprocess.TimeoutExpired: the process and what it started neither computed nor wanted to for IDLE_LIMIT_S, or
            have computed for `cpu_limit_s`.
    """
    idle_s = 0.0
    first = before = None
    while (end := ended(LOOK_EVERY_S)) is None:
        cpu_s, wants_cpu = _look_at(pid)
        first = cpu_s if first is None else first
        moved = wants_cpu or before is None or abs(cpu_s - before) > IDLE_SHARE * LOOK_EVERY_S
        idle_s = 0.0 if moved else idle_s + LOOK_EVERY_S
        before = cpu_s
        if idle_s > IDLE_LIMIT_S * SLOWER:
            raise subprocess.TimeoutExpired(f"process {pid}, idle", idle_s)
        if cpu_s - first > cpu_limit_s * SLOWER:
            raise subprocess.TimeoutExpired(f"process {pid}, CPU time", cpu_s - first)
    return end


def _look_at(pid: int) -> tuple[float, bool]:
    """The CPU time of the process and all that descends from it, with children that have ended, and whether one of them
    has a CPU or waits for one."""
    found = _all_processes()
    children: dict[int, list[int]] = {}
    for one, (parent, _, _) in found.items():
        children.setdefault(parent, []).append(one)
    tree = [pid] if pid in found else []
    for one in tree:
        tree += children.get(one, [])
    return sum(found[one][2] for one in tree) / TICKS_PER_S, any(found[one][1] == "R" for one in tree)


def _all_processes() -> dict[int, tuple[int, str, int]]:
    """Parent, state and ticks of CPU time (its own and its ended children's) by process."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        found[int(entry.name)] = int(fields[1]), fields[0], sum(map(int, fields[11:15]))
    return found
