"""Where application, queueing and completion happen on this machine; `domain/control/cell.py` determines what is
possible."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from iolab.base import cpu_list
from iolab.base.errors import MachineError
from iolab.domain.control import cell
from iolab.domain.control.cell import Part
from iolab.domain.control.control import UnsupportedSetting
from iolab.domain.trial import Phase
from iolab.machines.host.control import kernel_file
from iolab.machines.host.control.applier import AppliedValue, Applier, Context, queue_device
from iolab.machines.host.control.interrupt import pin_workqueues
from iolab.machines.system import interrupt
from iolab.machines.system.block import BlockDevice


class Affinity(Applier):
    """Pins the application, its queueing and its completion: by CPU masks, io_uring's thread and rq_affinity."""

    @override
    def apply(self, context: Context, value: dict[str, Part]) -> AppliedValue:
        disk = queue_device(self.name, context)
        allowed = sorted(os.sched_getaffinity(0))
        notes: tuple[str, ...] = ()
        if interrupt.completes_in_threads(disk):
            cpu, notes = self._pinned_threads(allowed[-1], context)
        else:
            cpu = _interrupt_cpu(disk)
        found = cell.resolve(value, allowed, cpu)
        rq_affinity = kernel_file.write(self.name, disk.queue / "rq_affinity", str(found.rq_affinity), context.undo)
        cpus = {name: getattr(found, name) for name in (*cell.PARTS, "interrupt")}
        return AppliedValue(
            {"rq_affinity": rq_affinity.before},
            {**cpus, "rq_affinity": rq_affinity.applied},
            (*notes, *rq_affinity.notes),
        )

    @override
    def place(self, phases: Sequence[Phase], applied: Any) -> Sequence[Phase]:
        if "application" not in applied:
            raise UnsupportedSetting("the target's devices have their interrupts on different CPUs")
        return [self._placed(phase, applied["application"], applied["queue"]) for phase in phases]

    def _placed(self, phase: Phase, application: int, queue: int) -> Phase:
        placed = phase.on_cpus([application])
        if queue == application or not phase.measured:
            return placed
        elsewhere = placed.submitting_on(queue)
        if elsewhere is None:
            raise UnsupportedSetting(
                f"phase {phase.name} is to queue on CPU {queue} and to run on CPU {application}: io_uring's kernel "
                'thread alone does that, with engine = "io_uring"'
            )
        return elsewhere

    def _pinned_threads(self, cpu: int, context: Context) -> tuple[int, tuple[str, ...]]:
        """Where the loop device's threads run: on one CPU, `cpu` unless they are on one already."""
        threads = cpu_list.of_mask(interrupt.workqueue_mask().read_text())
        if len(threads) == 1:
            return threads[0], ()
        pin_workqueues(self.name, [cpu], context.undo)
        return cpu, (f"affinity: the loop device's threads, like all unbound work, are kept on CPU {cpu} meanwhile",)


def _interrupt_cpu(disk: BlockDevice) -> int:
    try:
        cpus = interrupt.completing_cpus(disk)
    except MachineError as error:
        raise UnsupportedSetting(str(error)) from error
    if len(cpus) != 1:
        raise UnsupportedSetting(
            f"{disk.name}: its requests complete on CPUs {cpu_list.text(cpus)}, so none is the interrupt's; irq_cpus "
            "may bring them to one"
        )
    return cpus[0]


APPLIERS: tuple[Applier, ...] = (Affinity("affinity"),)
