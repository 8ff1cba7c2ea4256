"""The machine's description, captured with each run: what somebody else needs to judge or repeat its numbers."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from iolab import _native
from iolab.base import child_process, cpu_list
from iolab.base.strict_json import JsonObject
from iolab.base.version import VERSION
from iolab.machines.system import command, interrupt, loop
from iolab.machines.system.block import BlockDevice, device_at, device_under
from iolab.machines.system.facts import Fact, absent, fields, files, is_absent, text
from iolab.machines.system.filesystem import FILESYSTEMS
from iolab.machines.system.mounts import mount_of
from iolab.machines.system.state import nearest_existing, state_directory

if TYPE_CHECKING:
    from iolab.domain.record import ObservedTarget, TargetObservation
    from iolab.domain.trial import Target

CPU = Path("/sys/devices/system/cpu")
LIBRARIES = ("numpy", "polars", "pydantic", "scipy")


def describe(target: Target | None = None) -> JsonObject:
    """Everything, as JSON values; what can't be read is {"absent": reason}.

    Args:
        target: what trials run on; None describes the machine alone.
    """
    description: JsonObject = {
        "hostname": platform.node(),
        "kernel": _kernel(),
        "cpu": _cpu(),
        "memory": _memory(),
        "clock": _clock(),
        "privileges": {"uid": os.geteuid(), "root": os.geteuid() == 0},
        "cgroup": _cgroup(),
        "virtualization": virtualization(),
        "versions": _versions(),
    }
    if target is not None:
        description["target"] = _target(target)
    return description


def site(places: Sequence[tuple[Path, BlockDevice | None]]) -> TargetObservation:
    """The filesystem at a path and the device below it, as they are now; of several, the others under `further`."""
    targets: list[ObservedTarget] = [
        {"filesystem": _filesystem(path), "device": block_device(device) if device else _no_device(path)}
        for path, device in places
    ]
    observed: TargetObservation = {"filesystem": targets[0]["filesystem"], "device": targets[0]["device"]}
    if len(targets) > 1:
        observed["further"] = targets[1:]
    return observed


def block_device(device: BlockDevice) -> JsonObject:
    """Model and queue attributes as the kernel shows them."""
    disk = device.disk
    hardware = disk.directory / "device"
    return {
        "name": device.name,
        "number": "{}:{}".format(*device.number),
        "size_bytes": device.size_bytes,
        "disk": disk.name,
        "model": text(hardware / "model"),
        "vendor": text(hardware / "vendor"),
        "serial": _first(text(disk.directory / "serial"), text(hardware / "serial"), text(disk.directory / "wwid")),
        "firmware": _first(text(hardware / "firmware_rev"), text(hardware / "rev")),
        "driver": _link_name(hardware / "driver"),
        "numa_node": _first(text(hardware / "numa_node"), text(hardware / "device" / "numa_node")),
        "virtual": "/virtual/" in str(disk.directory),
        "stacked_on": disk.slaves,
        "disks_below": [block_device(below) for below in disk.disks_below],
        "loop": _loop(disk),
        "scheduler": text(disk.queue / "scheduler"),
        "queue": files(disk.queue),
        "queue_cpus": _queue_cpus(disk),
        "interrupts": _interrupts(disk),
        "scheduler_tunables": files(disk.queue / "iosched"),
    }


def _queue_cpus(disk: BlockDevice) -> Fact:
    """Hardware queue -> the CPUs whose requests it takes, as the kernel maps them."""
    queues = sorted((disk.directory / "mq").glob("[0-9]*"), key=lambda path: int(path.name))
    if not queues:
        return absent(f"{disk.name} has no hardware queues that the kernel shows")
    return {path.name: text(path / "cpu_list") for path in queues}


def _interrupts(disk: BlockDevice) -> Fact:
    """Name -> the CPUs that it comes to, of the interrupts of the disk's requests."""
    try:
        return {one.name: cpu_list.text(one.cpus) for one in interrupt.interrupts_of(disk)}
    except OSError as error:
        return absent(f"{error.filename}: {error.strerror}")


def virtualization() -> dict[str, Fact]:
    """Virtual machine and container, as systemd-detect-virt reports them."""
    return {
        "machine": _detect_virt("--vm"),
        "container": _detect_virt("--container"),
        "hypervisor_flag": " hypervisor" in str(fields(Path("/proc/cpuinfo"), {"flags": "flags"})["flags"]),
    }


def _kernel() -> dict[str, Fact]:
    kernel = Path("/proc/sys/kernel")
    return {
        "release": text(kernel / "osrelease"),
        "version": text(kernel / "version"),
        "machine": platform.machine(),
        "command_line": text(Path("/proc/cmdline")),
        "boot_id": text(kernel / "random" / "boot_id"),
        "tainted": text(kernel / "tainted"),
        "distribution": _distribution(),
        "dirty_ratio": text(Path("/proc/sys/vm/dirty_ratio")),
        "dirty_background_ratio": text(Path("/proc/sys/vm/dirty_background_ratio")),
    }


