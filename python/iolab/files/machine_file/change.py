"""A machine as a setting changes it: keys of its file given other values, each with the place where the setting gives
it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast

from iolab.base.errors import InputError
from iolab.base.plain_text import clipped, whole_number
from iolab.base.toml import KeyPath
from iolab.domain import native_types as native
from iolab.domain.simulated_machine import InvalidMachine, Table
from iolab.files.machine_file.machine_file import MachineFile, check_values

SHOWN_MAX = 40
"""Characters of a part of a key that a message quotes."""
KEY_PARTS_MAX = 32
"""As deep as a file may nest (base/toml.py): what is made of more is deeper than it can be written down."""


@dataclass(frozen=True)
class Change:
    """One key and its new value; None: the key goes."""

    key: KeyPath
    value: Any
    given_at: KeyPath
    """Where the experiment gives it."""


class InvalidChange(InvalidMachine):
    """What is wrong with a machine as a setting changes it, and which change is to blame."""

    def __init__(self, error: InvalidMachine, change: Change) -> None:
        super().__init__(error.key, error.what)
        self.change = change


@dataclass(frozen=True)
class ChangedMachine:
    """A machine's table after all changes of a setting, checked."""

    table: native.MachineFile
    changes: tuple[Change, ...]

    def blamed(self, key: KeyPath) -> Change | None:
        """The last change that is about `key`, or about something inside it; the only one when none is."""
        about = [change for change in self.changes if _same_branch(change.key, key)]
        if about:
            return about[-1]
        return self.changes[0] if len(self.changes) == 1 else None


def changed(machine: MachineFile, changes: Sequence[Change]) -> ChangedMachine:
    """The machine with all changes, one after the other.

    Raises:
        InvalidChange: a key that leads nowhere or has too many parts, or a device that does not exist.
    """
    table = deepcopy(machine.table)
    for change in changes:
        try:
            _set(cast(Table, table), change.key, _value(machine, change))
        except InvalidMachine as error:
            raise InvalidChange(error, change) from None
    return ChangedMachine(table, tuple(changes))


def _value(machine: MachineFile, change: Change) -> Any:
    is_device = len(change.key) == 3 and change.key[0] == "drives" and change.key[2] == "device"
    if is_device and isinstance(change.value, str):
        try:
            return deepcopy(machine.device(change.value).values)
        except InputError as error:
            raise InvalidMachine(".".join(change.key), str(error)) from None
    if change.value is not None:
        check_values(change.value, change.key)
    return change.value


def _set(table: Table, key: KeyPath, value: Any) -> None:
    if len(key) > KEY_PARTS_MAX:
        raise InvalidMachine(".".join(key), f"a key of more than {KEY_PARTS_MAX} parts")
    inner: Any = table
    for depth, part in enumerate(key[:-1]):
        inner = _entered(inner, part, key[: depth + 1])
    last = key[-1]
    if isinstance(inner, list):
        inner[_number(inner, last, key)] = value
    elif not isinstance(inner, dict):
        raise InvalidMachine(".".join(key), f"{'.'.join(key[:-1])} is a value, it has no keys")
    elif value is None:
        inner.pop(last, None)
    else:
        inner[last] = value


def _entered(inner: Any, part: str, path: KeyPath) -> Any:
    """The table or array under `part`; a table that is not there is made, so that what is optional can be set."""
    if isinstance(inner, list):
        return inner[_number(inner, part, path)]
    if not isinstance(inner, dict):
        raise InvalidMachine(".".join(path), f"{'.'.join(path[:-1])} is a value, it has no keys")
    return inner.setdefault(part, {})


def _number(array: list[Any], part: str, path: KeyPath) -> int:
    number = whole_number(part)
    if number is None or number >= len(array):
        raise InvalidMachine(
            ".".join(path), f"expected a number from 0 to {len(array) - 1} in place of {clipped(part, SHOWN_MAX)}"
        )
    return number


def _same_branch(one: KeyPath, other: KeyPath) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]
