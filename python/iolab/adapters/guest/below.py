"""The files below a directory of a kernel's, which may be anybody's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from iolab.base.errors import InputError

ENTRIES_MAX = 200_000
"""A directory of Debian's modules has 5,000, a built tree 100,000."""


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
