"""The filesystems that a scratch device can have: how each is made and what it needs."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iolab.base.errors import InputError, MachineError
from iolab.domain import filesystem_options
from iolab.domain.filesystem_options import checked_mount_options, mkfs_arguments
from iolab.machines.system import command


@dataclass(frozen=True)
class Filesystem:
    """How a filesystem is made: which tool, with which arguments."""

    package: str
    """The Debian package that has its mkfs."""
    mkfs: tuple[str, ...]
    uuid: str = "-U {}"
    """mkfs's option for the UUID."""

    @property
    def tool(self) -> str:
        """The program that makes it, such as `mkfs.ext4`."""
        return self.mkfs[0]


@dataclass(frozen=True)
class Sides:
    """Devices of iolab's own that hold what a filesystem keeps elsewhere."""

    log: Path | None = None
    realtime: Path | None = None


NO_SIDES = Sides()


@dataclass(frozen=True)
class Choice:
    """A filesystem that somebody chose, with its options."""

    name: str
    mkfs_options: str
    mount_options: str
    sides: Sides = NO_SIDES


DEFAULT = Choice(filesystem_options.DEFAULT, "", "")
EXT_BLOCK_BYTES = "4096"
"""If a journal has a device of its own and no size is set: mke2fs would choose for each device by its size, and
the two have to agree."""


# Lazy initialisation would write in the background during the trial; a second -E, the user's, replaces it.
_NOT_LAZY = ("-E", "lazy_itable_init=0,lazy_journal_init=0")

FILESYSTEMS: dict[str, Filesystem] = {
    "ext2": Filesystem("e2fsprogs", ("mkfs.ext2", "-q", "-F", *_NOT_LAZY)),
    "ext3": Filesystem("e2fsprogs", ("mkfs.ext3", "-q", "-F", *_NOT_LAZY)),
    "ext4": Filesystem("e2fsprogs", ("mkfs.ext4", "-q", "-F", *_NOT_LAZY)),
    "xfs": Filesystem("xfsprogs", ("mkfs.xfs", "-q", "-f"), uuid="-m uuid={}"),
    "btrfs": Filesystem("btrfs-progs", ("mkfs.btrfs", "-q", "-f")),
}


def make(name: str, device: Path, options: str, *, uuid: str | None = None, sides: Sides = NO_SIDES) -> None:
    """Makes the filesystem on the device.

    Args:
        uuid: that it shall have; None: one that mkfs draws.
        sides: written to as well.

    Raises:
        InputError: no such filesystem, or options that iolab does not hand on or mkfs refuses.
        MachineError: mkfs is not installed.
    """
    filesystem = FILESYSTEMS.get(name)
    if filesystem is None:
        raise InputError(f"unknown filesystem {name!r}", remedy=f"one of: {', '.join(FILESYSTEMS)}, none")
    chosen = mkfs_arguments(name, options)
    given_uuid = filesystem.uuid.format(uuid).split() if uuid is not None else []
    if sides.log is not None and name != "xfs":
        block = [] if "-b" in chosen else ["-b", EXT_BLOCK_BYTES]
        chosen = [*block, *chosen]
        block = chosen[(at := chosen.index("-b")) : at + 2]
        _mkfs(name, filesystem, [filesystem.tool, "-q", "-F", "-O", "journal_dev", *block, "--", str(sides.log)])
    arguments = [*filesystem.mkfs, *given_uuid, *chosen, *_mkfs_names(name, sides), "--", str(device)]
    _mkfs(name, filesystem, arguments)


def making(name: str, device: str, options: str, uuid: str) -> list[str]:
    """The command that makes the filesystem, the same byte for byte each time. InputError for options that iolab does
    not hand on."""
    filesystem = FILESYSTEMS[name]
    given_uuid = filesystem.uuid.format(uuid).split()
    words = [*filesystem.mkfs, *given_uuid, *mkfs_arguments(name, options)]
    if "-E" in words:
        # mke2fs takes the last one. It draws the places of names in directories, unless it is given.
        last = len(words) - 1 - words[::-1].index("-E")
        words[last + 1] += f",hash_seed={uuid}"
    return [*words, "--", device]


def mount(name: str, device: Path, mount_point: Path, options: str, *, sides: Sides = NO_SIDES) -> None:
    """Mounts it.

    Raises:
        InputError: options that iolab does not hand on or the filesystem refuses.
        MachineError: this kernel's XFS has no realtime sections.
    """
    chosen = ",".join(filter(None, [checked_mount_options(name, options), *_mount_names(name, sides)]))
    arguments = ["mount", "-t", name, *(["-o", chosen] if chosen else []), "--", str(device), str(mount_point)]
    try:
        command.run(arguments, package="mount", where=f"filesystem {name}")
    except command.CommandFailed as error:
        if sides.realtime is not None and os.strerror(errno.ENOSYS) in error.what:
            what, remedy = "this kernel has no realtime sections", "run a kernel with CONFIG_XFS_RT=y"
            raise MachineError(what, where="target.realtime_size", remedy=remedy) from error
        raise InputError(error.what, where=error.where, remedy="see mount_options (dmesg has more)") from error


def _mkfs(name: str, filesystem: Filesystem, arguments: Sequence[str]) -> None:
    try:
        command.run(arguments, package=filesystem.package, where=f"filesystem {name}")
    except command.CommandFailed as error:
        raise InputError(error.what, where=error.where, remedy="see target.size and mkfs_options") from error


def _mkfs_names(name: str, sides: Sides) -> list[str]:
    if name != "xfs":
        return [] if sides.log is None else ["-J", f"device={sides.log}"]
    log = [] if sides.log is None else ["-l", f"logdev={sides.log}"]
    return [*log, *([] if sides.realtime is None else ["-r", f"rtdev={sides.realtime}"])]


def _mount_names(name: str, sides: Sides) -> list[str]:
    """The superblock of ext names the journal's device."""
    if name != "xfs":
        return []
    log = [] if sides.log is None else [f"logdev={sides.log}"]
    return [*log, *([] if sides.realtime is None else [f"rtdev={sides.realtime}"])]
