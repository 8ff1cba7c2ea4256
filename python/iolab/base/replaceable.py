"""Who else could lead a path elsewhere: any user who may rename or replace a directory or link on the way.

What runs as root and writes where another user can do that writes wherever that user likes. Who calls iolab by sudo is
trusted with runs and outputs, as git trusts them: such a user is root whenever they like.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iolab.base.errors import InputError

ROOT = 0
LINKS_MAX = 40
"""As the kernel has it."""
UID_MAP = Path("/proc/self/uid_map")
OF_ALL_IDS = ["0", "0", "4294967295"]
"""The map of user IDs outside of any user namespace (user_namespaces(7)): from, to, how many."""
OVERFLOW_UID = Path("/proc/sys/kernel/overflowuid")


@dataclass(frozen=True)
class Weakness:
    """A directory or link on the way that others control."""

    path: Path
    why: str
    owner: str | None = None
    """The user who controls it; None: several."""


def trusted_users(*, caller: bool = True) -> set[int]:
    """Root, this user and, if asked for, who called sudo. In a user namespace the machine's root shows as the overflow
    ID; what runs there has no rights but its user's."""
    trusted = {ROOT, os.geteuid()}
    if caller and os.geteuid() == ROOT and (called := os.environ.get("SUDO_UID", "")).isdecimal():
        trusted.add(int(called))
    if _is_in_user_namespace():
        trusted.add(int(OVERFLOW_UID.read_text()))
    return trusted


def weakness_of(path: Path, *, caller: bool = False) -> Weakness | None:
    """The first on the way to an existing path, itself included. Until there, nobody but root and this user could have
    changed what was looked at; nor, if asked for, anybody but who called sudo and the group of that user alone.

    Raises:
        OSError: it can't be followed.
    """
    found = (_weakness(step, step.lstat(), caller=caller) for step in _steps(path))
    return next(filter(None, found), None)


def refuse_for_root(path: Path) -> None:
    """Refuses, as root, a directory for targets that another user could lead elsewhere, or put something else into.

    Raises:
        InputError: which part of the path, and what to do instead.
    """
    _refuse(path, "iolab run ...", caller=False)


def refuse_strangers(path: Path) -> None:
    """Refuses, as root, to write runs, searches and the like in a directory, or in the first above it that exists, that
    another user than the one who called sudo could lead elsewhere, or put something else into.

    Raises:
        InputError: which part of the path, and what to do instead.
    """
    if os.geteuid() == ROOT:
        _refuse(next(place for place in (path, *path.absolute().parents) if place.is_dir()), "iolab ...", caller=True)


def _refuse(path: Path, command: str, *, caller: bool) -> None:
    found = weakness_of(path, caller=caller) if os.geteuid() == ROOT else None
    if found is None:
        return
    as_user = f"run as that user: sudo -u {found.owner} {command}" if found.owner else f"chmod go-w {found.path}"
    raise InputError(
        f"root would write where another user can put a link in its way: {found.path} {found.why}",
        where=str(path),
        remedy=f"{as_user}, or choose a directory that only root can change",
    )


def _weakness(path: Path, status: os.stat_result, *, caller: bool) -> Weakness | None:
    if stat.S_ISREG(status.st_mode):
        return None  # the owner of a file may change it, not what its name leads to
    if status.st_uid not in trusted_users(caller=caller):
        owner = _name_of(status.st_uid)
        return Weakness(path, f"belongs to {owner}", owner)
    open_to_others = stat.S_IMODE(status.st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
    if stat.S_ISDIR(status.st_mode) and open_to_others and not status.st_mode & stat.S_ISVTX:
        if caller and not status.st_mode & stat.S_IWOTH and _is_group_of_one(status.st_gid, status.st_uid):
            return None
        who = "everybody" if status.st_mode & stat.S_IWOTH else "its group"
        return Weakness(path, f"can be written by {who}")
    return None


def _is_group_of_one(group: int, owner: int) -> bool:
    """Whether only the owner is in it, as on systems that give each user a group of the same name."""
    try:
        user = pwd.getpwuid(owner)
        return group == user.pw_gid and set(grp.getgrgid(group).gr_mem) <= {user.pw_name}
    except KeyError:
        return False


def _is_in_user_namespace() -> bool:
    try:
        return UID_MAP.read_text().split() != OF_ALL_IDS
    except OSError:
        return False  # a kernel without user namespaces


def _steps(path: Path) -> Iterator[Path]:
    """Every directory and every link that the kernel passes, from the root on."""
    at = Path("/")
    yield at
    pending = list(reversed(path.absolute().parts[1:]))
    links = 0
    while pending:
        part = pending.pop()
        if part == "..":
            at = at.parent
            continue
        step = at / part
        yield step
        if step.is_symlink() and links < LINKS_MAX:
            links += 1
            target = step.readlink()
            if target.is_absolute():
                at = Path("/")
            pending.extend(reversed([name for name in target.parts if name != "/"]))
        else:
            at = step


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"#{user}"
