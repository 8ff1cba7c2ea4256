"""Paths that a user names, and the files below a directory of a kernel's, which may be anybody's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from iolab.base.errors import InputError

ENTRIES_MAX = 500_000
"""A directory of Debian's modules has 5,000, a tree with what was built of it 200,000."""


def path_of(named: str, where: str) -> Path:
    """The absolute path that a user named. InputError if it begins with the home of nobody."""
    try:
        return Path(named).expanduser().absolute()
    except RuntimeError:
        raise InputError(f"{named.partition('/')[0]} is the home of no user", where=where) from None


def files_below(directory: Path) -> Iterator[Path]:
    """All of them, however deep, without following links to directories. InputError if they are too many, or cannot be
    read."""
    left, seen = [directory], 0
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                found = list(islice(entries, ENTRIES_MAX + 1))
        except OSError as error:
            raise InputError(f"cannot read it: {error.strerror}", where=error.filename) from None
        seen += len(found)
        if seen > ENTRIES_MAX:
            raise InputError(f"more than {ENTRIES_MAX:,} entries, too many for a kernel", where=str(directory))
        for entry in found:
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                left.append(path)
            else:
                yield path
