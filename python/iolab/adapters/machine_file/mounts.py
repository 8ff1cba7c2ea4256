"""The [[mounts]] of a machine's file: `mount` names a file, and what stands beside it goes before what that says."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from iolab.adapters.machine_file.impossible import Impossible

if TYPE_CHECKING:
    from iolab.base.toml import Document, KeyPath

Table = dict[str, Any]


def with_files(mounts: object, read: Callable[[str, KeyPath], Document]) -> tuple[list[Table], dict[KeyPath, Document]]:
    """Each mount whole, and the files that they came from by their places.

    Raises:
        Impossible: no list of tables; all else is the model's to judge.
    """
    if not isinstance(mounts, list) or not all(isinstance(mount, dict) for mount in mounts):
        raise Impossible("mounts", "expected [[mounts]] tables")
    whole: list[Table] = []
    files: dict[KeyPath, Document] = {}
    for number, mount in enumerate(mounts):
        own = {key: value for key, value in mount.items() if key != "mount"}
        if isinstance(name := mount.get("mount"), str):
            place = ("mounts", str(number))
            files[place] = read(name, (*place, "mount"))
            own = _merged(files[place].values, own)
        whole.append(own)
    return whole, files


def _merged(under: Table, over: Table) -> Table:
    found = deepcopy(under)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = _merged(found[key], value) if both else deepcopy(value)
    return found
