"""What is on block devices: loop devices, the filesystems made, swap."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from iolab.errors import MachineError
from iolab.machine import command, loop, safety, swap
from iolab.machine.action.base import Action, CannotUndo, Outcome


@dataclass(frozen=True)
class DetachLoop(Action):
    """A loop device was attached to a file that iolab made. Found by the file: its name is unique, and a kill between
    attaching and writing down the device's name loses nothing."""

    backing_file: str

    def undo(self) -> Outcome | None:
        found = loop.attached_to(Path(self.backing_file))
        for device in found:
            try:
                loop.detach(device)
            except MachineError as error:
                raise CannotUndo(str(error)) from error
        names = ", ".join(str(device.node) for device in found)
        return Outcome(f"detached {names} from {self.backing_file}") if found else None


@dataclass(frozen=True)
class EraseFilesystem(Action):
    """A filesystem with this UUID was made on a device that stays. Left there, it would be taken for somebody's data;
    another one, made since, is somebody's data."""

    path: str
    uuid: str

    def undo(self) -> Outcome | None:
        try:
            if self.uuid not in (found.uuid for found in safety.signatures(Path(self.path))):
                return None
            command.run(["wipefs", "--all", self.path], package="util-linux", where=self.path)
        except MachineError as error:
            raise CannotUndo(str(error)) from error
        return Outcome(f"erased the filesystem that was made on {self.path}")


@dataclass(frozen=True)
class SwapOff(Action):
    """Swap was put on what iolab made. Found by the path, as /proc/swaps shows it."""

    path: str

    def undo(self) -> Outcome | None:
        if not swap.is_on(Path(self.path)):
            return None
        error = swap.off(Path(self.path))
        if error:
            raise CannotUndo(f"cannot take swap off {self.path}: {os.strerror(error)}")
        return Outcome(f"took swap off {self.path}")
