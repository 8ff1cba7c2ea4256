"""Layers on scratch devices of this machine: device mapper by dmsetup, md by its files in sysfs. Each device is in the
undo journal, by its name, before it is made."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from typing_extensions import override

from iolab.base.errors import MachineError
from iolab.domain.layer import Array, CacheSet, Layer, LayerDevice, Maker, MappedDevice
from iolab.machines.system import block, command, kernel_module, stacked
from iolab.machines.system.action import RemoveMapping, StopArray
from iolab.machines.system.block import device_at
from iolab.machines.system.undo import UndoJournal

NEW_ARRAY = Path("/sys/module/md_mod/parameters/new_array")
NODE_PATIENCE_S = 10.0


def check(layers: Sequence[Layer]) -> None:
    """Loads md, which no file of it does by itself; device mapper's kinds are loaded when one is made.

    Raises:
        MachineError: as of `check_modules`.
    """
    check_modules(layers)
    if any(kind_of(type(each)) == "raid" for each in layers):
        command.run(["modprobe", "md_mod"], package="kmod", where="target.layers")


def check_modules(layers: Sequence[Layer]) -> None:
    """Loads nothing.

    Raises:
        MachineError: names what this kernel lacks, and how to get it.
    """
    for each in layers:
        kind = kind_of(type(each))
        if each.guests_only:
            raise _guests_only(kind)
        if module := missing_module(type(each), *(each.needed_modules[:1] if kind == "raid" else ())):
            raise MachineError(
                f"this kernel has no module {module}, which layer {kind} needs",
                where="target.layers",
                remedy=f"sudo modprobe {module}; if there is none, boot a kernel with {each.configuration}",
            )


def kind_of(layer: type[Layer]) -> str:
    """As an experiment names it."""
    return str(layer.model_fields["kind"].default)


def missing_module(layer: type[Layer], *more: str) -> str | None:
    """The first module of a kind of layer, or of `more`, that this kernel neither has nor can load."""
    return next((module for module in (*layer.modules, *more) if not _is_there(module)), None)


def _is_there(module: str) -> bool:
    """In the kernel, loaded, or to be loaded."""
    return (block.SYS / "module" / module).exists() or kernel_module.loads(module)


def made(undo: UndoJournal, drive: Callable[[], Path]) -> Maker:
    """Makes devices on what `drive` attaches."""
    return _HostMaker(undo, drive)


@dataclass
class _HostMaker(Maker):
    undo: UndoJournal
    attached: Callable[[], Path]
    token: str = field(default_factory=lambda: secrets.token_hex(4))
    count: int = 0

    @override
    def drive(self) -> LayerDevice:
        return _at(self.attached())

    @override
    def mapping(self, made: MappedDevice) -> LayerDevice:
        name = self._name(stacked.MAPPING)
        self.undo.before(RemoveMapping(name))
        command.run(
            ["dmsetup", "create", name, "--verifyudev", "--table", made.table], package="dmsetup", where="target.layers"
        )
        device = _at(Path("/dev/mapper") / name)
        _write(block.SYS / "block" / device.name / "queue", dict(made.queue))
        return device

    @override
    def message(self, device: LayerDevice, text: str) -> None:
        name = Path(device.node).name
        command.run(["dmsetup", "message", name, "0", text], package="dmsetup", where="target.layers")

    @override
    def array(self, made: Array, members: Sequence[LayerDevice]) -> LayerDevice:
        name = self._name(stacked.ARRAY)
        self.undo.before(StopArray(name))
        _write(NEW_ARRAY.parent, {NEW_ARRAY.name: name})
        directory = stacked.array_directory(name)
        _write(directory, dict(made.before))
        for number, member in enumerate(members):
            major, minor = device_at(Path(member.node)).number
            _write(directory, {"new_dev": f"{major}:{minor}"})
            _write(directory / f"dev-{member.name}", {**dict(made.of_member), "slot": str(number)})
        _write(directory, dict(made.start))
        node = Path("/dev") / name
        _await(node)
        return _at(node)

    @override
    def cache_set(self, made: CacheSet) -> LayerDevice:
        raise _guests_only("bcache")

    def _name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.token}_{self.count - 1}"


def _guests_only(kind: str) -> MachineError:
    return MachineError(
        f"layer {kind} works on guest machines only",
        where="target.layers",
        remedy='set machine = "guest:KERNEL" (iolab list kernels), or use layer cache, which is dm-cache',
    )


def _at(node: Path) -> LayerDevice:
    return LayerDevice(device_at(node).name, str(node))


def _write(directory: Path, files: Mapping[str, str]) -> None:
    for name, value in files.items():
        path = directory / name
        try:
            path.write_text(value)
        except OSError as error:
            raise MachineError(f"the kernel refuses {value}: {error.strerror}", where=str(path)) from error


def _await(node: Path) -> None:
    """udev, or the kernel itself, makes the node."""
    deadline = time.monotonic() + NODE_PATIENCE_S
    while not os.path.lexists(node):
        if time.monotonic() > deadline:
            raise MachineError("the array has no node", where=str(node), remedy="is udev running, or devtmpfs mounted?")
        time.sleep(0.01)
