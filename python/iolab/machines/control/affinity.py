"""The control of where application, queueing and completion happen; `cell.py` states what is possible."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from iolab.base import cpu_list
from iolab.base.errors import MachineError
from iolab.domain.trial.target import Reach
from iolab.machines.control import cell, kernel_file
from iolab.machines.control.control import (
    Applied,
    Context,
    Control,
    ModelKeys,
    UnsupportedSetting,
    of_each_drive,
    queue_device,
)
from iolab.machines.control.interrupt import pin_workqueues
from iolab.machines.system import interrupt

if TYPE_CHECKING:
    from iolab.domain.trial import Phase
    from iolab.machines.control.cell import Part
    from iolab.machines.system.block import BlockDevice


class Affinity(Control):
    """The CPUs on which an application, its requests' queueing and their completion run: A, Q and C."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"queue", "machine"})

    def validate(self, value: Any) -> dict[str, Part]:
        """The cell that the value names: for each part a CPU's number or a word (`cell.WORDS`), letters made words.
        InputError otherwise."""
        if not isinstance(value, Mapping) or set(value) != set(cell.PARTS):
            raise self.expected(value)
        parts = {name: _word(value[name]) for name in cell.PARTS}
        if not all(_is_part(part) for part in parts.values()) or parts["application"] == "application":
            raise self.expected(value)
        return parts

    def axis(self, path: tuple[str, ...], value: Any) -> str | None:
        """How a matrix labels a part: `A=X` for an application on any other CPU; None for what is no part."""
        if len(path) != 2 or path[1] not in cell.PARTS:
            return None
        return f"{cell.PARTS[path[1]]}={cell.letter(_word(value))}"

    def on_model(self, value: dict[str, Part], drives: int) -> ModelKeys:
        """The words as they are: what is elsewhere, the model knows from its CPUs' topology."""
        return of_each_drive(drives, "affinity", value=value)

    @override
    def apply(self, context: Context, value: dict[str, Part]) -> Applied:
        disk = queue_device(self, context)
        allowed = sorted(os.sched_getaffinity(0))
        notes: tuple[str, ...] = ()
        if interrupt.completes_in_threads(disk):
            cpu, notes = self._pinned_threads(allowed[-1], context)
        else:
            cpu = _interrupt_cpu(disk)
        found = cell.resolve(value, allowed, cpu)
        rq_affinity = kernel_file.write(self.name, disk.queue / "rq_affinity", str(found.rq_affinity), context.undo)
        cpus = {name: getattr(found, name) for name in (*cell.PARTS, "interrupt")}
        return Applied(
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


def _word(part: Any) -> Any:
    return cell.LETTERS.get(part, part) if isinstance(part, str) else part


def _is_part(part: Any) -> bool:
    return part in cell.WORDS or (isinstance(part, int) and not isinstance(part, bool) and part >= 0)


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


CONTROLS: tuple[Control, ...] = (
    Affinity(
        "affinity",
        "Where the application runs (A), requests are queued (Q) and complete (C). Lists make the matrix; cells that "
        "the device cannot do are left out, with the reason: docs/reference/affinity.md.",
        values='a table { application, queue, completion }, each a CPU number, "application" (A), "interrupt" (I) or '
        '"other" (X)',
        example='{ application = "other", queue = "application", completion = "interrupt" }',
        excludes=("cpus", "rq_affinity"),
    ),
)
