"""Files and directories: they outlive a reboot, and others may put theirs under the same names. What iolab did not make
is left alone."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from iolab.base.beneath import remove_tree
from iolab.machines.system import beneath, loop
from iolab.machines.system.action.base import Action, CannotUndo, Outcome, refusal
from iolab.machines.system.identity import identity_at, identity_of
from iolab.machines.system.mounts import mounts_below

MARKER = ".iolab"
"""The file that marks a directory as made by iolab; it holds the directory's token."""
MARKER_BYTES_MAX = 1024


class _ForeignFile(Exception):
    """In what the thing under the path differs from the one that iolab made, for `... and is left alone`."""


@dataclass(frozen=True)
class TruncateFile(Action):
    """A file that was smaller, mostly empty, was given a size for the trial."""

    path: str
    size_bytes: int
    """Before."""
    identity: str | None = None
    """`iolab.machines.system.identity`; None in journals of iolab 0.1, which identified files by their names only."""
    grown_bytes: int | None = None
    """During the trial: with another size, it holds what somebody else has written."""
    outlives_reboot: ClassVar[bool] = True

    @property
    @override
    def to_do(self) -> str:
        return f"truncate {self.path}"

    @override
    def undo(self) -> Outcome | None:
        with (
            refusal(f"truncate {self.path}"),
            _left_alone(self.path) as left,
            _the_file(self.path, self.identity) as fd,
        ):
            size = os.fstat(fd).st_size
            if size == self.size_bytes:
                return None
            if size != self.grown_bytes:
                raise _ForeignFile(f"holds {size} bytes, not the {self.grown_bytes} that iolab gave it")
            os.truncate(beneath.itself(fd), self.size_bytes)
            return Outcome(f"truncated {self.path} to {self.size_bytes} bytes")
        return left.outcome


@dataclass(frozen=True)
class RemoveFile(Action):
    """An empty file was made if there was none."""

    path: str
    identity: str | None = None
    """As `TruncateFile.identity`."""
    outlives_reboot: ClassVar[bool] = True

    @property
    @override
    def to_do(self) -> str:
        return f"remove {self.path}"

    @override
    def undo(self) -> Outcome | None:
        path = self.path
        with refusal(f"remove {path}"), _left_alone(path) as left, _the_file(path, self.identity) as fd:
            if os.fstat(fd).st_size:
                raise _ForeignFile("holds data that iolab did not write")
            with beneath.opened(Path(path).parent) as parent:
                os.unlink(Path(path).name, dir_fd=parent)
            return Outcome(f"removed {path}")
        return left.outcome


@dataclass(frozen=True)
class RemoveTree(Action):
    """A directory was made. Removed with what is in it only when its marker carries the token, nothing is mounted
    inside and no loop device uses a file inside."""

    path: str
    token: str
    mount_point: str | None = None
    """The mount point of the filesystem that holds the file; None in older journals, and for tmpfs, which goes with its
    last mount."""
    mounted: str | None = None
    """The identity of what is at the mount point: another filesystem has another."""
    outlives_reboot: ClassVar[bool] = True

    @property
    @override
    def to_do(self) -> str:
        return f"remove {self.path}"

    @override
    def undo(self) -> Outcome | None:
        path = Path(self.path)
        with refusal(f"remove {path}"), _left_alone(self.path) as left, _the_directory(path) as (parent, fd):
            self._check_unused(path)
            if MARKER not in beneath.names_in(fd):
                pass  # killed before the marker was written: the directory is empty, or it isn't ours
            elif self._is_marked(fd):
                _empty(fd)
            else:
                raise CannotUndo(f"{path} has another marker and is left alone", for_good=True)
            os.rmdir(path.name, dir_fd=parent)
            return Outcome(f"removed {path}")
        if left.outcome is None:
            self._check_unseen(path)
        return left.outcome

    def _check_unseen(self, path: Path) -> None:
        """Not there, from here: it may be on a filesystem that is mounted in another mount namespace, or nowhere."""
        for device in loop.attached():
            if path.name in Path(device.backing_file).parts:
                raise CannotUndo(
                    f"cannot remove {path}: it is not there, but {device.node} uses {device.backing_file}: it was made "
                    "in another mount namespace"
                )
        if self.mount_point and self.mounted and _identity_at(Path(self.mount_point)) != self.mounted:
            raise CannotUndo(
                f"cannot remove {path}: it is on a filesystem that is not mounted here; mount it at "
                f"{self.mount_point}, then: iolab restore"
            )

    def _is_marked(self, fd: int) -> bool:
        marker = os.open(MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
        try:
            written = os.read(marker, MARKER_BYTES_MAX).decode(errors="replace").strip()
        finally:
            os.close(marker)
        # Killed while the marker was written: nothing else is there.
        return written == self.token or (not written and beneath.names_in(fd) == [MARKER])

    def _check_unused(self, path: Path) -> None:
        inside = mounts_below(path)
        if inside:
            raise CannotUndo(f"cannot remove {path}: {inside[-1].mount_point} is still mounted")
        for device in loop.attached():
            if device.backing_file.startswith(f"{path}/") and not device.detaches_on_last_close:
                raise CannotUndo(f"cannot remove {path}: {device.node} still uses {device.backing_file}")


def _identity_at(path: Path) -> str | None:
    try:
        return identity_at(path)
    except FileNotFoundError:
        return None


@dataclass
class _RemovalOutcome:
    outcome: Outcome | None = None
    """None: there was nothing at all."""


@contextmanager
def _left_alone(path: str) -> Iterator[_RemovalOutcome]:
    """What is not ours, found inside, becomes a line about it; what is not there, none."""
    left = _RemovalOutcome()
    try:
        yield left
    except FileNotFoundError:
        pass
    except _ForeignFile as difference:
        left.outcome = Outcome(f"{path} {difference}, and is left alone", unusual=True)


@contextmanager
def _the_file(path: str, identity: str | None) -> Iterator[int]:
    """A descriptor of what is under the path, which is the very file; reached without following a link."""
    if identity is None:
        Path(path).lstat()
        raise _ForeignFile("was written down by its name only, by an older iolab")
    with _on_the_way(Path(path).parent) as parent:
        fd = os.open(Path(path).name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode) or identity_of(fd) != identity:
                raise _ForeignFile("is not the file that iolab wrote to")
            yield fd
        finally:
            os.close(fd)


@contextmanager
def _the_directory(path: Path) -> Iterator[tuple[int, int]]:
    """Descriptors of its parent and of itself."""
    with _on_the_way(path.parent) as parent:
        try:
            fd = os.open(path.name, beneath.LISTED, dir_fd=parent)
        except NotADirectoryError as error:
            raise _ForeignFile("is not the directory that iolab made") from error
        try:
            yield parent, fd
        finally:
            os.close(fd)


@contextmanager
def _on_the_way(parent: Path) -> Iterator[int]:
    with contextlib.ExitStack() as stack:
        try:
            fd = stack.enter_context(beneath.opened(parent))
        except NotADirectoryError as error:
            raise _ForeignFile("is reached by another way than before: a directory above it was replaced") from error
        yield fd


def _empty(fd: int) -> None:
    """The marker goes last: a kill half-way must leave a directory that still names its owner."""
    for name in beneath.names_in(fd):
        if name == MARKER:
            continue
        remove_tree(name, fd)
    os.unlink(MARKER, dir_fd=fd)
