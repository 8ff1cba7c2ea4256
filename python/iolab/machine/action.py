"""What iolab may have to take back, each with what it needs to know and how it is undone.

Undoing is idempotent: an action whose change never happened, or is undone already, has nothing to do.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shutil
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from iolab.errors import MachineError
from iolab.machine import block, command, loop, safety, swap, tracefs
from iolab.machine.mounts import mount_at, mounts_below, users_of

MARKER = ".iolab"
"""The file that says iolab made a directory; it holds the directory's token."""

UNMOUNT_PATIENCE_S = 10.0
CGROUP_PATIENCE_S = 10.0
"""A killed process leaves its group when its I/O is done."""
MNT_DETACH = 2
GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO)
"""What a setting's file says when the device, or the scheduler with this tunable, is no longer there."""
_libc = ctypes.CDLL(None, use_errno=True)


class CannotUndo(Exception):
    """One line why; `for_good`: trying again later would not help."""

    def __init__(self, why: str, *, for_good: bool = False) -> None:
        super().__init__(why)
        self.for_good = for_good


@dataclass(frozen=True)
class Outcome:
    """What an undo did, one line."""

    line: str
    unusual: bool = False
    """Worth telling even after a trial that went well."""


@dataclass(frozen=True)
class Action(ABC):
    outlives_reboot: ClassVar[bool] = False
    """Files stay; kernel settings, mounts and loop devices are gone with the kernel that had them."""

    @abstractmethod
    def undo(self) -> Outcome | None:
        """Takes the change back; None when there was nothing to do.

        Raises:
            CannotUndo
        """


@dataclass(frozen=True)
class WriteFile(Action):
    """A kernel setting was written."""

    path: str
    previous: str

    def undo(self) -> Outcome | None:
        path = Path(self.path)
        try:
            if block.shown(path) == self.previous:
                return None
            path.write_text(self.previous)
        except OSError as error:
            if error.errno in GONE:
                return None
            why = f"cannot set {path} back to {self.previous}: {error.strerror}"
            raise CannotUndo(why, for_good=error.errno == errno.EINVAL) from error
        return Outcome(f"set {path} back to {self.previous}")


@dataclass(frozen=True)
class Unmount(Action):
    """A filesystem was mounted."""

    mount_point: str

    def undo(self) -> Outcome | None:
        path = Path(self.mount_point)
        if mount_at(path) is None:
            return None
        deadline = time.monotonic() + UNMOUNT_PATIENCE_S
        while (error := _umount(path, 0)) == errno.EBUSY and time.monotonic() < deadline:
            time.sleep(0.02)
        if error == errno.EBUSY:
            return _unmount_lazily(path)
        if error not in (0, errno.EINVAL):
            raise CannotUndo(f"cannot unmount {path}: {os.strerror(error)}")
        return Outcome(f"unmounted {path}")


@dataclass(frozen=True)
class DetachLoop(Action):
    """A loop device was attached to a file that iolab made. Found by the file: its name is unique, and a kill between
    attaching and writing down the device's name loses nothing."""

    backing_file: str

    def undo(self) -> Outcome | None:
        found = loop.attached_to(Path(self.backing_file))
        for device in found:
            try:
                loop.detach(device)
            except MachineError as error:
                raise CannotUndo(str(error)) from error
        names = ", ".join(str(device.node) for device in found)
        return Outcome(f"detached {names} from {self.backing_file}") if found else None


@dataclass(frozen=True)
class EraseFilesystem(Action):
    """A filesystem with this UUID was made on a device that stays. Left there, it would be taken for somebody's data;
    another one, made since, is somebody's data."""

    path: str
    uuid: str

    def undo(self) -> Outcome | None:
        try:
            if self.uuid not in (found.uuid for found in safety.signatures(Path(self.path))):
                return None
            command.run(["wipefs", "--all", self.path], package="util-linux", where=self.path)
        except MachineError as error:
            raise CannotUndo(str(error)) from error
        return Outcome(f"erased the filesystem that was made on {self.path}")


@dataclass(frozen=True)
class TruncateFile(Action):
    """An existing file was written past its end."""

    path: str
    size_bytes: int
    outlives_reboot: ClassVar[bool] = True

    def undo(self) -> Outcome | None:
        with _refusal(f"truncate {self.path}"), contextlib.suppress(FileNotFoundError):
            if Path(self.path).stat().st_size > self.size_bytes:
                os.truncate(self.path, self.size_bytes)
                return Outcome(f"truncated {self.path} to {self.size_bytes} bytes")
        return None


@dataclass(frozen=True)
class RemoveFile(Action):
    """A file was made where there was none."""

    path: str
    outlives_reboot: ClassVar[bool] = True

    def undo(self) -> Outcome | None:
        with _refusal(f"remove {self.path}"), contextlib.suppress(FileNotFoundError):
            Path(self.path).unlink()
            return Outcome(f"removed {self.path}")
        return None


