"""What a path leads to, before anything is opened; a path that this user may not follow is an error of its own."""

from __future__ import annotations

import os
from pathlib import Path

from iolab.base.errors import InputError, MachineError


def status_of(path: Path) -> os.stat_result | None:
    """What is there; None where nothing is.

    Raises:
        MachineError: no permission to enter a directory on the way.
        InputError: nothing can be there (a loop of links, a name too long).
    """
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        raise MachineError(
            "no permission to enter a directory on this path",
            where=str(path),
            remedy="name a place that you may enter, or run as a user who may",
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot be followed: {error.strerror}", where=str(path), remedy="name another path"
        ) from error
