"""Files that are whole or absent, also after a kill or a power cut; opened by descriptor (`beneath`)."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from iolab.base import beneath
from iolab.base.errors import InputError, MachineError

TEMPORARY_SUFFIX = beneath.TEMPORARY
EXCHANGES_MAX = 100
REMEDY = "make room or repair the permissions, then resume the run"


def write_atomically(path: Path, content: bytes, within: Path | None = None) -> None:
    """Replaces `path`: readers see the old file or the new one; on return the new one survives a power cut. From
    `within` on, by default the file's directory, no link is followed.

    Raises:
        MachineError: the disk refuses.
        InputError: a link of another user's is on the way.
    """
    with refusals_explained(path), beneath.entered(path, within) as (parent, name):
        hidden = beneath.temporary_name(name)
        try:
            _write(hidden, content, parent)
            os.rename(hidden, name, src_dir_fd=parent, dst_dir_fd=parent)
            sync(parent)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(hidden, dir_fd=parent)


def write_all(fd: int, content: bytes) -> None:
    """Every byte: a disk that is filling up takes part of it and reports it by its count alone."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]


@contextmanager
def refusals_explained(path: Path) -> Iterator[None]:
    """Turns the kernel's refusal to write a run's file into the line that states what to do."""
    try:
        yield
    except OSError as error:
        raise MachineError(
            f"can't be written: {error.strerror}",
            where=str(path),
            remedy=REMEDY,
        ) from error


def write_durably(path: Path, content: bytes, within: Path | None = None) -> None:
    """Makes a file that is not read yet, and syncs it. Raises OSError: EEXIST for whatever has the name."""
    with beneath.entered(path, within) as (parent, name):
        _write(name, content, parent)


def write_new(path: Path, content: bytes, within: Path | None = None) -> None:
    """Makes a file that can be made again. Raises as `write_durably`."""
    with beneath.entered(path, within) as (parent, name):
        _write(name, content, parent, synced=False)


def sync_directory(path: Path) -> None:
    """Makes the names in a directory durable: a renamed or removed file stays so after a power cut."""
    with beneath.followed(path) as directory:
        sync(directory)


def sync(directory: int) -> None:
    """The same of an open one."""
    descriptor = os.open(".", beneath.LISTED, dir_fd=directory)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def put_in_place(path: Path, parts: Collection[str], replaced: Callable[[int], None] | None = None) -> Iterator[Path]:
    """A new, empty directory under a hidden name beside `path`, which becomes `path` at the end: whole or not at all.
    What a killed process of this user's left there, with no more in it than `parts`, is removed first.

    Args:
        replaced: looks at the open directory that is there before, and raises if it is not to be replaced; without it
            an empty one is.

    Raises:
        OSError: EEXIST or ENOTEMPTY if something has the name by then.
        InputError: a link of another user's is on the way.
    """
    with beneath.followed(path.parent) as parent:
        _remove_abandoned(path.name, parent, frozenset(parts))
        hidden = beneath.temporary_name(path.name)
        os.mkdir(hidden, 0o777, dir_fd=parent)
        made = os.open(hidden, beneath.LISTED, dir_fd=parent)
        fcntl.flock(made, fcntl.LOCK_SH)
        try:
            yield path.with_name(hidden)
            os.fsync(made)
            with suppress(FileNotFoundError):
                # The mode of the directory that is replaced is the user's choice.
                os.fchmod(made, stat.S_IMODE(os.stat(path.name, dir_fd=parent, follow_symlinks=False).st_mode))
            if not os.path.samestat(os.stat(hidden, dir_fd=parent, follow_symlinks=False), os.fstat(made)):
                raise InputError("another directory took the place of iolab's", where=str(path))
            if replaced is None:
                os.rename(hidden, path.name, src_dir_fd=parent, dst_dir_fd=parent)
            else:
                _exchange(hidden, path.name, parent, replaced)
            sync(parent)
        finally:
            os.close(made)
            with suppress(FileNotFoundError):
                beneath.remove_tree(hidden, parent)


def _exchange(hidden: str, name: str, parent: int, replaced: Callable[[int], None]) -> None:
    """Puts the new directory in the place of the old one, which is first moved aside, where no name leads to it any
    more, and looked at. Another writer may put its own there meanwhile, which is then the old one."""
    for _ in range(EXCHANGES_MAX):
        old = _moved_aside(name, parent, replaced)
        try:
            os.rename(hidden, name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            return
        finally:
            if old is not None:
                beneath.remove_tree(old, parent)
    raise InputError("others write there all the time", where=name, remedy="try again")


def _moved_aside(name: str, parent: int, replaced: Callable[[int], None]) -> str | None:
    """The hidden name that the old directory has now; None: there was none."""
    old = beneath.temporary_name(name)
    try:
        os.rename(name, old, src_dir_fd=parent, dst_dir_fd=parent)
    except FileNotFoundError:
        return None
    try:
        was = os.open(old, beneath.LISTED, dir_fd=parent)
        try:
            replaced(was)
        finally:
            os.close(was)
    except BaseException:
        os.rename(old, name, src_dir_fd=parent, dst_dir_fd=parent)
        raise
    return old


def _remove_abandoned(name: str, parent: int, parts: frozenset[str]) -> None:
    """Those that are not locked."""
    listed = os.open(".", beneath.LISTED, dir_fd=parent)
    try:
        found = [one for one in beneath.names_in(listed) if beneath.is_temporary_of(name, one)]
    finally:
        os.close(listed)
    for one in found:
        with suppress(OSError):
            fd = os.open(one, beneath.LISTED, dir_fd=parent)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(fd).st_uid == os.geteuid() and parts.issuperset(beneath.names_in(fd)):
                    beneath.remove_tree(one, parent)
            finally:
                os.close(fd)


def remove_leftovers(directory: Path, within: Path | None = None) -> None:
    """Removes the temporary files of writers that were killed. Only for the holder of the run's lock."""
    with beneath.entered(directory / "x", within) as (fd, _):
        listed = os.open(".", beneath.LISTED, dir_fd=fd)
        try:
            for name in beneath.names_in(listed):
                if name.startswith(".") and name.endswith(TEMPORARY_SUFFIX):
                    _unlink_file(name, listed)
        finally:
            os.close(listed)


def _unlink_file(name: str, parent: int) -> None:
    """A directory is no writer's."""
    try:
        os.unlink(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in (errno.EISDIR, errno.ENOENT, errno.EPERM):
            raise


def _write(name: str, content: bytes, parent: int, *, synced: bool = True) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | beneath.SAFELY, 0o666, dir_fd=parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        if synced:
            os.fsync(file.fileno())
