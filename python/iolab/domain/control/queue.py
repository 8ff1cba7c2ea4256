"""Controls of a block device's request queue: files of /sys/block/<disk>/queue.

Source: the kernel's Documentation/ABI/stable/sysfs-block.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from iolab.base.errors import InputError
from iolab.base.quantity import parse_duration_ns
from iolab.domain.control.control import Control, GuestFiles, ModelKeys, Number, Range, of_each_drive
from iolab.domain.trial.target import Reach

_MILLISECONDS = (
    "antic_expire batch_expire fifo_batch_expire fifo_expire_async fifo_expire_sync group_idle prio_aging_expire"
    " read_batch_expire read_expire slice_async slice_idle slice_sync timeout_sync write_batch_expire write_expire"
)
TUNABLE_UNIT_NS = {
    **dict.fromkeys(_MILLISECONDS.split(), 1_000_000),
    "slice_idle_us": 1_000,
    "read_lat_nsec": 1,
    "write_lat_nsec": 1,
}
"""What one unit of a time tunable is (the schedulers' sources: `show` and `store` of their attributes); a test compares
it with the model's (crates/model/block-layer/src/scheduler/spec)."""


SchedulerTexts = dict[str, str]
"""The scheduler's `name`, and its tunables as the kernel's files take them, times in a file's own unit: the one form in
trials, on this machine, in a guest and in the model."""


class QueueFile(Number):
    """A number in one file of the queue directory."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"queue"})

    @override
    def on_model(self, value: int, drives: int) -> ModelKeys:
        return of_each_drive(drives, "queue", self.name, value=value)

    @override
    def on_guest(self, value: int) -> GuestFiles:
        return [(f"{{queue}}/{self.name}", str(value))]


class Scheduler(Control):
    """The I/O scheduler and its tunables, any file of queue/iosched."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"queue"})

    def validate(self, value: Any) -> SchedulerTexts:
        """`"bfq"`, `{name = "bfq", slice_idle = "8ms"}` -> {"name": "bfq", "slice_idle": "8"}."""
        table = {"name": value} if isinstance(value, str) else value
        if not isinstance(table, Mapping):
            raise self.expected(value)
        name = table.get("name")
        if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9_-]+", name):
            raise self.expected(value)
        tunables = {str(key): _kernel_text(str(key), given) for key, given in table.items() if key != "name"}
        if name == "none" and tunables:
            raise InputError(f"scheduler none has no tunables, and {', '.join(tunables)} is given")
        return {"name": name, **tunables}

    @override
    def on_model(self, value: SchedulerTexts, drives: int) -> ModelKeys:
        return of_each_drive(drives, "scheduler", value=value)

    @override
    def on_guest(self, value: SchedulerTexts) -> GuestFiles:
        tunables = [(f"{{queue}}/iosched/{name}", given) for name, given in value.items() if name != "name"]
        return [("{queue}/scheduler", value["name"]), *tunables]


def _kernel_text(tunable: str, value: Any) -> str:
    """What the tunable's file takes. InputError for what no such file does, or a time that is no multiple of its
    unit."""
    if not re.fullmatch(r"\w+", tunable):
        raise InputError(f"scheduler: a tunable cannot be named {tunable!r}", remedy="see the files of queue/iosched")
    if isinstance(value, bool | int):
        return str(int(value))
    if not isinstance(value, str) or not (text := value.strip()):
        raise InputError(f"scheduler.{tunable} is {value!r}, expected a number, true, false or a duration like '8ms'")
    unit_ns = TUNABLE_UNIT_NS.get(tunable)
    if unit_ns is None or re.fullmatch(r"-?\d+", text):
        return text  # the kernel accepts or refuses a word
    try:
        duration_ns = parse_duration_ns(text)
    except ValueError as error:
        raise InputError(f"scheduler.{tunable}: {error}") from error
    if duration_ns % unit_ns:
        raise InputError(f"scheduler.{tunable} is {text!r}, expected a multiple of {unit_ns} ns: the kernel's unit")
    return str(duration_ns // unit_ns)


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
        "Requests that the queue holds, per hardware queue; reset by each change of scheduler, so applied after it. "
        "Up to Linux 6.17.2, mq-deadline keeps the limit of writes that it took from the former number; from 6.12.43 "
        "on, bfq and kyber do too.",
        values="a whole number from 4",
        at_least=4,
        example="64",
        tried=Range(16, 1024, log=True),
    ),
    QueueFile(
        "rq_affinity",
        "Where a request completes: 0 on the CPU that got the interrupt, 1 in the submitter's group of CPUs, 2 on the "
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
        "Whether schedulers and throttling assume that seeks cost time: 1 yes, 0 no.",
        values="0 or 1",
        at_most=1,
        example="0",
        tried=(0, 1),
    ),
    QueueFile(
        "iostats",
        "Whether the queue counts its I/O and their times (iostat, /proc/diskstats): 1 yes, 0 no.",
        values="0 or 1",
        at_most=1,
        example="0",
    ),
    QueueFile(
        "add_random",
        "Whether the times of completions go into the kernel's pool of random numbers: 1 yes, 0 no.",
        values="0 or 1",
        at_most=1,
        example="0",
    ),
)
