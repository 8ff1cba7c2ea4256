"""Where a device's work is done besides the submitter: its interrupts, and the kernel's work queues."""

from __future__ import annotations

import errno
import os

from typing_extensions import override

from iolab.base import cpu_list
from iolab.base.errors import MachineError
from iolab.machines.host.control import kernel_file
from iolab.machines.host.control.applier import AppliedValue, Applier, Context, queue_device
from iolab.machines.system import interrupt
from iolab.machines.system.undo import UndoJournal


class IrqCpus(Applier):
    """/proc/irq/N/smp_affinity_list of each vector of the device's requests."""

    @override
    def apply(self, context: Context, value: list[int]) -> AppliedValue:
        disk = queue_device(self.name, context)
        found = interrupt.interrupts_of(disk)
        if not found:
            raise MachineError(
                f"{self.name}: {disk.name} has no interrupts of its own",
                where=context.label,
                remedy="for a loop device, set the CPUs of its kernel threads: workqueue_cpus",
            )
        return kernel_file.together([(one.name, self._move(one, value, context.undo)) for one in found])

    def _move(self, one: interrupt.Interrupt, cpus: list[int], undo: UndoJournal) -> AppliedValue:
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


class WorkqueueCpus(Applier):
    """/sys/devices/virtual/workqueue/cpumask: unbound work of the whole machine, that of loop devices included."""

    @override
    def apply(self, context: Context, value: list[int]) -> AppliedValue:
        return pin_workqueues(self.name, value, context.undo)


def pin_workqueues(name: str, cpus: list[int], undo: UndoJournal) -> AppliedValue:
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
    return AppliedValue(before, applied, done.notes)


APPLIERS: tuple[Applier, ...] = (IrqCpus("irq_cpus"), WorkqueueCpus("workqueue_cpus"))
