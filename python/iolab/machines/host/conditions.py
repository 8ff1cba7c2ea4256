"""What the machine did to a phase from outside, read before and after it: CPU time that a hypervisor took, throttling
by a control group's quota or by heat, and what iolab itself fetched from devices.

Each is a difference of the kernel's counters and costs a few reads of /proc and /sys. What this kernel does not show is
left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iolab.domain.phase_record import Conditions

Counters = dict[str, float]

CGROUPS = Path("/sys/fs/cgroup")
STEAL_FIELD = 7
CPU_FIELDS = 8
"""The fields of /proc/stat's line `cpu`: user, nice, system, idle, iowait, irq, softirq, steal; guest time is in
user."""


@contextmanager
def around() -> Iterator[Conditions]:
    """What happened while the context lasts, complete when it is left: `steal_share` of the CPU time of all CPUs,
    `cpu_throttled_s` by quotas, `thermal_throttles`, `process_read_bytes`, `written_back_bytes`."""
    seen: Conditions = {}
    before = _counters()
    try:
        yield seen
    finally:
        after = _counters()
        moved = {name: after[name] - value for name, value in before.items() if name in after}
        if moved.get("cpu_ticks"):
            seen["steal_share"] = moved["steal_ticks"] / moved["cpu_ticks"]
        if "cpu_throttled_s" in moved:
            seen["cpu_throttled_s"] = moved["cpu_throttled_s"]
        if "thermal_throttles" in moved:
            seen["thermal_throttles"] = moved["thermal_throttles"]
        if "process_read_bytes" in moved:
            seen["process_read_bytes"] = moved["process_read_bytes"]
        if "written_back_bytes" in moved:
            seen["written_back_bytes"] = moved["written_back_bytes"]


def _counters() -> Counters:
    found: Counters = {}
    for read in (_cpu_time, _quota, _heat, _own_reads, _write_back):
        try:
            found |= read()
        except (OSError, ValueError, LookupError):  # not shown by this kernel, or not to this user
            continue
    return found


def _cpu_time() -> Counters:
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1 : 1 + CPU_FIELDS]]
    return {"cpu_ticks": sum(ticks), "steal_ticks": ticks[STEAL_FIELD]}


def _quota() -> Counters:
    """The counters of the group that was throttled most, from iolab's own to the root: any of them may have a quota."""
    throttled = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = CGROUPS / controllers if controllers else CGROUPS
        own = top / path.lstrip("/")
        for group in (own, *(one for one in own.parents if one == top or top in one.parents)):
            throttled += _throttled_s(group / "cpu.stat")
    return {"cpu_throttled_s": max(throttled)} if throttled else {}


def _throttled_s(file: Path) -> list[float]:
    """In cgroup v2 `throttled_usec`, in v1 `throttled_time` in ns."""
    if not file.exists():
        return []
    table = dict(line.split() for line in file.read_text().splitlines())
    units = {"throttled_usec": 1e6, "throttled_time": 1e9}
    return [int(table[name]) / per_s for name, per_s in units.items() if name in table]


def _heat() -> Counters:
    counts = [
        int(path.read_text())
        for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/*_throttle_count")
    ]
    return {"thermal_throttles": sum(counts)} if counts else {}


def _own_reads() -> Counters:
    lines = Path("/proc/self/io").read_text().splitlines()
    table = dict(line.split(": ") for line in lines)
    return {"process_read_bytes": float(table["read_bytes"])}


def _write_back() -> Counters:
    """`nr_written`: pages whose write-back ended (`__folio_end_writeback` of mm/page-writeback.c, Linux 6.1)."""
    table = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return {"written_back_bytes": float(int(table["nr_written"]) * os.sysconf("SC_PAGESIZE"))}
