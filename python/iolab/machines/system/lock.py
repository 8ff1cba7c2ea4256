"""One run per device: an advisory lock for what a run writes to and tunes, the same whatever the state directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from iolab.base.errors import InputError, IolabError, MachineError
from iolab.machines.system import state, trust
from iolab.machines.system.block import device_at
from iolab.machines.system.mounts import users_of
from iolab.machines.system.reach import status_of

if TYPE_CHECKING:
    from iolab.domain.trial import Target


NODE_PATIENCE_S = 1.0
BRIEF_PATIENCE_S = 2.0
"""For who has a lock for a moment, as `iolab restore` has while it looks."""
HEIR_PATIENCE_S = 40.0
MACHINE = ""
"""Among the names of disks: none of them, but the kernel as a whole."""


class Lock:
    """Held while any process has `fds` open: a child that inherits them holds it too."""

    def __init__(self, fds: list[int]) -> None:
        self.fds = fds

    def release(self) -> None:
        """Closes `fds`; the locks are free once no child has them open either. Nothing happens the second time."""
        for fd in self.fds:
            os.close(fd)
        self.fds = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.release()


def of_target(target: Target) -> Lock:
    """Locks the target for one run. A scratch target needs no lock: no other run has its device.

    Raises:
        MachineError: another run holds it, states which process; or no permission to go there.
        InputError: there is no such device, or no directory for the target to be in.
    """
    if target.kind == "scratch":
        return Lock([])
    if target.kind == "device":
        return _of_devices([Path(path) for path in target.paths])
    assert target.kind != "drives", "a simulated machine has nothing to lock here"
    path = Path(target.path)
    name = ""
    status = status_of(path)
    if status is None:
        name = f"-{path.name}"
        status = status_of(path.parent)
    if status is None:
        raise InputError("no such directory", where=str(path.parent), remedy=f"make it: mkdir -p {path.parent}")
    return Lock([_hold(f"inode-{status.st_dev}-{status.st_ino}{name}", str(path))])


def of_slot() -> Lock:
    """Locks this host for the agent that offers it, and for the trials that it runs.

    Raises:
        MachineError: another agent offers it, or a trial of one that was killed does not end.
    """
    try:
        return Lock([_hold("slot", "this host")])
    except MachineError as error:
        raise MachineError(
            error.what.replace("another iolab run is using it", "another iolab offers it already"),
            where=error.where,
            remedy="stop that one first",
        ) from None


def of_queue(disk_name: str) -> Lock:
    """Locks a disk's queue settings for one trial.

    Raises:
        MachineError: another run is changing them.
    """
    return Lock([_hold(f"queue-{disk_name}", f"queue settings of {disk_name}")])


def of_shared(name: str) -> Lock:
    """Locks what `shared_by` names.

    Raises:
        MachineError: another run is changing it.
    """
    return of_machine() if name == MACHINE else of_queue(name)


def shared_by(setting: Path) -> str:
    """What a kernel setting belongs to: a disk's name, or MACHINE."""
    disk = re.search(r"/block/([^/]+)/", str(setting))
    return disk[1] if disk else MACHINE


def of_machine() -> Lock:
    """Locks the settings of the kernel as a whole for one trial.

    Raises:
        MachineError: another run is changing them.
    """
    return Lock([_hold("machine", "settings of the whole machine")])


def _of_devices(paths: list[Path]) -> Lock:
    """Each whole disk once, though several of its partitions are named."""
    by_disk = {device_at(path).disk.number: path for path in paths}
    held = Lock([])
    for _, path in sorted(by_disk.items()):
        try:
            held.fds += _of_device(path).fds
        except IolabError:
            held.release()
            raise
    return held


def _of_device(path: Path) -> Lock:
    """The whole disk's: partitions share its queue. The node is locked as well, which keeps udev from probing it."""
    disk = device_at(path).disk
    fds = [_hold("disk-{}-{}".format(*disk.number), str(path))]
    try:
        node = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return Lock(fds)  # the safety check reports better what is wrong with it
    fds.append(node)
    if not _lock(node, patience_s=NODE_PATIENCE_S, worth_waiting=lambda: True):
        Lock(fds).release()
        raise MachineError("another program has locked the device", where=str(path), remedy=f"see: lsof {path}")
    return Lock(fds)


def _hold(name: str, where: str) -> int:
    path = state.locks_directory() / f"{name}.lock"
    try:
        fd = trust.open_own_file(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise MachineError(f"cannot be locked: {error.strerror}", where=where, remedy=f"repair {path}") from error
    brief_until = time.monotonic() + BRIEF_PATIENCE_S
    if not _lock(
        fd,
        patience_s=HEIR_PATIENCE_S,
        worth_waiting=lambda: time.monotonic() < brief_until or _holder_is_dead(fd),
    ):
        holder = _holder(fd)
        os.close(fd)
        raise MachineError(
            f"another iolab run is using it (process {_named(holder, path)})",
            where=where,
            remedy="wait for it to end, or choose another target",
        )
    with contextlib.suppress(OSError):  # no room for the name: what holds it is known by its open files
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


def _lock(fd: int, *, patience_s: float, worth_waiting: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline or not worth_waiting():
                return False
            time.sleep(0.05)
        else:
            return True


def _holder(fd: int) -> str:
    return os.pread(fd, 32, 0).decode(errors="replace").strip()


def _named(holder: str, path: Path) -> str:
    """Who has a lock: the one that took it, or, once that is dead, who has it from there."""
    if holder.isdecimal() and Path("/proc", holder).exists():
        return holder
    return ", ".join(users_of(path)) or holder or "unknown"


def _holder_is_dead(fd: int) -> bool:
    """A killed run's child inherits its lock and gives it up as soon as it has restored everything."""
    holder = _holder(fd)
    return holder.isdecimal() and not Path("/proc", holder).exists()
