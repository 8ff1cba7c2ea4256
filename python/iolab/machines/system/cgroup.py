"""Control groups, version 1 and 2: where they are mounted, making one, putting a process into it.

Sources: the kernel's Documentation/admin-guide/cgroup-v1/cgroups.rst and cgroup-v2.rst. Version 1 mounts a hierarchy
per controller; a new group is made below this process's own, so that limits on iolab hold for it too. Version 2 allows
no group both processes and controlled groups below it, except the root: there a new group is made.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from iolab.base.errors import MachineError
from iolab.machines.system import rights
from iolab.machines.system.action import DisableController, RemoveCgroup
from iolab.machines.system.mounts import mounts
from iolab.machines.system.undo import UndoJournal

OWN_GROUPS = Path("/proc/self/cgroup")
PREFIX = "iolab-"


@dataclass(frozen=True)
class Hierarchy:
    """One mounted hierarchy that has a controller."""

    version: Literal[1, 2]
    controller: str
    """As this version calls it."""
    root: Path
    parent: Path
    """Below which new groups are made."""


@dataclass(frozen=True)
class Cgroup:
    """A control group of iolab's own making."""

    path: Path
    version: Literal[1, 2]

    def add(self, pid: int) -> None:
        """Moves a process with all its threads."""
        _write(self.path / "cgroup.procs", str(pid))

    def set(self, file: str, value: str) -> None:
        """Writes one of the group's settings. They go with the group, so there is nothing to undo.

        Raises:
            MachineError: there is no such file, or the kernel refuses the value.
        """
        _write(self.path / file, value)

    def get(self, file: str) -> str | None:
        """One of the group's files, None if this kernel has no such file."""
        try:
            return (self.path / file).read_text().strip()
        except FileNotFoundError:
            return None

    @property
    def owns_buffered_writes(self) -> bool:
        """Whether what its processes write through the page cache counts as its I/O (cgroup-v2.rst, "Writeback")."""
        return self.version == 2 and self.has("memory.current") and self.has("io.stat")

    def has(self, file: str) -> bool:
        """Whether the group has a settings file of this name."""
        return (self.path / file).exists()


def find(v1: str, v2: str) -> Hierarchy | None:
    """The hierarchy of a controller, by its name in each version; None if no mounted hierarchy has it."""
    for mount in mounts():
        root = Path(mount.mount_point)
        if mount.filesystem == "cgroup" and v1 in mount.options.split(","):
            own = _own_group(v1).lstrip("/")
            parent = root / own
            return Hierarchy(1, v1, root, parent if parent.is_dir() else root)
        if mount.filesystem == "cgroup2" and v2 in _words(root / "cgroup.controllers"):
            return Hierarchy(2, v2, root, root)
    return None


def version_2() -> Hierarchy | None:
    """The hierarchy of version 2, whatever controllers it has; None if none is mounted."""
    roots = [Path(mount.mount_point) for mount in mounts() if mount.filesystem == "cgroup2"]
    return Hierarchy(2, "", roots[0], roots[0]) if roots else None


def make(hierarchy: Hierarchy, name: str, undo: UndoJournal) -> Cgroup:
    """A new, empty group; journaled before it is made.

    Raises:
        MachineError: no permission, or the controller cannot be enabled.
    """
    if os.geteuid() != 0:
        raise MachineError("control groups need root", where=str(hierarchy.parent), remedy=rights.AS_ROOT)
    if hierarchy.version == 2:
        enable(hierarchy, undo)
    path = hierarchy.parent / f"{PREFIX}{name}-{secrets.token_hex(4)}"
    undo.before(RemoveCgroup(str(path)))
    try:
        path.mkdir()
    except OSError as error:
        what = f"cannot make a control group: {error.strerror}"
        raise MachineError(what, where=str(path), remedy=_remedy(error)) from error
    return Cgroup(path, hierarchy.version)


def enable(hierarchy: Hierarchy, undo: UndoJournal) -> None:
    """The controller, for groups of version 2 that are there already. MachineError as `make`."""
    _enable(hierarchy, hierarchy.controller, undo)
    if hierarchy.controller == "io":
        # Buffered writes are counted to a group only if one group has both.
        _enable(hierarchy, "memory", undo)


@contextmanager
def joined(groups: Iterable[Cgroup]) -> Iterator[None]:
    """This process and what it starts in the groups, of different hierarchies; after that this process where it was.

    Raises:
        MachineError: the kernel refuses.
    """
    with ExitStack() as back:
        for group in groups:
            home = _home(group)
            group.add(os.getpid())
            back.callback(_write, home / "cgroup.procs", str(os.getpid()))
        yield


def _home(group: Cgroup) -> Path:
    """The group in the same hierarchy that this process is in now."""
    if group.version == 1:
        return group.path.parent
    own = next((line.split(":", 2)[2] for line in _lines(OWN_GROUPS) if line.startswith("0::")), "/")
    return group.path.parent / own.lstrip("/")


def missing(what: str, v1: str, v2: str) -> MachineError:
    """Why there is no hierarchy with this controller, and what gets it."""
    if not Path("/proc/cgroups").exists():
        return MachineError(f"{what}: this kernel has no control groups", remedy="build it with CONFIG_CGROUPS=y")
    known = {line.split()[0]: line.split()[3] for line in _lines(Path("/proc/cgroups")) if not line.startswith("#")}
    if v1 not in known:
        return MachineError(f"{what}: this kernel has no controller {v1}", where="/proc/cgroups")
    if known[v1] == "0":
        remedy = f"boot without cgroup_disable={v1}"
        return MachineError(f"{what}: the controller {v1} is disabled", where="/proc/cgroups", remedy=remedy)
    return MachineError(
        f"{what}: no mounted control group hierarchy has the controller {v2}",
        where=str(OWN_GROUPS),
        remedy="mount one: sudo mount -t cgroup2 none /sys/fs/cgroup",
    )


def _enable(hierarchy: Hierarchy, controller: str, undo: UndoJournal) -> None:
    """For the groups below the parent, if the hierarchy has the controller."""
    file = hierarchy.parent / "cgroup.subtree_control"
    if controller in _words(hierarchy.parent / "cgroup.controllers") and controller not in _words(file):
        undo.before(DisableController(str(file), controller))
        _write(file, f"+{controller}")


def _own_group(v1: str) -> str:
    """This process's group in the version 1 hierarchy of a controller."""
    for line in _lines(OWN_GROUPS):
        _, controllers, path = line.split(":", 2)
        if v1 in controllers.split(","):
            return path
    return "/"


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text)
    except FileNotFoundError as error:
        raise MachineError("this kernel has no such control group file", where=str(file)) from error
    except OSError as error:
        what = f"the kernel refuses {text}: {error.strerror}"
        raise MachineError(what, where=str(file), remedy=_remedy(error)) from error


def _remedy(error: OSError) -> str | None:
    """A container sees its own group as the top of the hierarchy: read-only (EROFS), or with processes in it, which
    version 2 allows no controllers below (EBUSY; cgroup-v2.rst, "No Internal Process Constraint")."""
    return rights.IN_A_CONTAINER if error.errno in (errno.EROFS, errno.EBUSY) else None


def _words(file: Path) -> list[str]:
    return " ".join(_lines(file)).split()


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
