"""This machine as the file of a simulated one: what the kernel shows of it, each value with where it stands.

What the kernel does not show (CPU times, what is inside a drive) is taken from a class of machines, and says so: it is
an estimate, which `docs/model-a-machine.md` shows how to replace.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from iolab.base import data
from iolab.base.bounded_file import is_file
from iolab.base.errors import MachineError
from iolab.machines.system import facts
from iolab.machines.system.block import SYS, BlockDevice, device_in, shown
from iolab.machines.system.mounts import mounts

PROC = Path("/proc")
NOT_DISKS = re.compile(r"(loop|ram|zram|dm-|md|sr|fd|nbd|nullb)\d")
KIB_OF_REQUESTS = (4, 65_536)
"""What a machine's file takes for max_sectors_kb."""
EXT = ("ext2", "ext3", "ext4")

MHZ_OF_ESTIMATES = 3000
CPU_TIMES_NS = {"call_ns": 1000, "completion_ns": 1500, "page_copy_ns": 300}
"""Estimates of machines/nvme.toml, for a processor of 3 GHz."""
BY_MODEL = {
    r"Samsung SSD 990 PRO": "samsung_990_pro",
    r"HP SSD EX920": "hp_ex920",
    r"INTEL SSDPED?2?MD": "dc_p3700",
    r"INTEL SSDPF21Q": "optane_p5800x",
    r"INTEL MEMPEK": "optane_m10",
    r"TOSHIBA MG04ACA4": "mg04aca400n",
    r"WDC WD1600AAJS": "wd1600aajs",
}
"""Device files of drives whose model sysfs names, by the beginning of that."""
NVME, FLASH, DISK, LOOP = "nvme_mqsim", "sata_ssd_2018", "sata_7200_2008", "loop_device"
BY_CLASS = (NVME, FLASH, DISK, LOOP)
"""Device files of drives that no file is of, by class."""
QUEUE_KEYS = ("nr_requests", "max_segments", "read_ahead_kb", "nomerges", "rotational", "wbt_lat_usec", "fua")
WRITEBACK = {
    "dirty_percent": ("dirty_ratio", 1),
    "dirty_background_percent": ("dirty_background_ratio", 1),
    "dirty_expire_ns": ("dirty_expire_centisecs", 10_000_000),
    "dirty_writeback_interval_ns": ("dirty_writeback_centisecs", 10_000_000),
}
"""Key of [memory]: the file in /proc/sys/vm, and how many of the key's units its unit is."""


@dataclass(frozen=True)
class Line:
    """`key = value  # origin`, or the comment alone if there is no value."""

    key: str
    value: str | int | float | None
    origin: str

    def __str__(self) -> str:
        if self.value is None:
            return f"# {self.key}: {self.origin}"
        value = f'"{self.value}"' if isinstance(self.value, str) and self.value[:1] not in ("{", '"') else self.value
        return f"{self.key} = {value}  # {self.origin}"


def text() -> str:
    """The machine file, TOML.

    Raises:
        MachineError: the kernel shows no disk.
    """
    found = list(disks())
    if not found:
        raise MachineError(
            "no disk here that a simulated machine could have",
            where=str(SYS / "block"),
            remedy="begin with a shipped machine: iolab list machines",
        )
    parts = [_head(len(found)), ("[cpus]", list(_cpus())), ("[memory]", list(_memory()))]
    parts += [("[[drives]]", list(_drive(disk))) for disk in found]
    return _joined(parts)


def _joined(parts: Sequence[tuple[str, list[Line]]]) -> str:
    return "\n\n".join("\n".join([*([title] if title else []), *map(str, lines)]) for title, lines in parts) + "\n"


def text_around(disk: BlockDevice | None) -> str:
    """The machine file of this machine with this disk alone, TOML; with a drive of which nothing is known if None."""
    drive = [Line("device", NVME, "the kernel shows no device")] if disk is None else list(_bare_drive(disk))
    parts = [_head(1), ("[cpus]", list(_cpus())), ("[memory]", list(_memory())), ("[[drives]]", drive)]
    return _joined(parts)


def estimated_drives(text: str) -> list[tuple[str, str]]:
    """The device file and the comment of each drive in a described machine's file that is an estimate of its class."""
    return re.findall(r'^device = "(\w+)"  # (.*: estimate, .*)$', text, re.MULTILINE)


def device_file(disk: BlockDevice) -> str:
    """The device file of the disk's model, or of its class."""
    return _device_file(disk, _model(disk))[0]


def disks() -> Iterator[BlockDevice]:
    """The drives, of which a machine's file has one each: no partitions, and nothing that is made of others."""
    for directory in sorted((SYS / "block").iterdir()):
        hidden = facts.text(directory / "hidden") == "1"
        if not NOT_DISKS.match(directory.name) and not hidden:
            disk = device_in(directory.resolve())
            if disk.size_bytes:
                yield disk


def _head(drives: int) -> tuple[str, list[Line]]:
    release = platform.release()
    version = re.match(r"\d+(\.\d+){1,2}", release)
    return "", [
        Line("title", f"{platform.node() or 'this machine'}, {drives} drive{'s' if drives > 1 else ''}", "uname -n"),
        Line("kernel", version[0] if version else "6.1", f"uname -r: {release}"),
    ]


