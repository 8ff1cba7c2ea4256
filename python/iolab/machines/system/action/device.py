"""What is on block devices: loop devices, the filesystems made, swap."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from iolab.machines.system import command, loop, safety, stacked, swap
from iolab.machines.system.action.base import Action, CannotUndo, Outcome
from iolab.machines.system.action.path import is_device_node, is_in_own_directory
from iolab.machines.system.mounts import seen_elsewhere


@dataclass(frozen=True)
class DetachLoop(Action):
    """A loop device was attached to a file that iolab made. Found by the file: its name is unique, and a kill between
    attaching and writing down the device's name loses nothing."""

    backing_file: str

    @property
    @override
    def to_do(self) -> str:
        return f"detach the loop device of {self.backing_file}"

    @property
    @override
    def is_iolabs_own(self) -> bool:
        return is_in_own_directory(self.backing_file, "image")

    @override
    def undo(self) -> Outcome | None:
        # Attached in another mount namespace, the file has another path here, or none: its name shows it all the same.
        found = loop.attached_to_named(Path(self.backing_file))
        nodes = {str(device.node) for device in found}
        if found and (held := seen_elsewhere(lambda mount: mount.source in nodes)):
            process, mount = held
            raise CannotUndo(f"cannot detach {mount.source}: it is mounted in the namespace of {process.text}")
        for device in found:
            loop.detach(device)
        return Outcome(f"detached {', '.join(sorted(nodes))} from {self.backing_file}") if found else None


@dataclass(frozen=True)
class EraseFilesystem(Action):
    """A filesystem with this UUID was made on a device that stays. Left there, it would be taken for somebody's data;
    another one, made since, is somebody's data."""

    path: str
    uuid: str
    what: ClassVar[str] = "filesystem"

    @property
    @override
    def to_do(self) -> str:
        return f"erase the {self.what} on {self.path}"

    @property
    @override
    def is_iolabs_own(self) -> bool:
        return is_device_node(self.path)

    @override
    def undo(self) -> Outcome | None:
        if self.uuid not in (found.uuid for found in safety.signatures(Path(self.path))):
            return None
        command.run(["wipefs", "--all", self.path], package="util-linux", where=self.path)
        return Outcome(f"erased the {self.what} that was made on {self.path}")


@dataclass(frozen=True)
class EraseSwap(EraseFilesystem):
    """A swap area was made on a device that was blank."""

    what: ClassVar[str] = "swap area"


@dataclass(frozen=True)
class SwapOff(Action):
    """Swap was put on what iolab made. Found by the path, as /proc/swaps shows it."""

    path: str

    @property
    @override
    def to_do(self) -> str:
        return f"take swap off {self.path}"

    @property
    @override
    def is_iolabs_own(self) -> bool:
        return is_device_node(self.path)

    @override
    def undo(self) -> Outcome | None:
        if not swap.is_on(Path(self.path)):
            return None
        error = swap.off(Path(self.path))
        if error:
            raise CannotUndo(f"cannot take swap off {self.path}: {os.strerror(error)}")
        return Outcome(f"took swap off {self.path}")


@dataclass(frozen=True)
class RemoveMapping(Action):
    """A device of device mapper was made under a name that is unique."""

    name: str

    @property
    @override
    def to_do(self) -> str:
        return f"remove the device-mapper device {self.name}"

    @property
    @override
    def is_iolabs_own(self) -> bool:
        return self.name.startswith(stacked.MAPPING) and stacked.NAME.fullmatch(self.name) is not None

    @override
    def undo(self) -> Outcome | None:
        if not stacked.mapping_exists(self.name):
            return None
        stacked.remove_mapping(self.name)
        return Outcome(f"removed the device-mapper device {self.name}")


@dataclass(frozen=True)
class StopArray(Action):
    """An array of md was made under a name that is unique; it has no superblock, so nothing of it is on its members."""

    name: str

    @property
    @override
    def to_do(self) -> str:
        return f"stop the array {self.name}"

    @property
    @override
    def is_iolabs_own(self) -> bool:
        return self.name.startswith(stacked.ARRAY) and stacked.NAME.fullmatch(self.name) is not None

    @override
    def undo(self) -> Outcome | None:
        if not stacked.array_directory(self.name).exists():
            return None
        stacked.stop_array(self.name)
        return Outcome(f"stopped the array {self.name}")
