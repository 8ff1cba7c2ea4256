"""Paths that an undo may change: those that iolab names, and those where the kernel shows what can be changed.

What has another name than iolab gives was made by somebody else. A file that is missing in /sys, /proc or a control
group means that what it belonged to is gone; but in a mount namespace or chroot where the whole tree is missing, it
means nothing: what was changed is still changed.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from iolab.machines.system.action.base import CannotUndo
from iolab.machines.system.mounts import mount_of
from iolab.machines.system.state import nearest_existing

OWN_DIRECTORY = re.compile(r"iolab-[0-9a-f]{16}")
"""See `iolab.machines.system.own_directory`."""
CGROUP = re.compile(r"iolab-.+-[0-9a-f]{8}")
"""See `iolab.machines.system.cgroup`."""
TRACE_INSTANCE = re.compile(r"iolab-[\w-]+")
"""See `iolab.machines.host.probe_readers`."""


def is_in_own_directory(path: str, name: str) -> bool:
    """Whether the path is that of the entry `name` in a directory of iolab's own."""
    pure = PurePosixPath(path)
    return (
        pure.is_absolute()
        and ".." not in pure.parts
        and pure.name == name
        and OWN_DIRECTORY.fullmatch(pure.parent.name) is not None
    )


def is_device_node(path: str) -> bool:
    """Whether the path lies in /dev, by its name alone."""
    pure = PurePosixPath(path)
    return pure.is_relative_to("/dev") and ".." not in pure.parts


FILESYSTEMS = {
    Path("/sys/fs/cgroup"): frozenset({"cgroup", "cgroup2"}),
    Path("/sys"): frozenset({"sysfs"}),
    Path("/proc"): frozenset({"proc"}),
}
OF_THE_KERNEL = frozenset({"sysfs", "proc", "cgroup", "cgroup2"})


def is_kernels(path: Path) -> bool:
    """Whether the path, or where it would be, lies on a filesystem by which the kernel shows its settings."""
    mount = mount_of(nearest_existing(path))
    return mount is not None and mount.filesystem in OF_THE_KERNEL


def missing_tree(path: Path) -> Path | None:
    """The tree that the path belongs to, if it is not mounted here."""
    for root, filesystems in FILESYSTEMS.items():
        if path.is_relative_to(root):
            mount = mount_of(nearest_existing(path))
            return root if mount is None or mount.filesystem not in filesystems else None
    return None


def require_mounted(path: Path) -> None:
    """Raises CannotUndo if nothing shows what the path belongs to."""
    root = missing_tree(path)
    if root is not None:
        raise CannotUndo(
            f"cannot determine whether {path} is as it was: its filesystem is not mounted here; after mounting it: "
            "iolab restore"
        )
