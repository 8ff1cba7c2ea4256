"""Names that iolab gives to what it makes. What has another name was made by somebody else."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

OWN_DIRECTORY = re.compile(r"iolab-[0-9a-f]{16}")
"""See `iolab.adapters.system.own_directory`."""
CGROUP = re.compile(r"iolab-.+-[0-9a-f]{8}")
"""See `iolab.adapters.system.cgroup`."""
TRACE_INSTANCE = re.compile(r"iolab-[\w-]+")
"""See `iolab.adapters.host.probing`."""


def is_in_own_directory(path: str, name: str) -> bool:
    """Whether the path is that of the entry `name` in a directory of iolab's own."""
    pure = PurePosixPath(path)
    return (
        pure.is_absolute()
        and ".." not in pure.parts
        and pure.name == name
        and OWN_DIRECTORY.fullmatch(pure.parent.name) is not None
    )


def is_device_node(path: str) -> bool:
    pure = PurePosixPath(path)
    return pure.is_relative_to("/dev") and ".." not in pure.parts
