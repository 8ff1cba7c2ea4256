"""Layers between a guest machine's drives and its target, as steps of its agent: dmsetup, packed from this machine, for
device mapper; files in sysfs for md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from typing_extensions import override

from iolab.base.errors import MachineError
from iolab.domain import layer
from iolab.domain.layer import Array, CacheSet, Layer, LayerDevice, Maker, MappedDevice
from iolab.domain.trial import ScratchTarget
from iolab.machines.guest import programs
from iolab.machines.guest.modules import Modules
from iolab.machines.guest.steps import Plan


def modules_of(layers: Sequence[Layer], modules: Modules) -> list[str]:
    """The modules that they need, of this kernel's. MachineError if it has not what one of them is."""
    found: list[str] = []
    for each in layers:
        for name in each.modules:
            if not modules.has(name):
                kind = type(each).model_fields["kind"].default
                raise MachineError(
                    f"this kernel has no module {name}, and so no layer {kind}",
                    where="guest machine",
                    remedy=f"take a kernel with {each.configuration}",
                )
        found += [*each.modules, *filter(modules.has, each.needed_modules)]
    return list(dict.fromkeys(found))


def add(plan: Plan, target: ScratchTarget, drives: Sequence[str]) -> list[str]:
    """The steps that put the target's layers on its drives, which are there; the kernel's names of its devices."""
    layers = layer.read(target.layers)
    maker = _StepMaker(plan, iter(drives), count(), count(), count())
    return [layer.build(layers, target.size_bytes, maker).name for _ in range(target.devices)]


@dataclass
class _StepMaker(Maker):
    """The kernel numbers devices of device mapper, and those of bcache, in the order in which they are made, from 0."""

    plan: Plan
    drives: Iterator[str]
    mapped: Iterator[int]
    arrays: Iterator[int]
    cached: Iterator[int]

    @override
    def drive(self) -> LayerDevice:
        return _named(next(self.drives))

    @override
    def mapping(self, made: MappedDevice) -> LayerDevice:
        number = next(self.mapped)
        path = programs.pack(self.plan.archive, "dmsetup", "dmsetup")
        without_udev = ("--noudevsync", "--noudevrules")
        self.plan.add("run", argv=[path, "create", f"iolab-{number}", *without_udev, "--table", made.table])
        self._write(f"/sys/block/dm-{number}/queue", dict(made.queue))
        return _named(f"dm-{number}")

    @override
    def message(self, device: LayerDevice, text: str) -> None:
        path = programs.pack(self.plan.archive, "dmsetup", "dmsetup")
        self.plan.add("run", argv=[path, "message", device.name.replace("dm-", "iolab-"), "0", text])

    @override
    def array(self, made: Array, members: Sequence[LayerDevice]) -> LayerDevice:
        name = f"md_iolab_{next(self.arrays)}"
        directory = f"/sys/block/{name}/md"
        self._write("/sys/module/md_mod/parameters", {"new_array": name})
        self._write(directory, dict(made.before))
        for number, member in enumerate(members):
            of_member = f"/sys/block/{member.name}/dev"
            self.plan.add("copy", source=of_member, words="", path=f"{directory}/new_dev", optional=False)
            self._write(f"{directory}/dev-{member.name}", {**dict(made.of_member), "slot": str(number)})
        self._write(directory, dict(made.start))
        return _named(name)

    @override
    def cache_set(self, made: CacheSet) -> LayerDevice:
        dd = programs.pack(self.plan.archive, "dd", "coreutils")
        for device, superblock in made.superblocks:
            file, seek = f"/bcache/{device.name}", made.superblock_at // len(superblock)
            self.plan.archive.add(file, superblock)
            into = [f"of={device.node}", f"bs={len(superblock)}", f"seek={seek}", "conv=fsync"]
            self.plan.add("run", argv=[dd, f"if={file}", *into])
            self._write("/sys/fs/bcache", {"register": device.node})
        name = f"bcache{next(self.cached)}"
        self._write(f"/sys/block/{name}/bcache", dict(made.settings))
        return _named(name)

    def _write(self, directory: str, files: Mapping[str, str]) -> None:
        for file, value in files.items():
            self.plan.add("write", path=f"{directory}/{file}", value=value, optional=False)


def _named(name: str) -> LayerDevice:
    return LayerDevice(name, f"/dev/{name}")