def _cpu() -> dict[str, Fact]:
    frequency = CPU / "cpu0" / "cpufreq"
    return {
        **fields(
            Path("/proc/cpuinfo"),
            {"model": "model name", "vendor": "vendor_id", "microcode": "microcode", "frequency_mhz": "cpu MHz"},
        ),
        "online": text(CPU / "online"),
        "count_online": os.cpu_count(),
        "count_usable": len(os.sched_getaffinity(0)),
        "smt": text(CPU / "smt" / "control"),
        "topology": _topology(),
        "numa_nodes": text(Path("/sys/devices/system/node/online")),
        "frequency_driver": text(frequency / "scaling_driver"),
        "governor": text(frequency / "scaling_governor"),
        "frequency_khz_max": text(frequency / "scaling_max_freq"),
        "turbo": _first(text(CPU / "cpufreq" / "boost"), text(CPU / "intel_pstate" / "no_turbo")),
        "idle_driver": text(CPU / "cpuidle" / "current_driver"),
        "idle_governor": text(CPU / "cpuidle" / "current_governor"),
        "idle_states": _idle_states(),
        "vulnerabilities": files(CPU / "vulnerabilities"),
    }


def _memory() -> dict[str, Fact]:
    shown = fields(
        Path("/proc/meminfo"),
        {"total": "MemTotal", "available": "MemAvailable", "dirty": "Dirty", "huge_pages_total": "HugePages_Total"},
    )
    swaps = text(Path("/proc/swaps"))
    return {
        **shown,
        "swap": swaps if is_absent(swaps) else swaps.splitlines()[1:],
        "transparent_huge_pages": text(Path("/sys/kernel/mm/transparent_hugepage/enabled")),
        "swappiness": text(Path("/proc/sys/vm/swappiness")),
    }


def _clock() -> dict[str, Fact]:
    clock = Path("/sys/devices/system/clocksource/clocksource0")
    return {"source": text(clock / "current_clocksource"), "available": text(clock / "available_clocksource")}


def _cgroup() -> dict[str, Fact]:
    mounted = {line.split()[2] for line in Path("/proc/mounts").read_text().splitlines()}
    versions = [version for version, kind in ((1, "cgroup"), (2, "cgroup2")) if kind in mounted]
    return {"versions": versions, "of_this_process": text(Path("/proc/self/cgroup"))}


def _versions() -> JsonObject:
    libraries: dict[str, Fact] = {}
    for name in LIBRARIES:
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            libraries[name] = absent("not installed")
    return {
        "iolab": VERSION,
        "native_build_profile": _native.build_profile(),
        "python": platform.python_version(),
        "libraries": libraries,
        "mkfs": {name: _tool_version(filesystem.tool) for name, filesystem in FILESYSTEMS.items()},
        "losetup": _tool_version("losetup", "--version"),
        "fio": _tool_version("fio", "--version"),
    }


def _target(target: Target) -> JsonObject:
    assert target.kind != "drives", "a simulated machine is described by its file"
    described: JsonObject = {"asked_for": target.model_dump(mode="json")}
    if target.kind == "device":
        return {**described, **site([(Path(path), device_at(Path(path))) for path in target.paths])}
    if target.kind == "scratch":
        path = Path(target.backing_directory) if target.backing_directory else state_directory()
    else:
        path = Path(target.path)
    place = nearest_existing(path.absolute())
    disk = shutil.disk_usage(place)
    space = {"size_bytes": disk.total, "free_bytes": disk.free}
    return {**described, "place": str(place), "space": space, **site([(place, device_under(place))])}


def _filesystem(path: Path) -> Fact:
    if path.is_block_device():
        return absent("a bare device")
    mount = mount_of(path)
    if mount is None:
        return absent(f"no mount is shown for {path}")
    return {
        "type": mount.filesystem,
        "source": mount.source,
        "mount_point": mount.mount_point,
        "options": mount.options,
    }


def _no_device(path: Path) -> Fact:
    return absent(f"{path} lies on no block device (tmpfs, overlay or network filesystem)")


def _loop(disk: BlockDevice) -> Fact:
    for device in loop.attached(disk.name):
        return {"backing_file": device.backing_file, "direct_io": device.direct_io}
    return absent("not a loop device")


def _topology() -> Fact:
    cpus = sorted((path for path in CPU.glob("cpu[0-9]*") if path.is_dir()), key=lambda path: int(path.name[3:]))
    return {
        cpu.name: {
            "package": text(cpu / "topology" / "physical_package_id"),
            "core": text(cpu / "topology" / "core_id"),
            "siblings": text(cpu / "topology" / "thread_siblings_list"),
        }
        for cpu in cpus
    }


def _idle_states() -> Fact:
    states = sorted((CPU / "cpu0" / "cpuidle").glob("state*"))
    if not states:
        return absent("no cpuidle states: a virtual machine, or idle=poll")
    return {str(text(state / "name")): text(state / "latency") for state in states}


def _distribution() -> Fact:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return absent("no os-release")


def _detect_virt(kind: str) -> Fact:
    tool = command.find("systemd-detect-virt")
    if tool is None:
        return absent("systemd-detect-virt is not installed")
    done = _tool_output(tool, kind)
    return done.stdout.strip() or absent(f"systemd-detect-virt {kind} prints nothing")


def _tool_version(tool: str, option: str = "-V") -> Fact:
    path = command.find(tool)
    if path is None:
        return absent(f"{tool} is not installed")
    done = _tool_output(path, option)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else absent(f"{tool} {option} prints nothing")


def _tool_output(tool: str, option: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tool, option],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={**child_process.environment(), "LC_ALL": "C"},
        check=False,
    )


def _link_name(path: Path) -> Fact:
    try:
        return path.readlink().name
    except OSError:
        return absent(f"no {path}")


def _first(*facts: Fact) -> Fact:
    """The first that is not absent, else why the last one is."""
    return next((fact for fact in facts if not is_absent(fact)), facts[-1])
