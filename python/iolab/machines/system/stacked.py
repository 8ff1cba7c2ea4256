"""Devices of device mapper and md that iolab made, found by their names, and how they go."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path

from iolab.base.errors import MachineError
from iolab.machines.system import block, command

MAPPING = "iolab_"
ARRAY = "md_iolab_"
NAME = re.compile(r"(iolab_|md_iolab_)[0-9a-f]{8}_[0-9]{1,4}")
PATIENCE_S = 10.0
"""A program that udev starts for a new device may have it open for so long."""


def mapping_exists(name: str) -> bool:
    """Whether device mapper has a device of this name, with a table or without."""
    for file in (block.SYS / "block").glob("dm-*/dm/name"):
        with contextlib.suppress(OSError):  # removed meanwhile
            if file.read_text().rstrip("\n") == name:
                return True
    return False


def remove_mapping(name: str) -> None:
    """MachineError if it is in use."""
    command.run(["dmsetup", "remove", "--retry", name], package="dmsetup", where=name)


def array_directory(name: str) -> Path:
    """The directory of an array's files."""
    return block.SYS / "block" / name / "md"


def stop_array(name: str) -> None:
    """Stops the array, which lets its members go, and waits until its device is gone. MachineError if it stays."""
    deadline = time.monotonic() + PATIENCE_S
    state = array_directory(name) / "array_state"
    refused = "it does not go"
    while state.exists():
        if time.monotonic() > deadline:
            raise MachineError(f"cannot stop the array: {refused}", where=name)
        try:
            state.write_text("clear")
        except OSError as error:  # in use, or gone meanwhile
            refused = error.strerror or refused
        time.sleep(0.02)
