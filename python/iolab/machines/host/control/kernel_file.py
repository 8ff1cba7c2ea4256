"""Kernel settings that are files: journaled, written, read back."""

from __future__ import annotations

import os
from collections.abc import Callable, Container
from operator import eq
from pathlib import Path

from iolab.base.errors import MachineError
from iolab.machines.host.control.applier import AppliedValue
from iolab.machines.system import rights
from iolab.machines.system.action import WriteFile
from iolab.machines.system.block import shown
from iolab.machines.system.undo import UndoJournal


def write(
    name: str,
    path: Path,
    wanted: str,
    undo: UndoJournal | None,
    *,
    same: Callable[[str, str], bool] = eq,
    hint: str = "",
    hint_for: Container[int | None] = (),
    even_if_same: bool = False,
) -> AppliedValue:
    """Journal, write, read back. A write that the kernel takes without any effect is an error; another value than the
    one asked for (rounded, clipped) is noted.

    Args:
        undo: None when the caller has journaled what will put it back. same: whether two texts are one value to the
        kernel. even_if_same: write what the file shows already, since that has an effect elsewhere. hint: what a
        refusal with an errno in `hint_for` is due to, if only the caller can determine it.

    Raises:
        MachineError: there is no such file, no permission, or the kernel refuses.
    """
    check_writable(name, path)
    before = shown(path)
    if same(before, wanted) and not even_if_same:
        return AppliedValue(before, before)
    if undo is not None:
        undo.before(WriteFile(str(path), before))
    try:
        path.write_text(wanted)
    except OSError as error:
        raise MachineError(
            f"{name}: the kernel refuses {wanted}: {error.strerror}",
            where=str(path),
            remedy=hint if error.errno in hint_for else _limit(path, before),
        ) from error
    after = shown(path)
    if same(after, before) and not even_if_same:
        raise MachineError(
            f"{name}: the kernel takes {wanted} and keeps {before}", where=str(path), remedy=_limit(path, before)
        )
    notes = () if same(after, wanted) else (f"{name}: asked for {wanted}, the kernel made it {after}",)
    return AppliedValue(before, after, notes)


def check_writable(name: str, path: Path) -> None:
    """Raises MachineError, naming the control, if the kernel has no such file or this user may not write it."""
    if not path.exists():
        raise MachineError(f"{name}: this kernel or device has no such file", where=str(path))
    if not os.access(path, os.W_OK):
        raise MachineError(f"{name} needs write access to {path}", remedy=rights.remedy())


def together(changes: list[tuple[str, AppliedValue]]) -> AppliedValue:
    """Changes of several files of one setting as one: the value alone if all agree, by name if they don't."""
    notes = tuple(dict.fromkeys(note for _, change in changes for note in change.notes))
    return AppliedValue(
        agreed({name: change.before for name, change in changes}),
        agreed({name: change.applied for name, change in changes}),
        notes,
    )


def agreed(values: dict[str, object]) -> object:
    """The one value that all have, else the values by name."""
    first = next(iter(values.values()))
    return first if all(value == first for value in values.values()) else values


def _limit(path: Path, before: str) -> str:
    """What the device itself allows, if it reports that."""
    limit = path.with_name(path.name.replace("max_sectors", "max_hw_sectors"))
    if limit != path and limit.exists():
        return f"at most {limit.read_text().strip()} ({limit.name})"
    return f"it is {before} now"
