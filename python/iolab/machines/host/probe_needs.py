"""What probes read from, and whether it is to be had here."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from iolab.domain.probe import Need, Probe
from iolab.machines.system import cgroup, tracefs
from iolab.machines.system.block import SYS
from iolab.machines.system.facts import is_absent, text
from iolab.machines.system.mounts import mounts

COUNTERS = SYS / "bus/event_source/devices"
LOCKDOWN = SYS / "kernel/security/lockdown"
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
PRESSURE = Path("/proc/pressure/memory")
PARANOID_WANTED = -1
"""For whoever is not root: tracepoints and kernel stacks of all CPUs (Documentation/admin-guide/sysctl/kernel.rst)."""


@dataclass(frozen=True)
class Supply:
    """`remedy` is a command, or what to do; None: it is there."""

    detail: str
    remedy: str | None = None


def of(need: Need) -> Supply:
    """What this machine has of the need, looked at now."""
    return _SUPPLIES[need]()


def lacking(probe: Probe) -> list[Supply]:
    """What this machine does not have of what the probe needs."""
    return [supply for supply in map(of, probe.needs) if supply.remedy is not None]


def _block_devices() -> Supply:
    if any((SYS / "block").iterdir()):
        return Supply("block devices")
    return Supply("no block device is shown in /sys/block", "sudo modprobe loop")


def _tracefs() -> Supply:
    if locked := _locked_down("tracefs"):
        return locked
    if os.geteuid() != 0:
        return Supply("tracefs is for root", "run as root: sudo iolab ...")
    if not tracefs.ROOTS[0].is_dir():
        return Supply("no tracefs in this kernel", "a kernel with CONFIG_FTRACE=y")
    found = tracefs.root()
    if found is None:
        return Supply("tracefs is not mounted", f"sudo mount -t tracefs nodev {tracefs.ROOTS[0]}")
    return Supply(f"tracefs at {found}")


def _perf_events() -> Supply:
    if locked := _locked_down("perf events of the kernel"):
        return locked
    paranoid = text(PARANOID)
    if is_absent(paranoid):
        return Supply("no perf events in this kernel", "a kernel with CONFIG_PERF_EVENTS=y")
    if os.geteuid() != 0 and int(paranoid) > PARANOID_WANTED:
        remedy = f"sudo sysctl kernel.perf_event_paranoid={PARANOID_WANTED}, or run as root"
        return Supply(f"perf_event_paranoid is {paranoid}", remedy)
    return Supply(f"perf events (perf_event_paranoid is {paranoid})")


def _hardware_counters() -> Supply:
    """A processor's counters are an event source named cpu, cpu_core (hybrid x86) or armv8_... (arm64)."""
    found = [path.name for path in COUNTERS.glob("*") if path.name.startswith(("cpu", "armv"))]
    if found:
        return Supply(f"the processor's counters ({', '.join(sorted(found))})")
    return Supply(
        "the processor's counters are not shown here, as usual in a virtual machine",
        "let the hypervisor pass them on (QEMU: -cpu host,pmu=on)",
    )


def _pressure() -> Supply:
    if not is_absent(text(PRESSURE)):
        return Supply("PSI")
    return Supply("no pressure stall information", "boot with psi=1, on a kernel with CONFIG_PSI=y")


def _io_cost() -> Supply:
    hierarchy = cgroup.version_2()
    if hierarchy is None:
        return Supply(
            "control groups version 2 are not mounted here",
            "boot with systemd.unified_cgroup_hierarchy=1, or sudo mount -t cgroup2 none DIRECTORY",
        )
    if (hierarchy.root / "io.cost.qos").exists():
        return Supply(f"io.cost at {hierarchy.root}")
    return Supply(
        f"no io.cost.qos in {hierarchy.root}: another hierarchy has the controller, or a container shows its own root",
        "on the machine itself, a kernel with CONFIG_BLK_CGROUP_IOCOST=y and the io controller in version 2",
    )


def _fiemap() -> Supply:
    if os.geteuid() == 0:
        return Supply("FIEMAP, or FIBMAP if a filesystem has no other")
    return Supply("FIEMAP; filesystems that have only FIBMAP need root")


def _nfs() -> Supply:
    found = [mount.mount_point for mount in mounts() if mount.filesystem.startswith("nfs")]
    if found:
        return Supply(f"NFS at {', '.join(found)}")
    return Supply("no NFS is mounted", "sudo mount -t nfs SERVER:/PATH DIRECTORY")


def _nvme() -> Supply:
    found = sorted(path.name for path in (SYS / "block").glob("nvme*"))
    if not found:
        return Supply("no NVMe drive", "a target on an NVMe drive")
    if os.geteuid() != 0:
        return Supply("only root may ask NVMe drives", "run as root: sudo iolab ...")
    return Supply(f"NVMe: {', '.join(found)}")


def _locked_down(what: str) -> Supply | None:
    """Lockdown in confidentiality mode closes what shows the kernel's memory (kernel_lockdown(7))."""
    modes = text(LOCKDOWN)
    if is_absent(modes) or "[confidentiality]" not in str(modes):
        return None
    return Supply(f"the kernel is locked down, which closes {what}", "boot without lockdown=confidentiality")


_SUPPLIES: dict[Need, Callable[[], Supply]] = {
    "block device": _block_devices,
    "tracefs": _tracefs,
    "perf events": _perf_events,
    "hardware counters": _hardware_counters,
    "procfs": lambda: Supply("/proc"),
    "PSI": _pressure,
    "io.cost": _io_cost,
    "FIEMAP": _fiemap,
    "NFS": _nfs,
    "NVMe": _nvme,
    "guest machine": lambda: Supply('only on a guest machine: machine = "guest:KERNEL"'),
}
