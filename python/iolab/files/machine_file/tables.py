"""The arrays of tables of a machine's file, expanded.

`count` of a [[drives]] table: so many equal drives. Lists in it are dealt out to them in turn. `mount` of a [[mounts]]
table names a file, and what stands beside it goes before what that says.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

from iolab.base.plain_text import whole_number
from iolab.base.toml import Document, KeyPath
from iolab.domain.simulated_machine import InvalidMachine, Table

COUNT_MAX = 1024
"""Drives that the model can have together (crates/model/stack/src/machine)."""
_DEALT = {"interrupt_cpus": "interrupt_cpu"}
"""The list in the file, and what each drive has of it."""


def expanded_drives(drives: list[Table]) -> tuple[list[Table], list[int]]:
    """Every drive, and for each the number of the table that it was written in.

    Raises:
        InvalidMachine: no count, or no list; the key is that of the file.
    """
    found: list[Table] = []
    written_in: list[int] = []
    for number, drive in enumerate(drives):
        count = _count(drive, number)
        for turn in range(count):
            found.append(_one_of(drive, number, turn))
            written_in.append(number)
    return found, written_in


def as_written(key: KeyPath, written_in: list[int]) -> KeyPath:
    """The path in the file of a key of the expanded drives."""
    number = whole_number(key[1]) if len(key) > 1 and key[0] == "drives" else None
    if number is None or number >= len(written_in):
        return key
    named = {one: many for many, one in _DEALT.items()}
    last = tuple(named.get(part, part) for part in key[2:3])
    return ("drives", str(written_in[number]), *last, *key[3:])


def _count(drive: Table, number: int) -> int:
    count = drive.get("count", 1)
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= COUNT_MAX:
        raise InvalidMachine(f"drives.{number}.count", f"expected 1 to {COUNT_MAX}, found {count}")
    return count


def _one_of(drive: Table, number: int, turn: int) -> Table:
    one = {key: deepcopy(value) for key, value in drive.items() if key != "count" and key not in _DEALT}
    for many, key in _DEALT.items():
        if many not in drive:
            continue
        values = drive[many]
        if not isinstance(values, list) or not values or key in drive:
            raise InvalidMachine(
                f"drives.{number}.{many}", f"expected a list with a value for each drive, and no {key}"
            )
        one[key] = values[turn % len(values)]
    return one


def mounts_with_files(
    mounts: object, read: Callable[[str, KeyPath], Document]
) -> tuple[list[Table], dict[KeyPath, Document]]:
    """Each mount whole, and the files that they came from by their places.

    Raises:
        InvalidMachine: no list of tables; all else is the model's to judge.
    """
    if not isinstance(mounts, list) or not all(isinstance(mount, dict) for mount in mounts):
        raise InvalidMachine("mounts", "expected [[mounts]] tables")
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
