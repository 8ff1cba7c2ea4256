"""The scratch device: a loop device on a sparse file, fresh for every trial, with a filesystem or bare.

Fresh, because a filesystem that earlier trials aged would make later trials slower than earlier ones.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from iolab.base.errors import MachineError
from iolab.base.quantity import size_in_words
from iolab.domain import layer
from iolab.domain.trial import ScratchTarget, SideDevice
from iolab.machines.system import driver_tags, filesystem, layers, loop, rights, scheduler, state
from iolab.machines.system.action import DetachLoop, Unmount
from iolab.machines.system.block import BlockDevice, device_at
from iolab.machines.system.own_directory import make_own_directory
from iolab.machines.system.undo import UndoJournal

LOOP_SCHEDULER = "none"
"""What the kernel gives a new loop device."""


@dataclass(frozen=True)
class Scratch:
    """A scratch device with its filesystem, mounted if it has one."""

    node: Path
    device: BlockDevice
    own_directory: Path
    mount_point: Path | None
    """None: bare."""
    backing_directory: Path
    notes: list[str]
    sides: filesystem.Sides = filesystem.NO_SIDES


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
        InputError: iolab does not hand on the options, or mkfs or mount refuse them.
    """
    if os.geteuid() != 0:
        raise MachineError(
            "a scratch device (loop device, mkfs, mount) needs root",
            where="target",
            remedy='run as root: sudo iolab run ..., or use [target] kind = "directory"',
        )
    if not rights.administers():
        what = "a scratch device (loop device, mount) needs CAP_SYS_ADMIN, which this root lacks"
        raise MachineError(what, where="target", remedy=f'{rights.IN_A_CONTAINER}, or use [target] kind = "directory"')
    parent = backing_directory(target)
    own, node, notes = _stack(parent, target, undo) if target.layers else _drive(parent, target, undo)
    sides = filesystem.Sides(
        log=_side(target.log, target, undo, notes), realtime=_side(target.realtime, target, undo, notes)
    )
    mount_point = None
    if target.filesystem is not None and not bare:
        mount_point = own / "mount"
        mount_point.mkdir()
        filesystem.make(target.filesystem, node, target.mkfs_options, sides=sides)
        undo.before(Unmount(str(mount_point)))
        filesystem.mount(target.filesystem, node, mount_point, target.mount_options, sides=sides)
    return Scratch(node, device_at(node), own, mount_point, parent, notes, sides)


def _drive(parent: Path, target: ScratchTarget, undo: UndoJournal) -> tuple[Path, Path, list[str]]:
    return _attached(parent, target.drive_bytes, target.sector_bytes, undo)


def _stack(parent: Path, target: ScratchTarget, undo: UndoJournal) -> tuple[Path, Path, list[str]]:
    """The first drive's directory, the device at the top, and notes."""
    chosen = layer.read(target.layers)
    layers.check(chosen)
    notes: list[str] = []
    own: list[Path] = []

    def attached() -> Path:
        directory, node, new_notes = _drive(parent, target, undo)
        own.append(directory)
        notes.extend(new_notes)
        return node

    top = layer.build(chosen, target.size_bytes, layers.made(undo, attached))
    return own[0], Path(top.node), notes


def _side(side: SideDevice | None, target: ScratchTarget, undo: UndoJournal, notes: list[str]) -> Path | None:
    """A log's or a realtime section's device: as much iolab's own as the one beside it."""
    if side is None:
        return None
    parent = backing_directory(target) if side.backing_directory is None else Path(side.backing_directory)
    _, node, new_notes = _attached(parent, side.size_bytes, target.sector_bytes, undo)
    notes += new_notes
    return node


def _attached(
    parent: Path, size_bytes: int, sector_bytes: int | None, undo: UndoJournal
) -> tuple[Path, Path, list[str]]:
    """Our own directory with the sparse file, the loop device on it, and notes."""
    own = make_own_directory(parent, undo).path
    image = own / "image"
    undo.before(DetachLoop(str(image)))
    _make_sparse(image, size_bytes)
    attached, notes = loop.attach(image, sector_bytes=sector_bytes)
    _reset_queue(device_at(attached.node), undo)
    return own, attached.node, notes


def _make_sparse(image: Path, size_bytes: int) -> None:
    try:
        with image.open("xb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.truncate(size_bytes)
    except OSError as error:
        raise MachineError(
            f"cannot make a sparse file of {size_in_words(size_bytes)}: {error.strerror}",
            where=str(image.parent.parent),
            remedy='choose another place: [target] backing = "/dir"',
        ) from error


def _reset_queue(device: BlockDevice, undo: UndoJournal) -> None:
    """A loop device keeps its scheduler and tags when it is detached: without this, trials would start from whatever an
    earlier user of the same number left."""
    scheduler.switch(device, LOOP_SCHEDULER, undo)
    driver_tags.fill(device)
