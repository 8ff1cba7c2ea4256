"""The scratch device: a loop device on a sparse file, fresh for every trial, with a filesystem or bare.

Fresh, because a filesystem that earlier trials aged would make later trials slower than earlier ones.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.errors import MachineError
from iolab.machine import filesystem, loop, scheduler, state
from iolab.machine.action import DetachLoop, Unmount
from iolab.machine.block import BlockDevice, device_at
from iolab.machine.own_directory import make_own_directory
from iolab.machine.undo import UndoJournal

if TYPE_CHECKING:
    from iolab.trial import ScratchTarget

LOOP_SCHEDULER = "none"
"""What the kernel gives a new loop device."""


@dataclass(frozen=True)
class Scratch:
    node: Path
    device: BlockDevice
    own_directory: Path
    mount_point: Path | None
    """None: bare."""
    backing_directory: Path
    notes: list[str]


def backing_directory(target: ScratchTarget) -> Path:
    """Where the sparse file of a target lies."""
    if target.backing_directory is not None:
        return Path(target.backing_directory)
    return state.state_subdirectory("scratch")


def make(target: ScratchTarget, undo: UndoJournal, *, bare: bool = False) -> Scratch:
    """Makes a device, its filesystem and the mount; each step is in the undo journal before it is taken.

    Args:
        bare: leave the filesystem to others.

    Raises:
        MachineError: not root, no loop devices, a tool is missing.
        InputError: mkfs or mount refuse the options.
    """
    if os.geteuid() != 0:
        raise MachineError(
            "a scratch device (loop device, mkfs, mount) needs root",
            where="target",
            remedy='run as root: sudo iolab run ..., or use [target] kind = "directory"',
        )
    parent = backing_directory(target)
    own = make_own_directory(parent, undo)
    image = own / "image"
    undo.before(DetachLoop(str(image)))
    _make_sparse(image, target.size_bytes)
    attached, notes = loop.attach(image, sector_bytes=target.sector_bytes)
    device = device_at(attached.node)
    _reset_scheduler(device, undo)
    mount_point = None
    if target.filesystem is not None and not bare:
        mount_point = own / "mount"
        mount_point.mkdir()
        filesystem.make(target.filesystem, attached.node, target.mkfs_options)
        undo.before(Unmount(str(mount_point)))
        filesystem.mount(target.filesystem, attached.node, mount_point, target.mount_options)
    return Scratch(attached.node, device, own, mount_point, parent, notes)


def _make_sparse(image: Path, size_bytes: int) -> None:
    try:
        with image.open("xb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.truncate(size_bytes)
    except OSError as error:
        raise MachineError(
            f"cannot make a sparse file of {size_bytes} bytes: {error.strerror}",
            where=str(image.parent.parent),
            remedy='choose another place: [target] backing = "/dir"',
        ) from error


def _reset_scheduler(device: BlockDevice, undo: UndoJournal) -> None:
    """A loop device keeps its scheduler when it is detached: without this, trials would start from whatever an earlier
    user of the same number left."""
    scheduler.switch(device, LOOP_SCHEDULER, undo)