@dataclass(frozen=True)
class RemoveTree(Action):
    """A directory was made. Removed with what is in it only when its marker carries the token, nothing is mounted
    inside and no loop device uses a file inside."""

    path: str
    token: str
    outlives_reboot: ClassVar[bool] = True

    def undo(self) -> Outcome | None:
        path = Path(self.path)
        try:
            if not path.is_dir():
                return None
            self._check_unused(path)
            if not (path / MARKER).exists():
                path.rmdir()  # killed before the marker was written: the directory is empty, or it isn't ours
            elif (path / MARKER).read_text().strip() == self.token:
                _remove_marker_last(path)
            else:
                raise CannotUndo(f"{path} has another marker and is left alone", for_good=True)
        except OSError as error:
            raise CannotUndo(f"cannot remove {path}: {error.strerror}") from error
        return Outcome(f"removed {path}")

    def _check_unused(self, path: Path) -> None:
        inside = mounts_below(path.resolve())
        if inside:
            raise CannotUndo(f"cannot remove {path}: {inside[-1].mount_point} is still mounted")
        for device in loop.attached():
            if device.backing_file.startswith(f"{path}/") and not device.detaches_on_last_close:
                raise CannotUndo(f"cannot remove {path}: {device.node} still uses {device.backing_file}")


@dataclass(frozen=True)
class RemoveCgroup(Action):
    """A control group was made, for processes of iolab's own: what is still in it is killed. Idempotent, since the
    group's name is unique."""

    path: str

    def undo(self) -> Outcome | None:
        path = Path(self.path)
        killed: set[int] = set()
        deadline = time.monotonic() + CGROUP_PATIENCE_S
        while path.is_dir():
            for pid in _processes_in(path):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
            try:
                path.rmdir()
            except FileNotFoundError:
                break
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise CannotUndo(f"cannot remove the control group {path}: {error.strerror}") from error
                time.sleep(0.02)
            else:
                return Outcome(f"removed the control group {path}" + (f", killed {len(killed)}" if killed else ""))
        return None


@dataclass(frozen=True)
class DisableController(Action):
    """A controller was enabled for the groups below one of version 2."""

    subtree_control: str
    controller: str

    def undo(self) -> Outcome | None:
        file = Path(self.subtree_control)
        with _refusal(f"disable {self.controller} in {file}"), contextlib.suppress(FileNotFoundError):
            if self.controller in file.read_text().split():
                file.write_text(f"-{self.controller}")
                return Outcome(f"disabled {self.controller} in {file}")
        return None


@dataclass(frozen=True)
class SwapOff(Action):
    """Swap was put on what iolab made. Found by the path, as /proc/swaps shows it."""

    path: str

    def undo(self) -> Outcome | None:
        if not swap.is_on(Path(self.path)):
            return None
        error = swap.off(Path(self.path))
        if error:
            raise CannotUndo(f"cannot take swap off {self.path}: {os.strerror(error)}")
        return Outcome(f"took swap off {self.path}")


@dataclass(frozen=True)
class RemoveTraceInstance(Action):
    """A tracing instance was made, under a name that is nobody else's. Idempotent by that name."""

    name: str

    def undo(self) -> Outcome | None:
        for instance in tracefs.instances(self.name):
            try:
                if tracefs.remove(instance):
                    return Outcome(f"removed the tracing instance {instance}")
            except OSError as error:
                raise CannotUndo(f"cannot remove the tracing instance {instance}: {error.strerror}") from error
        return None


KINDS: dict[str, type[Action]] = {
    kind.__name__: kind
    for kind in (
        EraseFilesystem,
        WriteFile,
        Unmount,
        DetachLoop,
        TruncateFile,
        RemoveFile,
        RemoveTree,
        RemoveCgroup,
        DisableController,
        SwapOff,
        RemoveTraceInstance,
    )
}


def to_json(action: Action) -> dict[str, Any]:
    return {"action": type(action).__name__, **asdict(action)}


def from_json(entry: dict[str, Any]) -> Action:
    """Raises CannotUndo for an entry that this version does not know."""
    fields = dict(entry)
    kind = KINDS.get(fields.pop("action", ""))
    try:
        if kind is not None:
            return kind(**fields)
    except TypeError:
        pass
    raise CannotUndo(f"unknown undo entry: {json.dumps(entry)}")


@contextlib.contextmanager
def _refusal(to_do: str) -> Iterator[None]:
    """The kernel's refusal inside as one line."""
    try:
        yield
    except OSError as error:
        raise CannotUndo(f"cannot {to_do}: {error.strerror}") from error


def _remove_marker_last(path: Path) -> None:
    """A kill half-way must leave a directory that still says whose it is."""
    for entry in path.iterdir():
        if entry.name == MARKER:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    (path / MARKER).unlink()
    path.rmdir()


def _processes_in(cgroup: Path) -> list[int]:
    try:
        return [int(line) for line in (cgroup / "cgroup.procs").read_text().splitlines()]
    except OSError:
        return []


def _umount(path: Path, flags: int) -> int:
    """errno, 0 for success."""
    return 0 if _libc.umount2(os.fsencode(path), flags) == 0 else ctypes.get_errno()


def _unmount_lazily(path: Path) -> Outcome:
    users = ", ".join(users_of(path)) or "unknown"
    error = _umount(path, MNT_DETACH)
    if error:
        raise CannotUndo(f"cannot unmount {path}: {os.strerror(error)}; used by {users}")
    return Outcome(f"unmounted {path} lazily: it was in use by {users}; it is gone when they are", unusual=True)
