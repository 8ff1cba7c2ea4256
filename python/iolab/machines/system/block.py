"""Block devices as sysfs shows them."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from iolab.base.errors import InputError, IolabError
from iolab.machines.system.mounts import mount_of
from iolab.machines.system.reach import status_of

SYS = Path("/sys")


@dataclass(frozen=True)
class BlockDevice:
    """A disk or partition as sysfs shows it; each property is read anew."""

    number: tuple[int, int]
    """Major and minor."""
    directory: Path
    """The device's directory in sysfs."""

    @property
    def name(self) -> str:
        """The kernel's name, such as `sda1`."""
        return self.directory.name

    @property
    def is_partition(self) -> bool:
        """Whether it is a partition of a disk."""
        return (self.directory / "partition").exists()

    @property
    def disk(self) -> BlockDevice:
        """The whole disk: itself, or a partition's parent. Only it has a queue."""
        return device_in(self.directory.parent) if self.is_partition else self

    @property
    def queue(self) -> Path:
        """The directory of the disk's queue settings; a partition has its disk's."""
        return SYS / "block" / self.disk.name / "queue"

    @property
    def partitions(self) -> list[BlockDevice]:
        """The disk's partitions, by name; none of a partition."""
        return [device_in(path.parent) for path in sorted(self.directory.glob("*/partition"))]

    @property
    def holders(self) -> list[str]:
        """Devices stacked on this one: dm, md, bcache."""
        return _names(self.directory / "holders")

    @property
    def slaves(self) -> list[str]:
        """Devices that this one is stacked on."""
        return _names(self.directory / "slaves")

    @property
    def disks_below(self) -> list[BlockDevice]:
        """The disks at the bottom of what it is stacked on, each once; none if it is stacked on nothing."""
        found: dict[str, BlockDevice] = {}
        for name in self.disk.slaves:
            below = device_in((self.disk.directory / "slaves" / name).resolve()).disk
            found |= {disk.name: disk for disk in below.disks_below or [below]}
        return list(found.values())

    @property
    def is_written_in_sequence(self) -> bool:
        """Whether its zones take writes at their write pointers only (host-managed)."""
        zoned = self.queue / "zoned"
        return zoned.exists() and shown(zoned) == "host-managed"

    @property
    def size_bytes(self) -> int:
        """Its size in bytes, as the kernel has it."""
        return 512 * int((self.directory / "size").read_text())

    @property
    def logical_block_bytes(self) -> int:
        """What direct I/O needs multiples of."""
        return int((self.queue / "logical_block_size").read_text())

    @property
    def read_only(self) -> bool:
        """Whether the kernel refuses writes to it."""
        return (self.directory / "ro").read_text().strip() == "1"


def number_of(device: int) -> tuple[int, int]:
    """Major and minor, from `st_dev` or `st_rdev`."""
    return (os.major(device), os.minor(device))


def device_in(directory: Path) -> BlockDevice:
    """The device of one sysfs directory."""
    major, minor = (directory / "dev").read_text().split(":")
    return BlockDevice((int(major), int(minor)), directory)


def device_at(path: Path) -> BlockDevice:
    """The device that a node names.

    Raises:
        InputError: no such node, or not a block device.
        MachineError: no permission to go there.
    """
    status = status_of(path)
    if status is None:
        raise InputError("no such device", where=str(path), remedy="list the devices here: lsblk")
    if not stat.S_ISBLK(status.st_mode):
        of_nvme = re.fullmatch(r"ng(\d+n\d+)", path.resolve().name)
        named = f"name its block device, /dev/nvme{of_nvme[1]}" if of_nvme else "list the devices here: lsblk"
        raise InputError("expected a block device", where=str(path), remedy=named)
    device = device_numbered(os.major(status.st_rdev), os.minor(status.st_rdev))
    if device is None:
        raise InputError("the kernel has no device for this node", where=str(path), remedy="list the devices: lsblk")
    return device


def device_bytes(path: Path) -> int:
    """The size of the device that a node names; errors as of `device_at`."""
    return device_at(path).size_bytes


def device_numbered(major: int, minor: int) -> BlockDevice | None:
    """The block device of these numbers; None if there is none."""
    number = f"{major}:{minor}"
    directory = SYS / "dev" / "block" / number
    if not directory.exists():
        # podman 4.3 hides /sys/dev/block in its containers.
        named = (SYS / "class" / "block").glob("*/dev")
        directory = next((file.parent for file in named if shown(file) == number), directory)
    return BlockDevice((major, minor), directory.resolve()) if directory.exists() else None


def device_under(path: Path) -> BlockDevice | None:
    """The device that an existing file or directory lies on; None for tmpfs, overlay, network filesystems."""
    number = path.stat().st_dev
    device = device_numbered(os.major(number), os.minor(number))
    if device is not None:
        return device
    mount = mount_of(path)
    if mount is None or not mount.source.startswith("/dev/"):
        return None
    # btrfs reports a number of its own: the mount's source names the device.
    try:
        return device_at(Path(mount.source))
    except IolabError:
        return None


def shown(path: Path) -> str:
    """A sysfs value as the kernel shows it; of a choice like `none [bfq] kyber`, the one in force."""
    text = path.read_text().strip()
    if "[" in text:
        return text.partition("[")[2].partition("]")[0]
    return text


def _names(directory: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except FileNotFoundError:
        return []
