"""Who else could lead a path elsewhere: whoever may rename or replace a directory or link on the way.

What runs as root and writes where another user can do that writes wherever that user likes.
"""

from __future__ import annotations

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


@dataclass(frozen=True)
class Weakness:
    """A directory or link on the way that others control."""

    path: Path
    why: str
    owner: str | None = None
    """The user who controls it; None: several."""


def weakness_of(path: Path) -> Weakness | None:
    """The first on the way to an existing path, itself included. Until there, nobody but root and this user could have
    changed what was looked at.

    Raises:
        OSError: it can't be followed.
    """
    return next(filter(None, (_weakness(step, step.lstat()) for step in _steps(path))), None)


def refuse_for_root(path: Path) -> None:
    """Refuses, as root, a directory that another user could lead elsewhere, or put something else into.

    Raises:
        InputError: which part of the path, and what to do instead.
    """
    found = weakness_of(path) if os.geteuid() == ROOT else None
    if found is None:
        return
    as_user = f"run as that user: sudo -u {found.owner} iolab run ..." if found.owner else f"chmod go-w {found.path}"
    raise InputError(
        f"root would write where another user can put a link in its way: {found.path} {found.why}",
        where=str(path),
        remedy=f"{as_user}, or choose a directory that only root can change",
    )


def _weakness(path: Path, status: os.stat_result) -> Weakness | None:
    if stat.S_ISREG(status.st_mode):
        return None  # whoever owns a file may change it, not what its name leads to
    if status.st_uid not in (ROOT, os.geteuid()):
        owner = _name_of(status.st_uid)
        return Weakness(path, f"belongs to {owner}", owner)
    open_to_others = stat.S_IMODE(status.st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
    if stat.S_ISDIR(status.st_mode) and open_to_others and not status.st_mode & stat.S_ISVTX:
        who = "everybody" if status.st_mode & stat.S_IWOTH else "its group"
        return Weakness(path, f"can be written by {who}")
    return None


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
