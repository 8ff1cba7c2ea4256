"""Whether others could have put there what is found at a path: checked as ssh and sudo check their files.

iolab undoes what its own files list, as root. So each directory on the way to them, links included, belongs to
root or to whoever runs iolab, and nobody else can write it. Only of a directory like /tmp (sticky), where nobody can
replace what is another's, that is not asked, unless the files lie in it themselves.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

from iolab.base.errors import MachineError

LINKS_MAX = 40
UID_MAP = Path("/proc/self/uid_map")
OF_ALL_IDS = [0, 0, 4294967295]
"""The map of user IDs outside of any user namespace (user_namespaces(7)): from, to, how many."""


def make_private_directory(path: Path, *, remedy: str | None = None) -> Path:
    """Makes the directory, and those on the way to it, for this user alone, if they are missing. What others could
    read of an existing one they can no longer.

    Returns: the path without links.

    Raises:
        MachineError: it cannot be made, or somebody else could write it or replace it.
    """
    try:
        here = _walk(path, make=True, remedy=remedy)
        if here.stat().st_uid == os.geteuid():
            here.chmod(0o700)
    except OSError as error:
        raise _unreachable("cannot keep state there", error, path, remedy) from error
    return here


def check_directory(path: Path, *, remedy: str | None = None) -> Path | None:
    """The path without links; None if there is no such directory.

    Raises:
        MachineError: somebody else could write it or replace it.
    """
    try:
        return _walk(path, make=False, remedy=remedy)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreachable("cannot be entered", error, path, remedy) from error


def user_of_machine() -> int:
    """Who runs this as the machine sees it: whoever is root in a user namespace is root nowhere else."""
    user = os.geteuid()
    return next((to + user - first for first, to, count in _uid_map() if first <= user < first + count), user)


def open_own_file(path: Path, flags: int) -> int:
    """Opens a file of this user's in a directory that was checked; a new one for this user alone.

    Raises:
        OSError: as open(2).
        MachineError: it is a link or no file, is another user's, has another name, or others can write it.
    """
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    status = os.fstat(fd)
    wrong = None
    if not stat.S_ISREG(status.st_mode):
        wrong = "is no regular file"
    elif status.st_uid not in (0, os.geteuid()):
        wrong = f"belongs to {_user(status.st_uid)}"
    elif status.st_nlink > 1:
        wrong = "has another name too (hard link)"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        wrong = "can be written by others"
    if wrong:
        os.close(fd)
        raise MachineError(f"not a file of iolab's: it {wrong}", where=str(path), remedy=f"look at it, then: rm {path}")
    return fd


def _walk(path: Path, *, make: bool, remedy: str | None) -> Path:
    here = Path("/")
    _check(here, here.lstat(), remedy, is_last=False)
    ahead = list(path.absolute().parts[1:])
    links = 0
    while ahead:
        part = ahead.pop(0)
        if part == "..":
            here = here.parent
            continue
        step = here / part
        try:
            status = step.lstat()
        except FileNotFoundError:
            if not make:
                raise
            step.mkdir(mode=0o700, exist_ok=True)
            status = step.lstat()
        _check(step, status, remedy, is_last=not ahead)
        if not stat.S_ISLNK(status.st_mode):
            here = step
            continue
        links += 1
        if links > LINKS_MAX:
            raise MachineError("too many links on the way", where=str(path), remedy=remedy)
        target = step.readlink()
        if target.is_absolute():
            here = Path("/")
        ahead = [*(part for part in target.parts if part != "/"), *ahead]
    return here


def _check(step: Path, status: os.stat_result, remedy: str | None, *, is_last: bool) -> None:
    is_link = stat.S_ISLNK(status.st_mode)
    if not is_link and not stat.S_ISDIR(status.st_mode):
        raise MachineError("is no directory", where=str(step), remedy=remedy)
    if status.st_uid not in _trusted_users():
        _refuse(step, f"belongs to {_user(status.st_uid)}", remedy)
    if is_link or (status.st_mode & stat.S_ISVTX and not is_last):
        return
    if status.st_mode & stat.S_IWOTH:
        _refuse(step, "can be written by all users", remedy)
    if status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid):
        _refuse(step, f"can be written by the group {_group(status.st_gid)}", remedy)


def _unreachable(what: str, error: OSError, path: Path, remedy: str | None) -> MachineError:
    if isinstance(error, PermissionError):
        what, remedy = (
            f"{what}: no permission",
            remedy and "name a place that you may enter: export IOLAB_STATE_DIR=DIR",
        )
    else:
        what = f"{what}: {error.strerror}"
    return MachineError(what, where=str(path), remedy=remedy)


def _refuse(step: Path, why: str, remedy: str | None) -> None:
    raise MachineError(
        f"{why}, who could have iolab undo what was never done: no state is kept or read there",
        where=str(step),
        remedy=remedy or f"chown or chmod go-w {step}",
    )


def _trusted_users() -> set[int]:
    """In a user namespace the machine's root shows as the overflow ID; what runs there has no rights but its user's."""
    trusted = {0, os.geteuid()}
    if _uid_map() != [OF_ALL_IDS]:
        trusted.add(int(Path("/proc/sys/kernel/overflowuid").read_text()))
    return trusted


def _uid_map() -> list[list[int]]:
    try:
        return [[int(word) for word in line.split()] for line in UID_MAP.read_text().splitlines()]
    except OSError:
        return [OF_ALL_IDS]  # a kernel without user namespaces


def _is_own_group(gid: int) -> bool:
    """Whether only this user is in the group, as on systems that give each user a group of the same name."""
    if gid != os.getegid():
        return False
    try:
        own = pwd.getpwuid(os.geteuid())
        return gid == own.pw_gid and set(grp.getgrgid(gid).gr_mem) <= {own.pw_name}
    except KeyError:
        return False


def _user(uid: int) -> str:
    try:
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
