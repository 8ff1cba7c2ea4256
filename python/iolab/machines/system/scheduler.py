"""Switching a queue's I/O scheduler so that it can be switched back completely."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from iolab.machines.system import block
from iolab.machines.system.action import WriteFile
from iolab.machines.system.block import BlockDevice, shown
from iolab.machines.system.undo import UndoJournal

RESET_BY_A_SWITCH = ("nr_requests", "wbt_lat_usec")
"""The kernel sets these anew with each scheduler: nr_requests to the new one's depth, and BFQ turns the writeback
throttle off (block/elevator.c, block/blk-wbt.c)."""


def available(device: BlockDevice) -> list[str]:
    """Schedulers that the kernel lists; more may load as modules."""
    return (device.queue / "scheduler").read_text().replace("[", "").replace("]", "").split()


def tunables(device: BlockDevice) -> list[str]:
    """The files of the scheduler in force, none for `none`."""
    directory = device.queue / "iosched"
    return sorted(path.name for path in directory.iterdir()) if directory.is_dir() else []


def tunables_of(name: str) -> list[str] | None:
    """Those of a scheduler by name, from a device here that has it in force; None if none has."""
    for queue in sorted((block.SYS / "block").glob("*/queue")):
        with suppress(OSError):
            if shown(queue / "scheduler") == name and (queue / "iosched").is_dir():
                return sorted(path.name for path in (queue / "iosched").iterdir())
    return None


def switch(device: BlockDevice, name: str, undo: UndoJournal) -> None:
    """Switches, with what the switch itself resets (the old scheduler's tunables, the queue's depth) journaled before
    the scheduler, since undoing goes backwards.

    Raises:
        OSError: the kernel refuses.
    """
    path = device.queue / "scheduler"
    previous = shown(path)
    if previous == name:
        return
    for file in _reset_files(device):
        value = _read(file)
        if value is not None:
            undo.before(WriteFile(str(file), value))
    undo.before(WriteFile(str(path), previous))
    path.write_text(name)


def _reset_files(device: BlockDevice) -> list[Path]:
    queue = device.queue
    return [queue / name for name in RESET_BY_A_SWITCH] + [queue / "iosched" / name for name in tunables(device)]


def _read(file: Path) -> str | None:
    try:
        return shown(file)
    except OSError:
        return None  # not on this kernel, or write-only
