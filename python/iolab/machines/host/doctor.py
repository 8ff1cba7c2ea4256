"""What can be controlled and observed on this machine, and which command gets the rest."""

from __future__ import annotations

import json
import os
import resource
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from iolab import _native
from iolab.base import cpu_list
from iolab.base.errors import MachineError
from iolab.domain import layer
from iolab.domain.probe import PROBES
from iolab.machines.host import probe_needs
from iolab.machines.host.load import IO_URING_REMEDY
from iolab.machines.system import (
    cgroup,
    command,
    driver_tags,
    interrupt,
    io_cost,
    kernel_module,
    layers,
    loop,
    rights,
    scheduler,
    swap,
    undo,
)
from iolab.machines.system.block import SYS, BlockDevice, device_in
from iolab.machines.system.cgroup import Hierarchy
from iolab.machines.system.facts import is_absent, text
from iolab.machines.system.filesystem import FILESYSTEMS
from iolab.machines.system.state import nearest_existing, state_directory

State = Literal["ok", "limited", "missing"]

MEMLOCK_WANTED_BYTES = 64 << 20
SCRATCH_WANTED_BYTES = 4 << 30
INTERRUPTS_NAMED_MAX = 3
AS_ROOT = "run as root: sudo iolab ..."


@dataclass(frozen=True)
class Finding:
    """The findings of one look at the machine, and their remedies."""

    area: str
    what: str
    state: State
    detail: str
    remedy: str | None
    """A command, or what to do; None when all is well."""


def findings() -> list[Finding]:
    """One line per thing that iolab uses, grouped by area, the fundamental ones first."""
    return [
        *_privileges(),
        *_engine(),
        *_scratch(),
        *_filesystems(),
        *_layers(),
        *_controls(),
        *_clocks(),
        *_probes(),
        *_peers(),
        *_leftovers(),
    ]


def _privileges() -> Iterator[Finding]:
    if os.geteuid() == 0 and not rights.administers():
        detail = "root without CAP_SYS_ADMIN: directory and file targets work, scratch devices do not"
        yield Finding("privileges", "root", "limited", detail, rights.IN_A_CONTAINER)
    elif os.geteuid() == 0:
        yield _ok("privileges", "root", "runs as root: scratch devices, queue settings, page cache")
    else:
        yield Finding(
            "privileges",
            "root",
            "limited",
            "not root: directory and file targets work, settings of queues do not",
            AS_ROOT,
        )
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if limit == resource.RLIM_INFINITY or limit >= MEMLOCK_WANTED_BYTES or os.geteuid() == 0:
        yield _ok("privileges", "locked memory", "enough for the rings' fixed buffers")
    else:
        yield Finding(
            "privileges", "locked memory", "limited", f"{limit >> 10} KiB: deep queues do without fixed buffers",
            f"raise it: ulimit -l {MEMLOCK_WANTED_BYTES >> 10} (as root, or in /etc/security/limits.conf)",
        )  # fmt: skip


BUILDS = {
    "release": "release build",
    "checked": "optimised, with assertions that cost CPU time; a wheel (make wheel) has none",
}
"""What may be measured with."""


def _engine() -> Iterator[Finding]:
    profile = _native.build_profile()
    if profile in BUILDS:
        yield _ok("engine", "native extension", BUILDS[profile])
    else:
        yield Finding("engine", "native extension", "limited", f"{profile} build: not for measuring", "make wheel")
    features = json.loads(_native.features())
    ring = features["io_uring"]
    if ring["usable"]:
        extras = [name for name, value in ring.items() if value is True and name != "usable"]
        yield _ok("engine", "io_uring", f"with {', '.join(extras)}" if extras else "plain")
    else:
        yield Finding("engine", "io_uring", "missing", str(ring["unusable_because"]), IO_URING_REMEDY)
    if features["libaio"]:
        yield _ok("engine", "libaio", "usable")
    else:
        yield Finding("engine", "libaio", "missing", "the kernel refuses it", "a kernel with CONFIG_AIO")
    if features["tsc"]:
        yield _ok("engine", "time stamps", "by TSC")
    else:
        detail = f"by clock_gettime, at a few tens of nanoseconds more: {features['tsc_unusable_because']}"
        yield Finding("engine", "time stamps", "limited", detail, "see clocks below")


def _scratch() -> Iterator[Finding]:
    if not Path("/dev/loop-control").exists():
        yield Finding("scratch", "loop devices", "missing", "no /dev/loop-control", loop.LOOP_REMEDY)
    elif os.geteuid() != 0 or not rights.administers():
        detail = "attaching needs root, with CAP_SYS_ADMIN"
        yield Finding("scratch", "loop devices", "limited", detail, rights.remedy())
    else:
        yield _ok("scratch", "loop devices", "can be attached")
    for tool, package in (("losetup", "util-linux"), ("wipefs", "util-linux"), ("mount", "mount")):
        if command.find(tool) is None:
            yield Finding("scratch", tool, "missing", "not installed", f"sudo apt-get install {package}")
    place = nearest_existing(state_directory())
    free = shutil.disk_usage(place).free
    detail = f"{free / 2**30:.1f} GiB free at {place}"
    if free >= SCRATCH_WANTED_BYTES:
        yield _ok("scratch", "space", detail)
    else:
        yield Finding(
            "scratch", "space", "limited", detail, 'choose another place: [target] backing = "/dir", or IOLAB_STATE_DIR'
        )


