"""Where a user has output go, `-o FILE`: a file is replaced whole; a device, a pipe, standard output is written to.

All commands write through here. Directories are entered by descriptor (`beneath`), and no link of another user's is
followed.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal

from iolab.base import beneath
from iolab.base.durable import write_all
from iolab.base.errors import NO_ROOM, InputError, IolabError, MachineError

STDOUT = "-"
Content = Literal["text", "binary", "with places"]
"""Text goes anywhere; binary content to no terminal; what is written at places goes to files only."""
_NO_FILE = "is no name of a regular file"
_REMEDY = "choose another place"
_LINKS_MAX = 40


def write(path: Path, content: bytes, inputs: Sequence[Path] = ()) -> None:
    """Text, as `opened` has it."""
    with opened(path, inputs=inputs) as descriptor, refusals_explained(path):
        write_all(descriptor, content)


@contextmanager
def opened(path: Path, content: Content = "text", inputs: Sequence[Path] = ()) -> Iterator[int]:
    """A descriptor to write on. Readers of a file see the old one or the new one, which is there when the context ends
    without an error; its mode, its owner and this user's links to it stay. What is no file is never replaced.

    Args:
        inputs: files that are read meanwhile, and that it must not be.

    Raises:
        InputError: an input, a directory, a block device, a terminal for what is not text, or a place that can't be
            written.
        MachineError: no room.
        BrokenPipeError: the reader left.
    """
    with refusals_explained(path):
        descriptor = _descriptor_named(path)
        if descriptor is not None:
            _check_open(path, descriptor, content, inputs)
            if descriptor == 1 and sys.stdout is not None:
                sys.stdout.flush()
            yield descriptor
            return
        with beneath.named(path) as (parent, name):
            found = _state(path, parent, name)
            if found is None or stat.S_ISREG(found.st_mode):
                with _file(path, parent, name, found, inputs) as descriptor:
                    yield descriptor
            else:
                with _stream(path, parent, name, found, content, inputs) as descriptor:
                    yield descriptor


@contextmanager
def opened_as_file(path: Path, content: Content = "text", inputs: Sequence[Path] = ()) -> Iterator[BinaryIO]:
    """The same as a file object."""
    with opened(path, content, inputs) as descriptor, os.fdopen(os.dup(descriptor), "wb") as file:
        yield file


@contextmanager
def several(path: Path, inputs: Sequence[Path] = ()) -> Iterator[int]:
    """The descriptor of a new directory. Each file NAME that is in it in the end becomes `path` + NAME, all of them
    whole. Raises as `opened`."""
    with refusals_explained(path), beneath.named(path) as (parent, name):
        hidden = beneath.temporary_name(name)
        os.mkdir(hidden, 0o700, dir_fd=parent)
        try:
            made = os.open(hidden, beneath.LISTED, dir_fd=parent)
            try:
                yield made
                targets = {one: f"{name}{one}" for one in sorted(beneath.names_in(made))}
                for target in targets.values():
                    _check_replaceable(path.with_name(target), parent, target, inputs)
                for one, target in targets.items():
                    os.rename(one, target, src_dir_fd=made, dst_dir_fd=parent)
            finally:
                os.close(made)
        finally:
            beneath.remove_tree(hidden, parent)


def check(path: Path, content: Content = "text") -> None:
    """Whether output could go there, before anything is done for it. Raises as `opened`."""
    with refusals_explained(path):
        if (descriptor := _descriptor_named(path)) is not None:
            _check_open(path, descriptor, content, ())
            return
        with beneath.named(path) as (parent, name):
            found = _state(path, parent, name)
            if found is not None and not stat.S_ISREG(found.st_mode):
                _check_stream(path, found, content)
                return
            hidden = beneath.temporary_name(name)
            os.close(_new(hidden, parent))
            os.unlink(hidden, dir_fd=parent)


def is_stdout(path: Path) -> bool:
    """Whether it goes where the command's own words go."""
    return _descriptor_named(path) == 1


def refused(error: OSError, path: Path) -> IolabError:
    """The kernel's refusal as an error with the path: MachineError if room is lacking, else InputError."""
    kind = MachineError if error.errno in NO_ROOM else InputError
    return kind(f"can't be written: {error.strerror}", where=str(path), remedy=_REMEDY)


