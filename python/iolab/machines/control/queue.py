"""Controls of a block device's request queue: files of /sys/block/<disk>/queue.

Source: the kernel's Documentation/ABI/stable/sysfs-block.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from iolab import _native
from iolab.base.errors import InputError, MachineError, unknown
from iolab.base.quantity import parse_duration_ns
from iolab.domain.trial.target import Reach
from iolab.machines.control import kernel_file
from iolab.machines.control.control import (
    Applied,
    Context,
    Control,
    GuestFiles,
    ModelKeys,
    Range,
    of_each_drive,
    queue_device,
    whole_number,
)
from iolab.machines.system import scheduler
from iolab.machines.system.action import WriteFile
from iolab.machines.system.block import shown

if TYPE_CHECKING:
    from iolab.machines.system.block import BlockDevice
    from iolab.machines.system.undo import UndoJournal

TUNABLE_UNIT_NS: dict[str, int] = json.loads(_native.time_tunables_ns())
"""What one unit of a time tunable is, of schedulers that the model knows (crates/block-layer/src/scheduler/spec)."""


GONE = {"cfq": "bfq", "noop": "none", "anticipatory": "mq-deadline", "as": "mq-deadline"}
"""Schedulers of single-queue block devices -> what stands in their place."""
FIRST_WITHOUT = (5, 0)
"""The first kernel without single-queue block devices (anticipatory left earlier, with 2.6.33)."""


class QueueFile(Control):
    """A number in one file of the queue directory."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"queue"})

    def __init__(
        self,
        name: str,
        help: str,
        *,
        at_least: int = 0,
        at_most: int | None = None,
        **words: Any,
    ) -> None:
        super().__init__(name, help, **words)
        self._at_least = at_least
        self._at_most = at_most

    @override
    def validate(self, value: Any) -> int:
        return whole_number(self, value, at_least=self._at_least, at_most=self._at_most)

    @override
    def on_model(self, value: int, drives: int) -> ModelKeys:
        return of_each_drive(drives, "queue", self.name, value=value)

    @override
    def on_guest(self, value: int) -> GuestFiles:
        return [(f"{{queue}}/{self.name}", str(value))]

    @override
    def read(self, context: Context) -> str | None:
        path = queue_device(self, context).queue / self.name
        return shown(path) if path.exists() else None

    @override
    def apply(self, context: Context, value: int) -> Applied:
        return kernel_file.write(self.name, queue_device(self, context).queue / self.name, str(value), context.undo)


