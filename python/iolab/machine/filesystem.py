"""The filesystems that a scratch device can have: how each is made and what it needs."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from iolab.errors import InputError
from iolab.machine import command


@dataclass(frozen=True)
class Filesystem:
    package: str
    """The Debian package that has its mkfs."""
    mkfs: tuple[str, ...]
    uuid: str = "-U {}"
    """How mkfs is told the UUID."""

    @property
    def tool(self) -> str:
        return self.mkfs[0]


@dataclass(frozen=True)
class Choice:
    """A filesystem that somebody chose, with its options."""

    name: str
    mkfs_options: str
    mount_options: str


DEFAULT = Choice("ext4", "", "")


# Lazy initialisation would write in the background during the trial; a second -E, the user's, replaces it.
_NOT_LAZY = ("-E", "lazy_itable_init=0,lazy_journal_init=0")

FILESYSTEMS: dict[str, Filesystem] = {
    "ext2": Filesystem("e2fsprogs", ("mkfs.ext2", "-q", "-F", *_NOT_LAZY)),
    "ext3": Filesystem("e2fsprogs", ("mkfs.ext3", "-q", "-F", *_NOT_LAZY)),
    "ext4": Filesystem("e2fsprogs", ("mkfs.ext4", "-q", "-F", *_NOT_LAZY)),
    "xfs": Filesystem("xfsprogs", ("mkfs.xfs", "-q", "-f"), uuid="-m uuid={}"),
    "btrfs": Filesystem("btrfs-progs", ("mkfs.btrfs", "-q", "-f")),
}


def make(name: str, device: Path, options: str, *, uuid: str | None = None) -> None:
    """Makes the filesystem on the device.

    Args:
        uuid: that it shall have; None: one that mkfs draws.

    Raises:
        InputError: no such filesystem, or options that mkfs refuses.
        MachineError: mkfs is not installed.
    """
    filesystem = FILESYSTEMS.get(name)
    if filesystem is None:
        raise InputError(f"unknown filesystem {name!r}", remedy=f"one of: {', '.join(FILESYSTEMS)}, none")
    chosen_uuid = filesystem.uuid.format(uuid).split() if uuid is not None else []
    arguments = [*filesystem.mkfs, *chosen_uuid, *_split(options), str(device)]
    try:
        command.run(arguments, package=filesystem.package, where=f"filesystem {name}")
    except command.CommandFailed as error:
        raise InputError(error.what, where=error.where, remedy="see target.size and mkfs_options") from error


def mount(name: str, device: Path, mount_point: Path, options: str) -> None:
    """Mounts it.

    Raises:
        InputError: options that the filesystem refuses.
    """
    arguments = ["mount", "-t", name, *(["-o", options] if options else []), str(device), str(mount_point)]
    try:
        command.run(arguments, package="mount", where=f"filesystem {name}")
    except command.CommandFailed as error:
        raise InputError(error.what, where=error.where, remedy="see mount_options (dmesg says more)") from error


def _split(options: str) -> list[str]:
    try:
        return shlex.split(options)
    except ValueError as error:
        raise InputError(f"cannot read {options!r}: {error}", where="mkfs_options") from error
