"""Controls of where a device's work is done besides the submitter: its interrupts, and the kernel's work queues."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from iolab.base import cpu_list
from iolab.base.errors import MachineError
from iolab.domain.trial.target import Reach
from iolab.machines.control import kernel_file
from iolab.machines.control.control import Applied, Context, Control, ModelKeys, queue_device
from iolab.machines.control.cpu import cpu_numbers
from iolab.machines.system import interrupt

if TYPE_CHECKING:
    from iolab.machines.system.undo import UndoJournal

VALUES = "a list of CPU numbers, one number, or a string like '0-3,5'"


class IrqCpus(Control):
    """/proc/irq/N/smp_affinity_list of each vector of the device's requests. A simulated drive has one interrupt."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"queue"})
    takes_list: ClassVar[bool] = True

    @override
    def validate(self, value: Any) -> list[int]:
        return cpu_numbers(self, value)

    @override
    def on_model(self, value: list[int], drives: int) -> ModelKeys:
        return {("drives", str(drive), "interrupt_cpu"): value[drive % len(value)] for drive in range(drives)}

    @override
    def apply(self, context: Context, value: list[int]) -> Applied:
        disk = queue_device(self, context)
        found = interrupt.interrupts_of(disk)
        if not found:
            raise MachineError(
                f"{self.name}: {disk.name} has no interrupts of its own",
                where=context.label,
                remedy="for a loop device, set the CPUs of its kernel threads: workqueue_cpus",
            )
        return kernel_file.together([(one.name, self._move(one, value, context.undo)) for one in found])

    def _move(self, one: interrupt.Interrupt, cpus: list[int], undo: UndoJournal) -> Applied:
        hint = "the kernel manages this interrupt itself, with one vector for each queue's CPUs; leave irq_cpus out"
        return kernel_file.write(
            self.name,
            one.affinity_file,
            cpu_list.text(cpus),
            undo,
            same=cpu_list.same_list,
            hint=hint,
            hint_for=(errno.EIO, errno.EPERM),
        )


class WorkqueueCpus(Control):
    """/sys/devices/virtual/workqueue/cpumask: unbound work of the whole machine, that of loop devices included."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"machine"})
    takes_list: ClassVar[bool] = True

    @override
    def validate(self, value: Any) -> list[int]:
        return cpu_numbers(self, value)

    @override
    def apply(self, context: Context, value: list[int]) -> Applied:
        return pin_workqueues(self.name, value, context.undo)


def pin_workqueues(name: str, cpus: list[int], undo: UndoJournal) -> Applied:
    """Restricts unbound kernel threads to `cpus`; values as lists of CPUs.

    Raises:
        MachineError: the kernel refuses.
    """
    missing = sorted(set(cpus) - set(range(os.cpu_count() or 1)))
    if missing:
        raise MachineError(f"{name}: CPU {cpu_list.text(missing)} is not available here")
    path = interrupt.workqueue_mask()
    done = kernel_file.write(name, path, cpu_list.mask(cpus), undo, same=cpu_list.same_mask)
    before, applied = (cpu_list.text(cpu_list.of_mask(mask)) for mask in (done.before, done.applied))
    return Applied(before, applied, done.notes)


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