class Scheduler(Control):
    """The I/O scheduler and its tunables, any file of queue/iosched."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"queue"})

    def validate(self, value: Any) -> dict[str, str]:
        """`"bfq"`, `{name = "bfq", slice_idle = "8ms"}` -> {"name": "bfq", "slice_idle": "8"}, as the kernel has it."""
        table = {"name": value} if isinstance(value, str) else value
        if not isinstance(table, Mapping):
            raise self.expected(value)
        name = table.get("name")
        if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9_-]+", name):
            raise self.expected(value)
        tunables = {str(key): self._tunable(str(key), given) for key, given in table.items() if key != "name"}
        if name == "none" and tunables:
            raise InputError(f"scheduler none has no tunables, and {', '.join(tunables)} is given")
        return {"name": name, **tunables}

    @override
    def on_model(self, value: dict[str, str], drives: int) -> ModelKeys:
        return of_each_drive(drives, "scheduler", value=value)

    @override
    def on_guest(self, value: dict[str, str]) -> GuestFiles:
        tunables = [(f"{{queue}}/iosched/{name}", given) for name, given in value.items() if name != "name"]
        return [("{queue}/scheduler", value["name"]), *tunables]

    @override
    def read(self, context: Context) -> dict[str, str]:
        device = queue_device(self, context)
        tunables = {name: shown(device.queue / "iosched" / name) for name in scheduler.tunables(device)}
        return {"name": shown(device.queue / "scheduler"), **tunables}

    @override
    def apply(self, context: Context, value: dict[str, str]) -> Applied:
        device = queue_device(self, context)
        before = self.read(context)
        if value["name"] == before["name"]:
            _journal_tunables(device, before, context.undo)
        _switch_scheduler(device, value["name"], context.undo)
        notes: list[str] = []
        for name, wanted in value.items():
            if name != "name":
                notes += self._write_tunable(device, value["name"], name, wanted, context.undo)
        return Applied(before, self.read(context), tuple(notes))

    def _write_tunable(
        self, device: BlockDevice, scheduler_name: str, name: str, wanted: str, undo: UndoJournal
    ) -> tuple[str, ...]:
        known = scheduler.tunables(device)
        if name not in known:
            raise InputError(unknown(f"tunable {name!r} of scheduler {scheduler_name}", name, known), where="scheduler")
        return kernel_file.write(f"scheduler.{name}", device.queue / "iosched" / name, wanted, undo).notes

    def _tunable(self, name: str, value: Any) -> str:
        if not re.fullmatch(r"\w+", name):
            raise InputError(f"scheduler: a tunable cannot be named {name!r}", remedy="see the files of queue/iosched")
        if isinstance(value, bool):
            return str(int(value))
        if isinstance(value, int):
            return str(value)
        if not isinstance(value, str) or not value.strip():
            raise InputError(f"scheduler.{name} is {value!r}, expected a number, true, false or a duration like '8ms'")
        text = value.strip()
        return text if re.fullmatch(r"-?\d+", text) else self._duration(name, text)

    def _duration(self, name: str, text: str) -> str:
        unit_ns = TUNABLE_UNIT_NS.get(name)
        if unit_ns is None:
            return text  # the kernel will state whether it knows the word

        try:
            duration_ns = parse_duration_ns(text)
        except ValueError as error:
            raise InputError(f"scheduler.{name}: {error}") from error
        if duration_ns % unit_ns:
            raise InputError(f"scheduler.{name} is {text!r}, expected a multiple of {unit_ns} ns: the kernel's unit")
        return str(duration_ns // unit_ns)


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


CONTROLS: tuple[Control, ...] = (
    Scheduler(
        "scheduler",
        "I/O scheduler of the queue, with its tunables: any file of queue/iosched, times also as '8ms'.",
        values='a name as in queue/scheduler, or a table { name = "...", tunable = value, ... }',
        example='{ name = "bfq", slice_idle = "0" }',
        tried=("none", "mq-deadline", "kyber", "bfq"),
    ),
    QueueFile(
        "nr_requests",
        "Requests that the queue holds, per hardware queue; reset by each change of scheduler, so applied after it.",
        values="a whole number from 4",
        at_least=4,
        example="64",
        tried=Range(16, 1024, log=True),
    ),
    QueueFile(
        "rq_affinity",
        "Where a request completes: 0 where the interrupt arrived, 1 in the submitter's group of CPUs, 2 on the "
        "submitter's CPU.",
        values="0, 1 or 2",
        at_most=2,
        example="2",
        tried=(0, 1, 2),
    ),
    QueueFile(
        "nomerges",
        "Merging of requests: 0 all merges, 1 only the simple one-hit merges, 2 none.",
        values="0, 1 or 2",
        at_most=2,
        example="2",
        tried=(0, 1, 2),
    ),
    QueueFile(
        "read_ahead_kb",
        "How far buffered sequential reads are read ahead.",
        values="a whole number",
        unit="KiB",
        example="1024",
        tried=Range(16, 4096, log=True),
    ),
    QueueFile(
        "max_sectors_kb",
        "Largest request that the block layer builds; at most max_hw_sectors_kb.",
        values="a whole number from 1",
        unit="KiB",
        at_least=1,
        example="512",
        tried=Range(64, 1024, log=True),
    ),
    QueueFile(
        "wbt_lat_usec",
        "Throttling of writeback: reads are to take no longer than this, or less is written back; 0 turns it off. "
        "Reset by each change of scheduler, so applied after it.",
        values="a whole number",
        unit="us",
        example="2000",
        tried=(0, 2000, 10000, 75000),
    ),
    QueueFile(
        "io_poll",
        "Whether tasks can poll for completions (poll = true); the driver has to have queues for it, as nvme with "
        "poll_queues.",
        values="0 or 1",
        at_most=1,
        example="1",
    ),
    QueueFile(
        "io_poll_delay",
        "How long a polling task sleeps first: -1 not at all, 0 half the mean time of such requests, else this long. "
        "Kernels "
        "from 4.10 to 6.3.",
        values="a whole number from -1",
        unit="us",
        at_least=-1,
        example="0",
    ),
    QueueFile(
        "rotational",
        "What schedulers and throttling take the device for: 1 seeks cost time, 0 they do not.",
        values="0 or 1",
        at_most=1,
        example="0",
        tried=(0, 1),
    ),
)
