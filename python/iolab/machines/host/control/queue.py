"""A block device's request queue: files of /sys/block/<disk>/queue.

Source: the kernel's Documentation/ABI/stable/sysfs-block.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path

from typing_extensions import override

from iolab.base.errors import InputError, MachineError, unknown
from iolab.domain.control import queue as declared
from iolab.machines.host.control import kernel_file
from iolab.machines.host.control.applier import AppliedValue, Applier, Context, queue_device
from iolab.machines.system import driver_tags, scheduler
from iolab.machines.system.action import WriteFile
from iolab.machines.system.block import BlockDevice, shown
from iolab.machines.system.undo import UndoJournal

GONE = {"cfq": "bfq", "noop": "none", "anticipatory": "mq-deadline", "as": "mq-deadline"}
"""Schedulers of single-queue block devices -> what stands in their place."""
FIRST_WITHOUT = (5, 0)
"""The first kernel without single-queue block devices (anticipatory left earlier, with 2.6.33)."""


class QueueFile(Applier):
    """A number in one file of the queue directory."""

    @override
    def read(self, context: Context) -> str | None:
        path = queue_device(self.name, context).queue / self.name
        return shown(path) if path.exists() else None

    @override
    def apply(self, context: Context, value: int) -> AppliedValue:
        return kernel_file.write(
            self.name, queue_device(self.name, context).queue / self.name, str(value), context.undo
        )


class Requests(QueueFile):
    """`nr_requests`: a number that is shown already may not be in force."""

    @override
    def apply(self, context: Context, value: int) -> AppliedValue:
        device = queue_device(self.name, context)
        path = device.queue / self.name
        if path.exists() and shown(path) == str(value) and shown(device.queue / "scheduler") == "none":
            tags = driver_tags.of(device)
            if tags is None or tags.used != value:
                return self._write_anew(path, str(value))
        return super().apply(context, value)

    def _write_anew(self, path: Path, value: str) -> AppliedValue:
        kernel_file.check_writable(self.name, path)
        try:
            driver_tags.write(path, value)
        except OSError as error:
            raise MachineError(f"{self.name}: the kernel refuses {value}: {error.strerror}", where=str(path)) from error
        return AppliedValue(value, shown(path))


class Scheduler(Applier):
    """The I/O scheduler and its tunables, any file of queue/iosched."""

    @override
    def read(self, context: Context) -> declared.SchedulerTexts:
        device = queue_device(self.name, context)
        tunables = {name: shown(device.queue / "iosched" / name) for name in scheduler.tunables(device)}
        return {"name": shown(device.queue / "scheduler"), **tunables}

    @override
    def apply(self, context: Context, value: declared.SchedulerTexts) -> AppliedValue:
        device = queue_device(self.name, context)
        before = self.read(context)
        if value["name"] == before["name"]:
            _journal_tunables(device, before, context.undo)
        _switch_scheduler(device, value["name"], context.undo)
        notes: list[str] = []
        for name, wanted in value.items():
            if name != "name":
                notes += self._write_tunable(device, value["name"], name, wanted, context.undo)
        return AppliedValue(before, self.read(context), tuple(notes))

    def _write_tunable(
        self, device: BlockDevice, scheduler_name: str, name: str, wanted: str, undo: UndoJournal
    ) -> tuple[str, ...]:
        known = scheduler.tunables(device)
        if name not in known:
            raise InputError(unknown(f"tunable {name!r} of scheduler {scheduler_name}", name, known), where="scheduler")
        return kernel_file.write(f"scheduler.{name}", device.queue / "iosched" / name, wanted, undo).notes


def _journal_tunables(device: BlockDevice, before: Mapping[str, str], undo: UndoJournal) -> None:
    """All of them: some change others (BFQ's strict_guarantees raises slice_idle, block/bfq-iosched.c)."""
    for name, value in before.items():
        if name != "name":
            undo.before(WriteFile(str(device.queue / "iosched" / name), value))


def _kernel_before(version: tuple[int, int]) -> bool:
    found = re.match(r"(\d{1,4})\.(\d{1,4})", os.uname().release)
    return found is not None and (int(found[1]), int(found[2])) < version


def _switch_scheduler(device: BlockDevice, name: str, undo: UndoJournal) -> None:
    path = device.queue / "scheduler"
    kernel_file.check_writable("scheduler", path)
    if (below := device.disks_below) and name != "none" and scheduler.available(device) == ["none"]:
        files = " ".join(str(disk.queue / "scheduler") for disk in below)
        raise MachineError(
            f"{device.name} has no scheduler of its own: its I/O is scheduled on the disks below, "
            f"{', '.join(disk.name for disk in below)}",
            where=str(path),
            remedy=f"before the run, write it there: echo {name} | sudo tee {files}",
        )
    try:
        scheduler.switch(device, name, undo)
    except OSError as error:
        there = scheduler.available(device)
        if error.errno not in (errno.EINVAL, errno.ENOENT) or name in there:
            raise MachineError(f"the kernel refuses {name}: {error.strerror}", where=str(path)) from error
        if name in GONE and not _kernel_before(FIRST_WITHOUT):
            raise MachineError(
                f"{name} left the kernel with {'.'.join(map(str, FIRST_WITHOUT))}; here are {', '.join(there)}",
                where=str(path),
                remedy=f'its successor: scheduler = "{GONE[name]}"; or simulate it: --machine model:NAME',
            ) from error
        raise MachineError(
            unknown(f"scheduler {name!r}", name, there), where=str(path), remedy=f"or load it: sudo modprobe {name}"
        ) from error
    if shown(path) != name:
        raise MachineError(f"the kernel keeps {shown(path)} although {name} was written", where=str(path))


APPLIERS: tuple[Applier, ...] = (
    Scheduler("scheduler"),
    *(
        (Requests if control.name == "nr_requests" else QueueFile)(control.name)
        for control in declared.CONTROLS
        if isinstance(control, declared.QueueFile)
    ),
)
