"""Directories that were checked, and what lies below them, reached by descriptor (iolab.base.beneath)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Self

from iolab.base.beneath import LISTED, STEP, itself, names_in, opened
from iolab.base.errors import InputError, MachineError

if TYPE_CHECKING:
    from iolab.domain import native_types as native

__all__ = ["LISTED", "STEP", "Directory", "held", "itself", "names_in", "opened", "replaced"]


@dataclass(frozen=True)
class Directory:
    """One that was checked. Another that is later under the same path is refused."""

    path: Path
    """Absolute, without symbolic links."""
    device: int
    inode: int

    @classmethod
    def of(cls, path: Path, fd: int) -> Self:
        """The open directory `fd`, known from now on by its device and inode numbers."""
        status = os.fstat(fd)
        return cls(path, status.st_dev, status.st_ino)

    @classmethod
    def at(cls, path: Path) -> Self:
        """What the path leads to now. Raises OSError."""
        with opened(path) as fd:
            return cls.of(path, fd)

    @contextmanager
    def opened(self) -> Iterator[int]:
        """Its descriptor, which can be listed.

        Raises:
            InputError: another is there now.
            MachineError: it can't be opened.
        """
        try:
            fd = os.open(self.path, LISTED)
        except NotADirectoryError as error:  # also a symbolic link
            raise replaced(self.path, "file") from error
        except OSError as error:
            raise MachineError(f"cannot open iolab's directory: {error.strerror}", where=str(self.path)) from error
        try:
            if Directory.of(self.path, fd) != self:
                raise replaced(self.path, "directory")
            yield fd
        finally:
            os.close(fd)

    def make_parents(self, name: PurePosixPath) -> None:
        """The directories that a file of this relative name lies in, below this one. Raises OSError and as `opened`."""
        with self.opened() as root, ExitStack() as stack:
            at = root
            for part in name.parent.parts:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=at)
                at = os.open(part, STEP, dir_fd=at)
                stack.callback(os.close, at)

    @classmethod
    def from_json(cls, given: native.Directory) -> Self:
        """The directory that `as_json` described. KeyError for what it never gave."""
        return cls(Path(given["path"]), given["identity"]["device"], given["identity"]["inode"])

    def as_json(self) -> native.Directory:
        """As the engine takes it (crates/measure/workload/src/location.rs)."""
        return {"path": str(self.path), "identity": {"device": self.device, "inode": self.inode}}


def held(files: Sequence[native.FileSpec], stack: ExitStack) -> tuple[list[str], list[int]]:
    """How another program receives the files of a placed phase (crates/measure/workload/src/phase.rs) whose names may
    lead elsewhere meanwhile: paths that begin with a descriptor, and the descriptors to pass on, which the stack holds.

    Raises:
        InputError: something else is there now than what iolab made or checked.
        MachineError: the kernel refuses.
    """
    fds: dict[str, int] = {}

    def name(file: native.FileSpec) -> str:
        path = file["path"]
        if (beneath := file.get("beneath")) is not None:
            directory = Directory.from_json(beneath)
            root = str(directory.path)
            if root not in fds:
                fds[root] = stack.enter_context(directory.opened())
            return f"{itself(fds[root])}/{Path(path).relative_to(root)}"
        if (identity := file.get("identity")) is None:
            return str(path)
        if path not in fds:
            fds[path] = _known(Path(path), identity)
            stack.callback(os.close, fds[path])
        return itself(fds[path])

    return [name(file) for file in files], list(fds.values())


def replaced(path: Path, kind: str) -> InputError:
    """The error for a file or directory that is no longer the one it was. Raised by the caller."""
    return InputError(
        f"another {kind} is there now than the one that iolab made or checked",
        where=str(path),
        remedy="choose a place where no other user can put something in its way",
    )


def _known(path: Path, identity: native.Identity) -> int:
    try:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise MachineError(f"cannot open it: {error.strerror}", where=str(path)) from error
    status = os.fstat(fd)
    if {"device": status.st_dev, "inode": status.st_ino} != identity:
        os.close(fd)
        raise replaced(path, "file")
    return fd
