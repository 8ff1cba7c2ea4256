"""Loop devices: attach a file, find what is attached, detach."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iolab.base.errors import MachineError
from iolab.machines.system import block, command

# linux/loop.h
LOOP_CLR_FD = 0x4C01
LOOP_GET_STATUS64 = 0x4C05
STATUS64_BYTES = 232

DETACH_PATIENCE_S = 5.0


@dataclass(frozen=True)
class Loop:
    """A loop device with the file that it shows."""

    name: str
    backing_file: str

    @property
    def node(self) -> Path:
        """The device's node in /dev."""
        return Path("/dev") / self.name

    @property
    def direct_io(self) -> bool:
        """Whether it passes by the page cache of the file's filesystem."""
        return self._attribute("dio") == "1"

    @property
    def detaches_on_last_close(self) -> bool:
        """Whether the kernel detaches it as soon as nobody has it open or mounted."""
        return self._attribute("autoclear") == "1"

    def _attribute(self, name: str) -> str:
        return (block.SYS / "block" / self.name / "loop" / name).read_text().strip()


def attached(names: str = "loop*") -> Iterator[Loop]:
    """Loop devices of these names that have a backing file now."""
    for path in sorted((block.SYS / "block").glob(f"{names}/loop/backing_file")):
        try:
            yield Loop(path.parent.parent.name, path.read_text().rstrip("\n"))
        except OSError:
            continue  # detached meanwhile


def attached_to_named(file: Path) -> list[Loop]:
    """Loop devices whose backing file and its directory have these names, wherever they are seen from here."""
    shown = [(one, Path(one.backing_file.removesuffix(" (deleted)"))) for one in attached()]
    return [one for one, path in shown if path.parts[-2:] == file.parts[-2:]]


def backed_by_device(number: tuple[int, int]) -> list[Loop]:
    """Loop devices backed by this block device, whatever node they were attached by."""
    return [loop for loop in attached() if number == backing(loop).device]


def backed_by_file(status: os.stat_result) -> list[Loop]:
    """Loop devices backed by this very file, whatever path they were attached by."""
    return [loop for loop in attached() if (status.st_dev, status.st_ino) == backing(loop).inode]


LOOP_CONTROL = Path("/dev/loop-control")
LOOP_REMEDY = "sudo modprobe loop; a container needs --device /dev/loop-control --device /dev/loop0, ..."


def attach(file: Path, *, sector_bytes: int | None) -> tuple[Loop, list[str]]:
    """Attaches a free loop device, with direct I/O if the backing filesystem has it.

    Direct I/O keeps the page cache of the backing file out: otherwise every block would be cached twice and reads
    would not reach the disk. Returns the device and notes. MachineError names what is missing for a loop device.
    """
    if not LOOP_CONTROL.exists():
        raise MachineError(
            f"a scratch target needs a loop device, and there is no {LOOP_CONTROL}",
            where=str(file),
            remedy=LOOP_REMEDY,
        )
    arguments = ["losetup", "--find", "--show", "--direct-io=on"]
    if sector_bytes is not None:
        arguments.append(f"--sector-size={sector_bytes}")
    node = _losetup([*arguments, str(file)], file)
    loop = Loop(Path(node).name, str(file))
    if loop.direct_io:
        return loop, []
    return loop, [
        f"{loop.node}: the filesystem of {file.parent} refuses direct I/O, so the scratch device's blocks are also in "
        "the page cache of its backing file"
    ]


def detach(loop: Loop) -> None:
    """Detaches; a device still in use goes with its last user. Nothing to do when it has another file by now."""
    try:
        fd = os.open(loop.node, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if loop in list(attached()):
            fcntl.ioctl(fd, LOOP_CLR_FD)
    except OSError as error:
        raise MachineError(f"cannot detach: {error.strerror}", where=str(loop.node)) from error
    finally:
        os.close(fd)
    _wait_until_detached(loop)


def _losetup(arguments: list[str], file: Path) -> str:
    try:
        return command.run(arguments, package="util-linux", where=str(file)).strip()
    except command.CommandFailed:
        # Older losetup fails, instead of warning, if the backing filesystem has no direct I/O.
        without = [argument for argument in arguments if argument != "--direct-io=on"]
        return command.run(without, package="util-linux", where=str(file)).strip()


def _wait_until_detached(loop: Loop) -> None:
    deadline = time.monotonic() + DETACH_PATIENCE_S
    while loop in list(attached()) and not loop.detaches_on_last_close:
        if time.monotonic() > deadline:
            raise MachineError("does not detach", where=str(loop.node), remedy=f"try: sudo losetup -d {loop.node}")
        time.sleep(0.01)


@dataclass(frozen=True)
class BackingFile:
    """The backing file of a loop device; neither path nor inode if the device is detached or unknown."""

    device: tuple[int, int] | None = None
    """Major and minor of a block device."""
    inode: tuple[int, int] | None = None
    """The file's filesystem number (st_dev) and its inode number."""


def backing(loop: Loop) -> BackingFile:
    """What a loop device lies on, asked of itself if that is permitted."""
    try:
        fd = os.open(loop.node, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return _backing_by_path(loop)  # no permission to ask the device itself
    try:
        answer = fcntl.ioctl(fd, LOOP_GET_STATUS64, bytes(STATUS64_BYTES))
    except OSError:
        return BackingFile()  # detached meanwhile
    finally:
        os.close(fd)
    # The kernel's huge_encode_dev() and the C library's dev_t agree for majors below 4096.
    device, inode, represented_device = struct.unpack_from("QQQ", answer)
    if represented_device:
        return BackingFile(device=(os.major(represented_device), os.minor(represented_device)))
    return BackingFile(inode=(device, inode))


def _backing_by_path(loop: Loop) -> BackingFile:
    try:
        status = Path(loop.backing_file).stat()
    except OSError:
        return BackingFile()
    if status.st_rdev:
        return BackingFile(device=(os.major(status.st_rdev), os.minor(status.st_rdev)))
    return BackingFile(inode=(status.st_dev, status.st_ino))