@contextmanager
def refusals_explained(path: Path) -> Iterator[None]:
    """Turns the kernel's refusal to write there into the line that reports it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise refused(error, path) from error


def _descriptor_named(path: Path) -> int | None:
    """The descriptor that `-`, /dev/stdout or /dev/fd/3 names. It is open already and is written on from its position:
    a file opened once more by its name would be written from its start."""
    if str(path) == STDOUT:
        return 1
    place = path
    for _ in range(_LINKS_MAX):
        place = place.parent.resolve() / place.name
        if re.fullmatch(rf"/proc/{os.getpid()}(/task/\d+)?/fd", str(place.parent)) and place.name.isdigit():
            return int(place.name)
        if not place.is_symlink():
            return None
        place = place.parent / place.readlink()
    return None


def _state(path: Path, parent: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        if path.is_symlink():
            raise InputError(
                f"is a link to {path.readlink()}, which does not exist", where=str(path), remedy=_REMEDY
            ) from None
        return None


@contextmanager
def _file(path: Path, parent: int, name: str, found: os.stat_result | None, inputs: Sequence[Path]) -> Iterator[int]:
    """Put in place when it is whole."""
    if found is not None:
        _check_no_input(path, found, inputs)
        # A file that can't be written is not replaced either.
        old = os.open(name, os.O_WRONLY | beneath.SAFELY, dir_fd=parent)
        is_same = os.path.samestat(os.fstat(old), found)
        os.close(old)
        if not is_same:
            raise InputError("became another file meanwhile", where=str(path), remedy=_REMEDY)
    hidden = beneath.temporary_name(name)
    descriptor = _new(hidden, parent)
    try:
        try:
            yield descriptor
            if found is not None:
                with suppress(PermissionError):
                    os.fchown(descriptor, found.st_uid, found.st_gid)
            os.fchmod(descriptor, _mode_of_new() if found is None else stat.S_IMODE(found.st_mode))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _check_replaceable(path, parent, name, inputs)
        os.rename(hidden, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(hidden, dir_fd=parent)
        raise


def _new(name: str, parent: int) -> int:
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | beneath.SAFELY, 0o600, dir_fd=parent)


def _mode_of_new() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _check_replaceable(path: Path, parent: int, name: str, inputs: Sequence[Path]) -> None:
    """A regular file, or nothing yet."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode):
        raise InputError("is no regular file", where=str(path), remedy=_REMEDY)
    _check_no_input(path, found, inputs)


def _check_no_input(path: Path, found: os.stat_result, inputs: Sequence[Path]) -> None:
    for one in inputs:
        with suppress(OSError):
            if os.path.samestat(one.stat(), found):
                raise InputError(f"is what is read, {one}", where=str(path), remedy=_REMEDY)


@contextmanager
def _stream(
    path: Path, parent: int, name: str, found: os.stat_result, content: Content, inputs: Sequence[Path]
) -> Iterator[int]:
    _check_stream(path, found, content)
    _check_no_input(path, found, inputs)
    flags = os.O_WRONLY | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=parent)
    try:
        if not os.path.samestat(os.fstat(descriptor), found):
            raise InputError("became another file meanwhile", where=str(path), remedy=_REMEDY)
        _check_open(path, descriptor, content, ())
        yield descriptor
    finally:
        os.close(descriptor)


def _check_stream(path: Path, found: os.stat_result, content: Content) -> None:
    for is_kind, what in (
        (stat.S_ISDIR, "is a directory; name a file in it"),
        (stat.S_ISBLK, "is a block device; output is not written to disks"),
        (stat.S_ISSOCK, "is a socket"),
    ):
        if is_kind(found.st_mode):
            raise InputError(what, where=str(path), remedy=_REMEDY)
    if content == "with places":
        raise InputError(_NO_FILE, where=str(path), remedy=_REMEDY)


def _check_open(path: Path, descriptor: int, content: Content, inputs: Sequence[Path]) -> None:
    found = os.fstat(descriptor)
    if content == "with places":
        raise InputError(_NO_FILE, where=str(path), remedy=_REMEDY)
    if stat.S_ISBLK(found.st_mode):
        raise InputError("is a block device; output is not written to disks", where=str(path), remedy=_REMEDY)
    if content == "binary" and os.isatty(descriptor):
        raise InputError("is a terminal, and this is no text", where=str(path), remedy="name a file")
    _check_no_input(path, found, inputs)