def _cpus() -> Iterator[Line]:
    count = len([path for path in (SYS / "devices/system/cpu").glob("cpu[0-9]*") if _is_online(path)])
    yield Line("count", count, "/sys/devices/system/cpu")
    mhz = _mhz()
    speed = f"at {mhz:.0f} MHz" if mhz else "whose frequency is unknown"
    yield Line("time_slice_ns", 4_000_000, "estimate, as of machines/nvme.toml")
    for key, time_ns in CPU_TIMES_NS.items():
        scaled = round(time_ns * MHZ_OF_ESTIMATES / (mhz or MHZ_OF_ESTIMATES))
        yield Line(key, scaled, f"estimate, as of machines/nvme.toml, {speed}")
    yield Line("jitter", 0.05, "estimate, as of machines/nvme.toml")


def _is_online(cpu: Path) -> bool:
    # The first CPU of most machines can't be taken off and has no such file.
    return facts.text(cpu / "online") in ("1", facts.absent(f"no {cpu / 'online'}"))


def _mhz() -> float | None:
    khz = facts.text(SYS / "devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    if isinstance(khz, str) and khz.isdigit():
        return int(khz) / 1000
    shown_mhz = facts.fields(PROC / "cpuinfo", {"mhz": "cpu MHz"})["mhz"]
    return float(shown_mhz) if isinstance(shown_mhz, str) else None


def _memory() -> Iterator[Line]:
    total = facts.fields(PROC / "meminfo", {"total": "MemTotal"})["total"]
    assert isinstance(total, str), "each kernel has it"
    yield Line("bytes", int(total.split()[0]) * 1024, "/proc/meminfo, MemTotal")
    for key, (name, factor) in WRITEBACK.items():
        path = PROC / "sys/vm" / name
        value = facts.text(path)
        # 0: the limit is in bytes, or the flusher has no period.
        given = int(value) * factor if isinstance(value, str) and value.isdigit() and value != "0" else None
        origin = str(path) if given else f"{path} has none that the model takes; the kernel's default"
        limit = facts.text(PROC / "sys/vm/dirty_ratio")
        if key == "dirty_background_percent" and given and isinstance(limit, str) and 0 < int(limit) <= given:
            # domain_dirty_limits, mm/page-writeback.c, 6.1.
            origin = f"half of dirty_ratio, as the kernel takes it: {path} is {given}, not below {limit}"
            given = int(limit) // 2
        yield Line(key, given, origin)


def _model(disk: BlockDevice) -> str:
    model = facts.text(disk.directory / "device" / "model")
    return model if isinstance(model, str) else "a model that sysfs does not name"


def _bare_drive(disk: BlockDevice) -> Iterator[Line]:
    named = _model(disk)
    file, why = _device_file(disk, named)
    yield Line("device", file, f"{disk.name}, {named}, {disk.size_bytes / 1e9:.0f} GB: {why}")
    yield Line("scheduler", f'{{ name = "{shown(disk.queue / "scheduler")}" }}', str(disk.queue / "scheduler"))
    yield from _queue(disk)


def _drive(disk: BlockDevice) -> Iterator[Line]:
    device, scheduler, *queue = _bare_drive(disk)
    yield from (device, scheduler)
    filesystems = _filesystems(disk)
    kind = next((kind for kind in filesystems if kind in EXT), None)
    if kind is not None:
        yield Line("filesystem", f'{{ kind = "{kind}" }}', "/proc/self/mountinfo")
    elif filesystems:
        yield Line("filesystem", None, f"{filesystems[0]} is mounted; docs/model/xfs.md has what XFS takes")
    yield from queue


def _queue(disk: BlockDevice) -> Iterator[Line]:
    queues = len(list((disk.directory / "mq").glob("[0-9]*")))
    if queues:
        yield Line("queue.hardware_queues", queues, str(disk.directory / "mq"))
    largest = facts.text(disk.queue / "max_sectors_kb")
    if isinstance(largest, str) and largest.isdigit():
        least, most = KIB_OF_REQUESTS
        yield Line("queue.max_sectors_kb", min(max(int(largest), least), most), str(disk.queue / "max_sectors_kb"))
    for key in QUEUE_KEYS:
        value = facts.text(disk.queue / key)
        if isinstance(value, str) and value.isdigit():
            yield Line(f"queue.{key}", int(value), str(disk.queue / key))
    cache = facts.text(disk.queue / "write_cache")
    if cache in ("write back", "write through"):
        yield Line("queue.write_cache", cache, str(disk.queue / "write_cache"))


def _device_file(disk: BlockDevice, model: str) -> tuple[str, str]:
    """The device file, and why."""
    library = re.sub(r"[^a-z0-9]+", "_", model.lower()).strip("_")
    if is_file(data.MACHINES / "devices" / f"{library}.toml"):
        return library, "the file of this model"
    for beginning, file in BY_MODEL.items():
        if re.match(beginning, model):
            return file, "the file of this model"
    if disk.name.startswith("nvme"):
        return NVME, "estimate, of the class NVMe"
    if disk.name.startswith("loop"):
        return LOOP, "estimate, of the class of loop devices on files in the page cache"
    virtual = "; it is virtual, and what lies below is not shown" if disk.name.startswith(("vd", "xvd")) else ""
    if facts.text(disk.queue / "rotational") == "1":
        return DISK, f"estimate, of the class of disks of 7200 rpm{virtual}"
    return FLASH, f"estimate, of the class of SATA flash{virtual}"


def _filesystems(disk: BlockDevice) -> list[str]:
    numbers = {disk.number, *(partition.number for partition in disk.partitions)}
    return list(dict.fromkeys(mount.filesystem for mount in mounts() if mount.number in numbers))
