"""io.cost (block/blk-iocost.c): groups share what a device can do by a linear model. Version 2 only.

The root's files have a line for each device that was ever set; others are off. Parameters that somebody writes count as
the user's from then on, also those that the kernel had chosen itself: of a line with ctrl=auto only that is put back.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import MachineError
from iolab.machines.system import rights
from iolab.machines.system.action import WriteLine

if TYPE_CHECKING:
    from iolab.machines.system.block import BlockDevice
    from iolab.machines.system.undo import UndoJournal

QOS = "io.cost.qos"
MODEL = "io.cost.model"


def is_there(root: Path) -> bool:
    """Whether the kernel has it, by the root of the hierarchy that has the I/O controller."""
    return (root / QOS).exists()


def enable(root: Path, disk: BlockDevice, model: str | None, undo: UndoJournal, *, qos: str | None = None) -> list[str]:
    """Switches it on for the disk, with these parameters of the model, such as `rbps=2000000000 rrandiops=90000`; None:
    as it is. `qos`: likewise, such as `rpct=95 rlat=5000`. Returns notes.

    Raises:
        MachineError: the kernel refuses.
    """
    number = "{}:{}".format(*disk.number)
    if model is not None:
        _change(root / MODEL, number, "ctrl=auto", f"ctrl=user model=linear {model}", undo)
    if qos is not None:
        _change(root / QOS, number, "enable=0", f"enable=1 ctrl=user {qos}", undo)
    elif "enable=1" not in (_line(root / QOS, number) or ""):
        _change(root / QOS, number, "enable=0", "enable=1", undo)
    in_force = _line(root / MODEL, number) or ""
    if "ctrl=auto" not in in_force:
        return []
    parameters = in_force.partition("model=linear")[2].strip()
    return [
        f"io.cost takes {disk.name} for a device with {parameters}, the kernel's guess: one that can do more is held "
        "down (cost_model states what it can do)"
    ]


def _change(file: Path, number: str, off: str, change: str, undo: UndoJournal) -> None:
    """`off`: what stands for a device without a line."""
    if not os.access(file, os.W_OK):
        raise MachineError(f"{file.name} is not writable", where=str(file), remedy=rights.remedy())
    undo.before(WriteLine(str(file), _rewritable(_line(file, number) or f"{number} {off}")))
    try:
        file.write_text(f"{number} {change}")
    except OSError as error:
        raise MachineError(f"the kernel refuses {change}: {error.strerror}", where=str(file)) from error


def _line(file: Path, number: str) -> str | None:
    lines = file.read_text().splitlines() if file.exists() else []
    return next((line for line in lines if line.split()[:1] == [number]), None)


def _rewritable(line: str) -> str:
    """What makes the line so again when it is written."""
    kept, auto, _ = line.partition("ctrl=auto")
    return kept + auto
