"""The one way into directories that somebody else may change: of runs, searches, collections, outputs.

Each name is opened from the descriptor of the directory before it. Below such a directory no symbolic link is followed;
on the way to it those of root and of this user are, and by others than root all to read. What is new has a name that
nobody can guess until it is whole, and is then renamed by descriptor. tests/test_beneath.py fails where code opens such
a path in another way.

Names never hold `..`. The engine does the same with openat2(2): crates/measure/engine/src/beneath.rs.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from iolab.base import replaceable
from iolab.base.errors import InputError

STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Into a directory that may be entered, and need not be readable."""
LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Whatever there is, opening it follows no link, waits for nobody and becomes nobody's terminal."""
NAME_BYTES_MAX = 200
"""The length of a name from which others are made: 255 is the filesystems' limit."""
DEPTH_MAX = 200
"""The number of directories within one another in what is removed."""
TEMPORARY = ".tmp"
RANDOM_BYTES = 8
_RANDOM = re.compile(rf"[0-9a-f]{{{2 * RANDOM_BYTES}}}{re.escape(TEMPORARY)}")


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A directory's descriptor; each directory on its absolute path is entered from the one before. Raises OSError:
    ENOTDIR also for a symbolic link."""
    fd = os.open("/", STEP)
    try:
        for part in path.parts[1:]:
            fd = _stepped(fd, part)
        yield fd
    finally:
        os.close(fd)


@contextmanager
def entered(path: Path, within: Path | None = None, *, reading: bool = False) -> Iterator[tuple[int, str]]:
    """The directory that a path's last name lies in, and that name. From `within` on, by default that directory, no
    link is followed.

    Raises:
        OSError: ENOTDIR also for a link.
        InputError: a link on the way to `within` that another user made.
    """
    base = path.parent if within is None else within
    with followed(base, reading=reading) as root:
        fd = os.dup(root)
        try:
            for part in path.parent.relative_to(base).parts:
                fd = _stepped(fd, part)
            yield fd, path.name
        finally:
            os.close(fd)


@contextmanager
def followed(path: Path, *, reading: bool = False) -> Iterator[int]:
    """A directory that a user named: links on the way are followed if root or this user made them, and by others than
    root to read.

    Raises:
        OSError: as open(2).
        InputError: another user made one of the links.
    """
    if reading and os.geteuid() != replaceable.ROOT:
        fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)
        return
    with _last(path / "x", link_too=False) as (fd, _):
        yield fd


@contextmanager
def named(path: Path) -> Iterator[tuple[int, str]]:
    """The directory and the name that a path leads to in the end; there may be nothing. Raises as `followed`."""
    with _last(path, link_too=True) as found:
        yield found


def open_file(path: Path, flags: int, within: Path | None = None, mode: int = 0o666) -> int:
    """A regular file's descriptor.

    Raises:
        OSError: as open(2).
        InputError: a link, or no regular file.
    """
    try:
        with entered(path, within, reading=flags == os.O_RDONLY) as (parent, name):
            fd = os.open(name, flags | SAFELY, mode, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and (link := _link_on(path, within)) is not None:
            raise _not_its_own("is a symbolic link", link) from None
        if error.errno in (errno.ENXIO, errno.EISDIR):
            raise _not_its_own("is not a regular file", path) from None
        raise
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise _not_its_own("is not a regular file", path)


def refuse_link(path: Path, within: Path | None = None) -> None:
    """InputError if the path, from `within` on, is or passes a link: it is the run's own file that is expected."""
    if (link := _link_on(path, within)) is not None:
        raise _not_its_own("is a symbolic link", link)


def is_file(path: Path, within: Path | None = None) -> bool:
    """Whether there is a regular file, reached without a link."""
    try:
        with entered(path, within, reading=True) as (parent, name):
            return stat.S_ISREG(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except (OSError, ValueError, InputError):
        return False


def make_directory(path: Path, within: Path | None = None, *, exist_ok: bool = False) -> None:
    """Raises OSError: EEXIST for whatever has the name, but for a directory that may be there."""
    with entered(path, within) as (parent, name):
        try:
            os.mkdir(name, dir_fd=parent)
        except FileExistsError:
            if not exist_ok or not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                raise


def make_directories(path: Path) -> None:
    """And those above it that are missing. Raises as `followed`."""
    if not path.is_dir():
        make_directories(path.parent)
        make_directory(path, exist_ok=True)


def make_link(path: Path, target: Path, within: Path | None = None) -> None:
    """A symbolic link. Raises OSError: EEXIST for whatever has the name."""
    with entered(path, within) as (parent, name):
        os.symlink(target, name, dir_fd=parent)


def move(path: Path, name: str, within: Path | None = None) -> None:
    """Gives a file or directory another name in its directory. Raises OSError."""
    with entered(path, within) as (parent, old):
        os.rename(old, name, src_dir_fd=parent, dst_dir_fd=parent)


def remove_file(path: Path) -> None:
    """Nothing if it is gone. Raises OSError."""
    with entered(path) as (parent, name), suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)


def remove_if_empty(path: Path) -> None:
    """A directory. Raises OSError."""
    with entered(path) as (parent, name):
        os.rmdir(name, dir_fd=parent)


def empty_directory(path: Path) -> None:
    """Removes all that is in it, as `remove_tree`; its mode and owner stay. Raises OSError."""
    with entered(path / "x") as (directory, _):
        listed = os.open(".", LISTED, dir_fd=directory)
        try:
            for name in names_in(listed):
                remove_tree(name, listed)
        finally:
            os.close(listed)


