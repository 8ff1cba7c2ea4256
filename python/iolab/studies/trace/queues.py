"""Which CPUs submit to which hardware queue of a device of this machine: no trace of block events holds it."""

from __future__ import annotations

from pathlib import Path

from iolab.base import cpu_list
from iolab.base.errors import InputError
from iolab.machines.system.block import device_at


def queues_of(device: Path) -> list[list[int]]:
    """The CPUs of each hardware queue of the disk, as `/sys/block/NAME/mq/N/cpu_list` has them.

    Raises:
        InputError: no block device, or one without such queues.
    """
    if not device.is_block_device():
        raise InputError("is no block device", where=f"--queues {device}", remedy="name one, such as /dev/nvme0n1")
    disk = device_at(device.resolve()).disk.name
    lists = sorted(Path("/sys/block", disk, "mq").glob("*/cpu_list"), key=lambda path: int(path.parent.name))
    if not lists:
        raise InputError("has no hardware queues", where=f"--queues {device}")
    return [cpu_list.parse(path.read_text().replace(" ", "").strip()) or [] for path in lists]
