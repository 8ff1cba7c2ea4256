"""Where a device's completions come in: its own interrupts, or the kernel threads that do a loop device's I/O.

Sources: Documentation/core-api/irq/irq-affinity.rst, Documentation/ABI/testing/sysfs-bus-pci (msi_irqs),
drivers/block/loop.c (the work queue `loop*` is unbound), Documentation/core-api/workqueue.rst.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from iolab.base import cpu_list
from iolab.base.errors import MachineError
from iolab.machines.system import block
from iolab.machines.system.block import BlockDevice

PROC = Path("/proc")
_OF_REQUESTS = re.compile(r"-req(uest)?\b|^nvme\d+q[1-9]")
"""The vectors that a request's completion comes through, by the names that virtio-blk, virtio-scsi and NVMe give them;
others of the same device announce changes of its configuration, or serve the admin queue."""


@dataclass(frozen=True)
class Interrupt:
    """An interrupt as /proc/interrupts lists it."""

    number: int
    name: str
    """The driver's, as /proc/interrupts ends its line."""

    @property
    def affinity_file(self) -> Path:
        """The file that shows and sets on which CPUs it may arrive."""
        return PROC / "irq" / str(self.number) / "smp_affinity_list"

    @property
    def cpus(self) -> list[int]:
        """The CPUs on which it really arrives; on kernels that do not report them, those on which it may."""
        directory = self.affinity_file.parent
        effective = directory / "effective_affinity_list"
        shown = (effective if effective.exists() else self.affinity_file).read_text().strip()
        return cpu_list.parse(shown) or []


def interrupts_of(disk: BlockDevice) -> list[Interrupt]:
    """The vectors of a disk's requests; none of a device without hardware. A host adapter's serve all of its disks."""
    numbers = _vectors(disk)
    names = _names()
    found = [Interrupt(number, names[number]) for number in sorted(numbers) if number in names]
    return [interrupt for interrupt in found if _OF_REQUESTS.search(interrupt.name)] or found


def workqueue_mask() -> Path:
    """The CPUs that unbound kernel threads may run on, those of loop devices among them."""
    return block.SYS / "devices" / "virtual" / "workqueue" / "cpumask"


def completes_in_threads(disk: BlockDevice) -> bool:
    """Whether kernel threads complete the disk's requests: a loop device that goes through the page cache, or whose
    file is in memory. One with direct I/O to a disk completes where that disk does."""
    return (disk.directory / "loop").is_dir() and not (_does_direct_io(disk) and _below(disk) != disk)


def completing_cpus(disk: BlockDevice) -> list[int]:
    """Where completions come in before rq_affinity moves them.

    Raises:
        MachineError: the device has no interrupts, and is no loop device.
    """
    if completes_in_threads(disk):
        return cpu_list.of_mask(workqueue_mask().read_text())
    below = _below(disk)
    found = interrupts_of(below)
    if not found:
        raise MachineError(f"{below.name} has no interrupts of its own", where=disk.name)
    return sorted({cpu for interrupt in found for cpu in interrupt.cpus})


def _below(disk: BlockDevice) -> BlockDevice:
    """The disk that a loop device's file lies on, else the disk itself."""
    backing = disk.directory / "loop" / "backing_file"
    if not backing.exists():
        return disk
    device = block.device_under(Path(backing.read_text().strip()))
    return _below(device.disk) if device is not None else disk


def _does_direct_io(disk: BlockDevice) -> bool:
    file = disk.directory / "loop" / "dio"
    return file.exists() and file.read_text().strip() == "1"


def _vectors(disk: BlockDevice) -> list[int]:
    hardware = (disk.directory / "device").resolve()
    for directory in (hardware, *hardware.parents):
        vectors = directory / "msi_irqs"
        if vectors.is_dir():
            return [int(entry.name) for entry in vectors.iterdir()]
    return []


def _names() -> dict[int, str]:
    """`36:  0  12174840  PCI-MSIX-0000:00:02.0  1-edge  virtio1-req.0` -> {36: "virtio1-req.0"}."""
    lines = (line.split() for line in (PROC / "interrupts").read_text().splitlines())
    return {int(words[0][:-1]): words[-1] for words in lines if len(words) > 1 and words[0][:-1].isdecimal()}
