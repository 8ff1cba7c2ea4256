"""Controls that limit the load by a control group of its own: I/O of the target's devices, CPU time.

The process that runs the trial is in the group during measured phases only, with its threads and all that it starts;
files are laid out without limits. The group is journaled before it is made, and removed after the trial. Sources: the
kernel's Documentation/admin-guide/cgroup-v1/blkio-controller.rst, cgroup-v2.rst ("io.max", "cpu.max") and
Documentation/scheduler/sched-bwc.rst.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from iolab.base.errors import InputError, nearest
from iolab.base.quantity import parse_rate
from iolab.machines.control.control import Applied, Context, Control, queue_device
from iolab.machines.system import cgroup

if TYPE_CHECKING:
    from iolab.domain.trial import Trial
    from iolab.domain.trial.target import Reach
    from iolab.machines.system.cgroup import Cgroup

NAME = "limit"
CPU_PERIOD_US = 100_000
CPU_QUOTA_MIN_US = 1_000
"""The kernel takes no less (kernel/sched/core.c)."""
CPUS_MAX = 4096

FILES = {
    "read": ("blkio.throttle.read_bps_device", "rbps"),
    "write": ("blkio.throttle.write_bps_device", "wbps"),
    "read_iops": ("blkio.throttle.read_iops_device", "riops"),
    "write_iops": ("blkio.throttle.write_iops_device", "wiops"),
}
"""By key: the file of version 1, and the word in io.max of version 2."""


class Limit(Control):
    """Of either kind: no workload that makes control groups itself."""

    def amend(self, trial: Trial, value: Any) -> Trial:
        """The trial as it is. InputError for a workload whose groups are control groups already."""
        if any(phase.kind == "weighted_load" for phase in trial.phases):
            raise InputError(
                f"{self.name}: this workload's groups have control groups of their own",
                remedy='use another workload, or controller = "none" and no weights',
            )
        return trial

    def _group(self, context: Context, v1: str, v2: str) -> Cgroup:
        """The trial's own group in the hierarchy of the controller, made when first asked for."""
        hierarchy = cgroup.find(v1, v2)
        if hierarchy is None:
            raise cgroup.missing(self.name, v1, v2)
        made = context.groups.get(str(hierarchy.root))
        if made is None:
            made = context.groups[str(hierarchy.root)] = cgroup.make(hierarchy, NAME, context.undo)
        elif hierarchy.version == 2:
            cgroup.enable(hierarchy, context.undo)
        return made


class IoMax(Limit):
    """Bytes and operations per second, by key (`FILES`)."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"queue"})
    """So that it is applied to each of the target's devices."""

    def validate(self, value: Any) -> dict[str, int]:
        """`{ read = "100MiB/s", write_iops = 500 }` -> bytes or operations per second."""
        if not isinstance(value, Mapping) or not value:
            raise self.expected(value)
        found: dict[str, int] = {}
        for key, given in value.items():
            if key not in FILES:
                close = nearest(str(key), FILES)
                hint = f"did you mean {close}?" if close else f"it has {', '.join(FILES)}"
                raise InputError(f"{self.name}: unknown key {str(key)!r}", remedy=hint)
            found[key] = _operations(self, key, given) if key.endswith("iops") else _rate(self, key, given)
        return found

    def apply(self, context: Context, value: dict[str, int]) -> Applied:
        """Makes the group and writes its limits for the target's device. MachineError if the kernel has none."""
        device = queue_device(self, context)
        group = self._group(context, "blkio", "io")
        number = ":".join(map(str, device.number))
        if group.version == 2:
            group.set("io.max", f"{number} {' '.join(f'{FILES[key][1]}={limit}' for key, limit in value.items())}")
        else:
            for key, limit in value.items():
                group.set(FILES[key][0], f"{number} {limit}")
        notes = () if group.owns_buffered_writes else (_BUFFERED,)
        limits_writes = any(key.startswith("write") for key in value)
        return Applied(None, {**value, "cgroup": group.version}, notes if limits_writes else ())


class CpuQuota(Limit):
    """CPU time per wall time, in CPUs."""

    def validate(self, value: Any) -> float:
        """CPUs' worth of time: 0.5, 2, or `"50%"` of one."""
        if isinstance(value, str) and (found := re.fullmatch(r"(\d{1,7}(?:\.\d{1,3})?) ?%", value.strip())):
            value = float(found[1]) / 100
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.expected(value)
        if not CPU_QUOTA_MIN_US / CPU_PERIOD_US <= value <= CPUS_MAX:
            raise self.expected(value)
        return float(value)

    def apply(self, context: Context, value: float) -> Applied:
        """Makes the group and writes its quota. MachineError if the kernel has none."""
        group = self._group(context, "cpu", "cpu")
        quota_us = round(value * CPU_PERIOD_US)
        if group.version == 2:
            group.set("cpu.max", f"{quota_us} {CPU_PERIOD_US}")
        else:
            group.set("cpu.cfs_period_us", str(CPU_PERIOD_US))
            group.set("cpu.cfs_quota_us", str(quota_us))
        return Applied(None, {"cpus": quota_us / CPU_PERIOD_US, "cgroup": group.version})


_BUFFERED = (
    "io_max: buffered writes reach the device from the kernel's own threads, which this group does not limit: that "
    "takes version 2 of control groups with the controllers io and memory"
)


def _rate(control: Control, key: str, given: Any) -> int:
    if isinstance(given, str):
        try:
            given = parse_rate(given)
        except ValueError as error:
            raise InputError(f"{control.name}.{key}: {error}") from error
    if isinstance(given, bool) or not isinstance(given, int | float) or not 1 <= given < 2**63:
        raise InputError(f'{control.name}.{key} is {given!r}, expected a rate such as "100MiB/s"')
    return int(given)


def _operations(control: Control, key: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given < 2**32:
        raise InputError(f"{control.name}.{key} is {given!r}, expected a whole number of operations per second, from 1")
    return given


CONTROLS: tuple[Control, ...] = (
    IoMax(
        "io_max",
        "Limits of the load's I/O on the target's devices, by a control group: bytes (read, write) and operations "
        "(read_iops, write_iops) per second. Buffered writes are limited with version 2 of control groups only.",
        values="a table of read, write, read_iops, write_iops",
        example='{ read = "100MiB/s", write_iops = 500 }',
    ),
    CpuQuota(
        "cpu_quota",
        "CPU time that the load's threads and processes have together, by a control group: 0.5 is half a CPU's.",
        values='a number of CPUs from 0.01, or a percentage of one such as "50%"',
        unit="CPUs",
        example="0.5",
    ),
)
