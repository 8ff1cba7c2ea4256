"""Limits the load by a control group of its own: I/O of the target's devices, CPU time.

The process that runs the trial is in the group during measured phases only, with its threads and all that it starts;
files are laid out without limits. The group is journaled before it is made, and removed after the trial. Sources: the
kernel's Documentation/admin-guide/cgroup-v1/blkio-controller.rst, cgroup-v2.rst ("io.max", "cpu.max") and
Documentation/scheduler/sched-bwc.rst.
"""

from __future__ import annotations

from iolab.domain.control.limit import CPU_PERIOD_US
from iolab.machines.host import groups
from iolab.machines.host.control.applier import AppliedValue, Applier, Context, queue_device
from iolab.machines.system import cgroup
from iolab.machines.system.cgroup import Cgroup

NAME = "limit"


class Limit(Applier):
    """A limit of either kind, in the trial's own group."""

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
    """Bytes and operations per second, by key (`groups.IO_MAX`)."""

    def apply(self, context: Context, value: dict[str, int]) -> AppliedValue:
        """Makes the group and writes its limits for the target's device. MachineError if the kernel has none."""
        device = queue_device(self.name, context)
        group = self._group(context, "blkio", "io")
        number = ":".join(map(str, device.number))
        for file, text in groups.io_max(group.version, value, number):
            group.set(file, text)
        notes = () if group.owns_buffered_writes else (_BUFFERED,)
        limits_writes = any(key.startswith("write") for key in value)
        return AppliedValue(None, {**value, "cgroup": group.version}, notes if limits_writes else ())


class CpuQuota(Limit):
    """CPU time per wall time, in CPUs."""

    def apply(self, context: Context, value: float) -> AppliedValue:
        """Makes the group and writes its quota. MachineError if the kernel has none."""
        group = self._group(context, "cpu", "cpu")
        quota_us = round(value * CPU_PERIOD_US)
        if group.version == 2:
            group.set("cpu.max", f"{quota_us} {CPU_PERIOD_US}")
        else:
            group.set("cpu.cfs_period_us", str(CPU_PERIOD_US))
            group.set("cpu.cfs_quota_us", str(quota_us))
        return AppliedValue(None, {"cpus": quota_us / CPU_PERIOD_US, "cgroup": group.version})


_BUFFERED = (
    "io_max: buffered writes reach the device from the kernel's own threads, which this group does not limit: that "
    "takes version 2 of control groups with the controllers io and memory"
)


APPLIERS: tuple[Applier, ...] = (IoMax("io_max"), CpuQuota("cpu_quota"))