def _filesystems() -> Iterator[Finding]:
    for name, filesystem in FILESYSTEMS.items():
        if command.find(filesystem.tool) is None:
            remedy = f"sudo apt-get install {filesystem.package}"
            yield Finding("filesystems", name, "missing", f"{filesystem.tool} is not installed", remedy)
        elif not _is_registered(name):
            if kernel_module.loads(f"fs-{name}"):  # as the kernel asks for it when it is mounted
                yield _ok("filesystems", name, f"{filesystem.tool}, a module that the kernel loads when it is needed")
                continue
            yield Finding(
                "filesystems", name, "limited", "the kernel has none, nor a module of it", f"sudo modprobe {name}"
            )
        else:
            yield _ok("filesystems", name, f"{filesystem.tool}, kernel support")


def _layers() -> Iterator[Finding]:
    """For the key `layers` of a scratch target."""
    here = {kind: each for kind, each in layer.KINDS.items() if not each.guests_only}
    lacking = {kind: layers.missing_module(each) for kind, each in here.items()}
    mapped = [kind for kind in lacking if kind != "raid"]
    there = [kind for kind in mapped if lacking[kind] is None]
    absent = [f"{kind} ({layer.KINDS[kind].configuration})" for kind in mapped if lacking[kind]]
    if not there:
        remedy = "sudo modprobe dm_mod; if there is none, boot a kernel with CONFIG_BLK_DEV_DM"
        yield Finding("layers", "device mapper", "missing", "this kernel has no module dm_mod", remedy)
    elif command.find("dmsetup") is None:
        yield Finding("layers", "device mapper", "missing", "dmsetup is not installed", "sudo apt-get install dmsetup")
    elif absent:
        detail = f"{', '.join(there)}; not {', '.join(absent)}"
        yield Finding("layers", "device mapper", "limited", detail, "boot a kernel with these options")
    else:
        yield _ok("layers", "device mapper", ", ".join(there))
    if module := lacking["raid"]:
        remedy = f"sudo modprobe {module}; if there is none, boot a kernel with CONFIG_BLK_DEV_MD"
        yield Finding("layers", "md", "missing", f"this kernel has no module {module}", remedy)
    else:
        yield _ok("layers", "md", "raid")


def _controls() -> Iterator[Finding]:
    disk = _any_disk()
    if disk is None:
        yield Finding("controls", "queue settings", "missing", "no block device is shown in /sys/block", None)
    else:
        names = ", ".join(scheduler.available(disk))
        yield _ok("controls", "schedulers", f"{names} (as {disk.name} shows; others may load as modules)")
        yield _writable("queue settings", disk.queue / "scheduler")
    for each in _disks():
        if short := driver_tags.shortage(each):
            yield Finding("controls", "driver's tags", "limited", short.what, short.remedy)
    yield _writable("drop caches", Path("/proc/sys/vm/drop_caches"))
    governor = text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
    if is_absent(governor):
        detail = "no cpufreq here (usual in a virtual machine): the host decides the clock"
        yield Finding("controls", "CPU frequency", "limited", detail, "compare within one run, not across days")
    elif governor != "performance":
        yield Finding(
            "controls", "CPU frequency", "limited", f"governor {governor}: the clock moves with the load",
            "sudo cpupower frequency-set -g performance",
        )  # fmt: skip
    else:
        yield _ok("controls", "CPU frequency", "governor performance")
    yield _idle_states()
    if disk is not None:
        yield _interrupts(disk)
    yield _writable("kernel's threads", interrupt.workqueue_mask())
    yield _writable("writeback", Path("/proc/sys/vm/dirty_ratio"))
    yield from _cgroups()


def _idle_states() -> Finding:
    names = [text(path) for path in sorted((SYS / "devices/system/cpu/cpu0/cpuidle").glob("state*/name"))]
    if names:
        return _ok("controls", "CPU idle states", ", ".join(map(str, names)))
    detail = "none that Linux chooses (usual in a virtual machine): the host decides how CPUs idle"
    return Finding("controls", "CPU idle states", "limited", detail, "compare within one run, not across days")


def _interrupts(disk: BlockDevice) -> Finding:
    found = interrupt.interrupts_of(disk)
    if not found:
        return Finding("controls", "interrupts", "limited", f"{disk.name} has none of its own", "see workqueue_cpus")
    where = ", ".join(f"{one.name} on CPU {cpu_list.text(one.cpus)}" for one in found[:INTERRUPTS_NAMED_MAX])
    more = f" and {len(found) - INTERRUPTS_NAMED_MAX} more" if len(found) > INTERRUPTS_NAMED_MAX else ""
    return _ok("controls", "interrupts", f"of {disk.name}: {where}{more}")


