"""Control groups, version 1 and 2: where they are mounted, making one, putting a process into it.

Sources: the kernel's Documentation/admin-guide/cgroup-v1/cgroups.rst and cgroup-v2.rst. Version 1 mounts a hierarchy
per controller; a new group is made below this process's own, so that limits on iolab hold for it too. Version 2 allows
no group both processes and controlled groups below it, except the root: there root makes a new group. Other users make
it below the group that was delegated to them ("Delegation"), whose processes are moved to one beside it first.
"""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from iolab.base.errors import MachineError
from iolab.machines.system import command, rights
from iolab.machines.system.action import DisableController, LeaveCgroup, RemoveCgroup
from iolab.machines.system.action.cgroup import move, processes_in
from iolab.machines.system.mounts import mounts
from iolab.machines.system.undo import UndoJournal

OWN_GROUPS = Path("/proc/self/cgroup")
PREFIX = "iolab-"
IN_A_SCOPE = "systemd-run --user --scope -p Delegate=yes iolab run ..."
PATIENCE_S = 10.0
"""For processes that start others while they are moved."""


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
            return Hierarchy(2, v2, root, _below(root))
    return None


def version_2() -> Hierarchy | None:
    """The hierarchy of version 2, whatever controllers it has; None if none is mounted."""
    roots = [Path(mount.mount_point) for mount in mounts() if mount.filesystem == "cgroup2"]
    return Hierarchy(2, "", roots[0], _below(roots[0])) if roots else None


def _below(root: Path) -> Path:
    """Where groups of version 2 are made: root at the top, others in the group where they are, if not in the one that
    another iolab moved them to."""
    if os.geteuid() == 0:
        return root
    own = root / _own_group("").lstrip("/")
    return own.parent if own.name.startswith(PREFIX) else own


def require(hierarchy: Hierarchy) -> None:
    """That this process may make groups there, with the controller.

    Raises:
        MachineError: it may not; names what would allow it.
    """
    parent, controller = hierarchy.parent, hierarchy.controller
    if os.geteuid() == 0 or parent.name.startswith(PREFIX):
        return
    files = (parent, parent / "cgroup.procs", parent / "cgroup.subtree_control")
    if hierarchy.version == 1 or not all(os.access(file, os.W_OK) for file in files) or _is_systemds(parent):
        raise MachineError(
            "control groups need root, or in version 2 a group that is delegated to this user",
            where=str(parent),
            remedy=f"{rights.AS_ROOT}; or start it in one: {IN_A_SCOPE}",
        )
    if controller and controller not in _words(parent / "cgroup.controllers"):
        raise MachineError(
            f"this user has no controller {controller}, as it is not delegated",
            where=str(parent / "cgroup.controllers"),
            remedy=_delegation_of(hierarchy),
        )


@cache
def _is_systemds(group: Path) -> bool:
    """Whether the user's own systemd has not given the group away, and so may take its controllers."""
    if _users_manager(group) is None:
        return False
    asked = ["systemctl", "--user", "show", "--value", "--property=Delegate", "--", group.name]
    reached = {"XDG_RUNTIME_DIR": f"/run/user/{os.geteuid()}"}
    try:
        return command.run(asked, package="systemd", where=str(group), variables=reached, limit_s=10).strip() == "no"
    except MachineError:  # it does not answer: the kernel lets this user write there
        return False


def _users_manager(group: Path) -> Path | None:
    """The group of this user's own systemd, if the group lies in it."""
    return next((one for one in group.parents if one.name == f"user@{os.geteuid()}.service"), None)


def _delegation_of(hierarchy: Hierarchy) -> str:
    """What delegates the controller."""
    manager = _users_manager(hierarchy.parent)
    if manager is None:
        return f"have it delegated (systemd: Delegate={hierarchy.controller} of the unit), or {rights.AS_ROOT}"
    has = _words(manager / "cgroup.controllers")
    if hierarchy.controller in has:
        return f"start it in a group of its own: {IN_A_SCOPE}"
    wanted = " ".join(sorted({*has, "cpu", "io", "memory", "pids"}))
    return (
        f"as root, write the lines [Service] and Delegate={wanted} to /etc/systemd/system/user@.service.d/delegate.conf"
        f", and: systemctl daemon-reload; systemctl restart {manager.name}, which ends what the user runs"
    )


def make(hierarchy: Hierarchy, name: str, undo: UndoJournal) -> Cgroup:
    """A new, empty group; journaled before it is made.

    Raises:
        MachineError: no permission, or the controller cannot be enabled.
    """
    require(hierarchy)
    if hierarchy.version == 2:
        enable(hierarchy, undo)
    return Cgroup(_make(RemoveCgroup, hierarchy.parent, name, undo), hierarchy.version)


def _make(undone_by: type[RemoveCgroup], parent: Path, name: str, undo: UndoJournal) -> Path:
    path = parent / f"{PREFIX}{name}-{secrets.token_hex(4)}"
    undo.before(undone_by(str(path)))
    try:
        path.mkdir()
    except OSError as error:
        what = f"cannot make a control group: {error.strerror}"
        raise MachineError(what, where=str(path), remedy=_remedy(error)) from error
    return path


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
    hierarchy = version_2()
    assert hierarchy is not None, "the group is in it"
    return hierarchy.root / _own_group("").lstrip("/")


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
        if hierarchy.parent != hierarchy.root:
            _vacate(hierarchy.parent, undo)
        undo.before(DisableController(str(file), controller))
        _write(file, f"+{controller}")


def _vacate(group: Path, undo: UndoJournal) -> None:
    """Moves what runs in the group to one below it."""
    if not processes_in(group):
        return
    beside = _make(LeaveCgroup, group, "beside", undo)
    until = time.monotonic() + PATIENCE_S
    while pids := processes_in(group):
        for pid in pids:
            try:
                move(pid, beside)
            except ProcessLookupError:
                continue
            except OSError as error:
                what = f"cannot move process {pid} out of the group: {error.strerror}"
                raise MachineError(what, where=str(group), remedy=f"start iolab in its own: {IN_A_SCOPE}") from error
        if time.monotonic() > until:
            raise MachineError(f"still has processes after {PATIENCE_S:g} s", where=str(group))


def _own_group(v1: str) -> str:
    """This process's group in the version 1 hierarchy of a controller, or, of none, in that of version 2."""
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
