"""What a block device or a file lies on: through loop devices, the filesystems of their files, dm, md and partitions,
down to the storage. Swapping to what lies in memory, or needs memory to be reached, can wait for itself for ever."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iolab.base.errors import InputError
from iolab.machines.system import block, loop
from iolab.machines.system.block import BlockDevice, device_at, device_numbered
from iolab.machines.system.mounts import IN_MEMORY, Mount, mount_of, mounts

UNFIT_DEVICES = {
    "zram": "is memory",
    "ram": "is memory",
    "nullb": "keeps nothing, or keeps it in memory",
    "nbd": "is reached through a network",
    "rnbd": "is reached through a network",
    "rbd": "is reached through a network",
    "drbd": "is reached through a network",
    "etherd": "is reached through a network",
    "ublkb": "is served by a process, which needs memory itself",
    "zd": "is a ZFS volume, which needs memory to be written",
}
"""By the letters that the name begins with."""
OTHER_DEVICES = ("logdev", "rtdev", "journal_path")
"""Mount options that name another device which the filesystem writes to."""


@dataclass(frozen=True)
class Layer:
    """One thing that lies under another."""

    name: str
    unfit: str | None = None
    """Why nothing may be swapped to what lies on it; None: no reason."""


def layers(path: Path) -> list[Layer]:
    """The device or file and all that it lies on, from the top down, each once.

    Raises:
        InputError: there is nothing at `path`.
    """
    if path.is_block_device():
        return list(_Descent().device(device_at(path)))
    if not path.exists():
        raise InputError("no such device or file", where=str(path), remedy="list the devices here: lsblk")
    return list(_Descent().file(str(path), path.stat().st_dev))


def check_swap(path: Path) -> None:
    """Refuses a place that the kernel must not swap to, before anything is written.

    Raises:
        InputError: names what it lies on, from the top down, and what of it is unfit.
    """
    found = layers(path)
    unfit = next((layer for layer in found if layer.unfit), None)
    if unfit is None:
        return
    way = " on ".join(layer.name for layer in found[: found.index(unfit) + 1])
    raise InputError(
        f"the kernel would wait for itself if it swapped there: {way}, which {unfit.unfit}",
        where=str(path),
        remedy='choose storage that is a disk: a device, or [target] backing = "/a/directory/on/a/disk"',
    )


class _Descent:
    def __init__(self) -> None:
        self._seen: set[tuple[int, int]] = set()

    def device(self, device: BlockDevice) -> Iterator[Layer]:
        if device.number in self._seen:
            return
        self._seen.add(device.number)
        yield Layer(f"/dev/{device.name}", _unfit(device))
        if device.is_partition:
            yield from self.device(device.disk)
        for attached in loop.attached():
            if attached.name == device.name:
                yield from self._backing(attached)
        for name in device.slaves:
            yield from self.device(block.device_in((device.directory / "slaves" / name).resolve()))

    def file(self, path: str, filesystem_number: int) -> Iterator[Layer]:
        """What a file with this st_dev lies on."""
        yield Layer(path)
        mount = _mount(path, filesystem_number)
        if mount is None:
            yield Layer("a filesystem that is not mounted here", "may be memory")
        else:
            yield from self._filesystem(mount)

    def _backing(self, attached: loop.Loop) -> Iterator[Layer]:
        backing = loop.backing(attached)
        if backing.device is not None:
            device = device_numbered(*backing.device)
            if device is not None:
                yield from self.device(device)
            return
        if backing.inode is None:
            yield Layer(attached.backing_file, "cannot be determined")
            return
        yield from self.file(attached.backing_file, backing.inode[0])

    def _filesystem(self, mount: Mount) -> Iterator[Layer]:
        name = f"{mount.filesystem} at {mount.mount_point}"
        devices = list(_devices(mount))
        unfit = None
        if mount.filesystem in IN_MEMORY:
            unfit = "is memory"
        elif mount.filesystem.startswith("fuse"):
            unfit = "is served by a process, which needs memory itself"
        elif not devices and mount.filesystem != "overlay":
            unfit = "is on no block device (a network, or memory)"
        yield Layer(name, unfit)
        if mount.filesystem == "overlay":
            yield from self._upper(mount)
        for device in devices:
            yield from self.device(device)

    def _upper(self, mount: Mount) -> Iterator[Layer]:
        """An overlay's new files lie in its upper directory."""
        upper = next((value for name, value in _options(mount) if name == "upperdir"), None)
        if upper is None or not Path(upper).is_dir():
            yield Layer("an upper directory out of sight", "may be memory")
            return
        yield from self.file(upper, Path(upper).stat().st_dev)


def _unfit(device: BlockDevice) -> str | None:
    letters = re.match(r"[a-z]*", device.disk.name)
    assert letters is not None
    if letters[0] in UNFIT_DEVICES:
        return UNFIT_DEVICES[letters[0]]
    if "/session" in str(device.disk.directory):
        return "is reached through a network (iSCSI)"
    transport = _nvme_transport(device)
    if transport in ("tcp", "rdma", "loop"):
        return f"is reached through a network (NVMe over {transport})"
    return None


def _nvme_transport(device: BlockDevice) -> str | None:
    for file in (device.disk.directory / "device" / "transport", device.disk.directory.parent / "transport"):
        try:
            return file.read_text().strip()
        except OSError:
            continue
    return None


def _mount(path: str, filesystem_number: int) -> Mount | None:
    """By the filesystem's number, which no renaming changes; btrfs's files show another one, so there by the path."""
    number = (os.major(filesystem_number), os.minor(filesystem_number))
    found = [mount for mount in mounts() if mount.number == number]
    if found:
        return found[-1]
    by_path = mount_of(Path(path)) if Path(path).exists() else None
    return by_path if by_path is not None and by_path.filesystem == "btrfs" else None


def _devices(mount: Mount) -> Iterator[BlockDevice]:
    """All that a filesystem writes to."""
    found = device_numbered(*mount.number)
    if found is not None:
        yield found
    named = [mount.source, *(value for name, value in _options(mount) if name in OTHER_DEVICES)]
    for path in map(Path, named):
        if path.is_absolute() and path.is_block_device():
            yield device_at(path)
            yield from _others_of_btrfs(path)


def _others_of_btrfs(path: Path) -> Iterator[BlockDevice]:
    name = path.resolve().name
    for own in (block.SYS / "fs" / "btrfs").glob(f"*/devices/{name}"):
        for other in own.parent.iterdir():
            if other.name != name:
                yield block.device_in(other.resolve())


def _options(mount: Mount) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (option.partition("=") for option in mount.options.split(","))]