def _cgroups() -> Iterator[Finding]:
    """For weighted groups (workload kind iostest) and memory limits (qsbench)."""
    for what, v1, v2 in (("I/O cgroups", "blkio", "io"), ("memory cgroups", "memory", "memory")):
        found = cgroup.find(v1, v2)
        if found is None:
            missing = cgroup.missing(what, v1, v2)
            yield Finding("controls", what, "missing", missing.what, missing.remedy)
        else:
            extra = ", io.cost too" if found.controller == "io" and io_cost.is_there(found.root) else ""
            detail = f"version {found.version} at {found.root}, with the {found.controller} controller{extra}"
            yield _usable(what, found, detail)
    if not swap.SWAPS.exists():
        yield Finding("controls", "swap", "missing", f"no {swap.SWAPS}", "a kernel with CONFIG_SWAP=y")
    elif command.find("mkswap") is None:
        yield Finding("controls", "swap", "missing", "mkswap is not installed", "sudo apt-get install util-linux")
    else:
        yield _ok("controls", "swap", "the kernel can swap, mkswap is installed")


def _usable(what: str, hierarchy: Hierarchy, detail: str) -> Finding:
    try:
        cgroup.require(hierarchy)
    except MachineError as error:
        return Finding("controls", what, "limited", f"{detail}; {error.what}", error.remedy)
    if os.geteuid() == 0 and not os.access(hierarchy.parent, os.W_OK):
        return Finding("controls", what, "limited", f"{detail}; not writable", rights.IN_A_CONTAINER)
    return _ok("controls", what, detail)


def _clocks() -> Iterator[Finding]:
    source = text(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource"))
    if source == "tsc":
        yield _ok("clocks", "clock source", "tsc")
    else:
        remedy = (
            "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource, if it is offered"
        )
        yield Finding("clocks", "clock source", "limited", f"{source}: reading the time costs more", remedy)


def _probes() -> Iterator[Finding]:
    """A probe without the first thing that it needs is missing; without another it reports less."""
    for probe in PROBES.values():
        supplies = [probe_needs.of(need) for need in probe.needs]
        if lacking := probe_needs.lacking(probe):
            state: State = "missing" if supplies[0].remedy else "limited"
            detail = ", ".join(supply.detail for supply in lacking)
            yield Finding("probes", probe.name, state, detail, "; ".join(str(supply.remedy) for supply in lacking))
        else:
            yield _ok("probes", probe.name, ", ".join(supply.detail for supply in supplies))


def _peers() -> Iterator[Finding]:
    if command.find("fio") is None:
        yield Finding("peers", "fio", "missing", "only for comparing with it", "sudo apt-get install fio")
    else:
        yield _ok("peers", "fio", "installed, for comparing with it")


def _leftovers() -> Iterator[Finding]:
    what = "undo journals"
    try:
        found = undo.journals()
    except MachineError as error:
        yield Finding("leftovers", what, "limited", f"{error.where}: {error.what}", error.remedy)
        return
    if found.problems:
        yield Finding("leftovers", what, "limited", "; ".join(found.problems), "iolab restore")
    if found.dead:
        names = ", ".join(path.name for path in found.dead)
        yield Finding("leftovers", what, "limited", f"dead runs left something to undo: {names}", "iolab restore")
    if found.living:
        detail = f"{', '.join(found.living)} will undo what it changed itself"
        yield _ok("leftovers", what, detail if found.dead else f"nothing else to undo: {detail}")
    if not (found.problems or found.dead or found.living):
        yield _ok("leftovers", what, f"nothing to undo in {state_directory() / 'undo'}")


def _ok(area: str, what: str, detail: str) -> Finding:
    return Finding(area, what, "ok", detail, None)


def _writable(what: str, path: Path) -> Finding:
    if os.access(path, os.W_OK):
        return _ok("controls", what, f"{path} is writable")
    remedy = AS_ROOT if os.geteuid() != 0 else rights.IN_A_CONTAINER
    return Finding("controls", what, "limited", f"{path} is not writable", remedy)


def _is_registered(filesystem: str) -> bool:
    return filesystem in Path("/proc/filesystems").read_text().split()


def _any_disk() -> BlockDevice | None:
    disks = _disks()
    real = [disk for disk in disks if not disk.name.startswith(("loop", "ram", "zram"))]
    return next(iter((*real, *disks)), None)


def _disks() -> list[BlockDevice]:
    """Those with a queue of requests."""
    paths = [path for path in sorted((SYS / "block").iterdir()) if (path / "queue" / "scheduler").exists()]
    return [device_in(path.resolve()) for path in paths]
