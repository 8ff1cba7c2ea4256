"""Controls of where a device's work is done besides the submitter: its interrupts, and the kernel's work queues."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from iolab.domain.control.control import Control, ModelKeys
from iolab.domain.control.cpu import VALUES, CpuList
from iolab.domain.trial.target import Reach


class IrqCpus(CpuList):
    """The CPUs of each interrupt of the device's requests. A simulated drive has one."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"queue"})

    @override
    def on_model(self, value: list[int], drives: int) -> ModelKeys:
        return {("drives", str(drive), "interrupt_cpu"): value[drive % len(value)] for drive in range(drives)}


class WorkqueueCpus(CpuList):
    """The CPUs of unbound work of the whole machine, that of loop devices included."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"machine"})


CONTROLS: tuple[Control, ...] = (
    IrqCpus(
        "irq_cpus",
        "CPUs that the interrupts of the device's requests go to. Interrupts that the kernel manages (NVMe) cannot be "
        "moved, and a loop device has none. The drives of a simulated machine take one each, in turn.",
        values=VALUES,
        example="[0]",
    ),
    WorkqueueCpus(
        "workqueue_cpus",
        "CPUs of the kernel's unbound workqueues, which do a loop device's I/O; machine-wide.",
        values=VALUES,
        example="[1]",
    ),
)