def remove_directory(path: Path, within: Path | None = None) -> None:
    """With all in it, as `remove_tree`; nothing if it is gone. Raises OSError."""
    with entered(path, within) as (parent, name), suppress(FileNotFoundError):
        remove_tree(name, parent)


def temporary_name(name: str) -> str:
    """Beside `name`, hidden, with a random part."""
    cut = os.fsdecode(os.fsencode(name)[:NAME_BYTES_MAX])
    return f".{cut}.{secrets.token_hex(RANDOM_BYTES)}{TEMPORARY}"


def is_temporary_of(name: str, found: str) -> bool:
    """Whether `temporary_name` gave that."""
    cut = len(temporary_name(name)) - len(TEMPORARY) - 2 * RANDOM_BYTES
    return found.startswith(temporary_name(name)[:cut]) and _RANDOM.fullmatch(found[cut:]) is not None


def names_in(fd: int) -> list[str]:
    """The names in a directory that can be listed."""
    with os.scandir(fd) as entries:
        return [entry.name for entry in entries]


def files_below(directory: int, depth: int = DEPTH_MAX) -> list[str]:
    """The names, as paths from an open directory, of all that is no directory. Raises OSError."""
    listed = os.open(".", LISTED, dir_fd=directory)
    try:
        found = []
        for name in names_in(listed):
            if not stat.S_ISDIR(os.stat(name, dir_fd=listed, follow_symlinks=False).st_mode):
                found.append(name)
            elif depth == 0:
                raise OSError(errno.ELOOP, "directories lie too deep in each other", name)
            else:
                inside = os.open(name, LISTED, dir_fd=listed)
                try:
                    found += [f"{name}/{one}" for one in files_below(inside, depth - 1) or ["."]]
                finally:
                    os.close(inside)
        return found
    finally:
        os.close(listed)


def itself(fd: int) -> str:
    """A path that leads to what is open, whatever its own path leads to."""
    return f"/proc/self/fd/{fd}"


def remove_tree(name: str, parent: int) -> None:
    """Removes what has this name in an open directory, with all in it. Follows no link and enters no other filesystem.

    Raises:
        OSError: EXDEV if something is mounted inside; that and what is around it stays.
    """
    _remove(name, parent, _mount_of(parent), DEPTH_MAX)


def _remove(name: str, parent: int, mount: str, depth: int) -> None:
    if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=parent)
        return
    if depth == 0:
        raise OSError(errno.ELOOP, "directories lie too deep in each other", name)
    fd = os.open(name, LISTED, dir_fd=parent)
    try:
        if _mount_of(fd) != mount:
            raise OSError(errno.EXDEV, "a filesystem is mounted there", name)
        for inside in names_in(fd):
            _remove(inside, fd, mount, depth - 1)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=parent)


def mounted_in(directory: int) -> str | None:
    """The path of a filesystem that is mounted below, as far as it is seen here."""
    place = str(Path(itself(directory)).readlink())
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = _unescaped(line.split()[4])
        if point.startswith(f"{place}/"):
            return point.removeprefix(f"{place}/")
    return None


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)


def _mount_of(fd: int) -> str:
    """By number: a bind mount of the same filesystem is another mount."""
    text = Path(f"/proc/self/fdinfo/{fd}").read_text()
    return next(line for line in text.splitlines() if line.startswith("mnt_id"))


def _stepped(fd: int, part: str) -> int:
    """The directory inside, instead of the one that was open."""
    below = os.open(part, STEP, dir_fd=fd)
    os.close(fd)
    return below


@contextmanager
def _last(path: Path, *, link_too: bool) -> Iterator[tuple[int, str]]:
    """The directory that the last name lies in, and that name, after the links on the way; `link_too`: and after those
    that the last name is."""
    pending = list(reversed(path.absolute().parts[1:]))
    fd = os.open("/", STEP)
    links = 0
    try:
        while pending:
            part = pending.pop()
            if not pending and not link_too:
                break
            if (target := _target(part, fd, path)) is not None:
                links += 1
                if links > replaceable.LINKS_MAX:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
                if target.startswith("/"):
                    os.close(fd)
                    fd = os.open("/", STEP)
                pending.extend(reversed([name for name in target.split("/") if name not in ("", ".")]))
            elif pending:
                fd = _stepped(fd, part)
            else:
                break
        else:
            part = "."
        yield fd, part
    finally:
        os.close(fd)


def _target(part: str, parent: int, path: Path) -> str | None:
    """The target of a link; None: it is no link. InputError: another user made it, or it does not exist any more."""
    try:
        fd = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(fd)
        if not stat.S_ISLNK(status.st_mode):
            return None
        if status.st_uid not in replaceable.trusted_users():
            raise InputError(
                f"is reached through a link that another user made, {part}",
                where=str(path),
                remedy="name the place itself",
            )
        return os.readlink("", dir_fd=fd)
    finally:
        os.close(fd)


def _link_on(path: Path, within: Path | None) -> Path | None:
    """For the error's line alone."""
    base = path.parent if within is None else within
    at = base
    for part in path.relative_to(base).parts:
        at = at / part
        with suppress(OSError):
            if at.is_symlink():
                return at
    return None


def _not_its_own(what: str, path: Path) -> InputError:
    return InputError(f"{what}; expected a file of the run's own", where=str(path), remedy="put a copy in its place")
