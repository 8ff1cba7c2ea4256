"""Who runs a phase of which kind. A runner takes a placed phase and what surrounds it, and returns its record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iolab.executor import OnProgress, ShouldStop
from iolab.machine import commands, fio, load, metadata, sort, weighted_load

if TYPE_CHECKING:
    from iolab import _native
    from iolab.machine.site import Site
    from iolab.machine.undo import UndoJournal
    from iolab.trial import Phase


@dataclass(frozen=True)
class Surroundings:
    """What a runner may use. Whatever it changes on the machine is in `undo` first."""

    site: Site
    memory: _native.Memory
    """What earlier phases of the trial wrote, for those that verify."""
    undo: UndoJournal
    on_progress: OnProgress
    should_stop: ShouldStop


Runner = Callable[[Any, Surroundings], dict[str, Any]]

RUNNERS: dict[str, Runner] = {
    "load": load.run,
    "metadata": metadata.run,
    "commands": commands.run,
    "weighted_load": weighted_load.run,
    "fio": fio.run,
    "sort": sort.run,
}
"""By the phase's kind."""


def run(phase: Phase, around: Surroundings) -> dict[str, Any]:
    """The phase's record: the engine's (crates/engine/src/record.rs), or one that `iolab.phase_record` makes in its
    likeness. Its `stopped` is true when `should_stop` became so.

    Raises:
        InputError: the phase is impossible.
        MachineError: the kernel refuses.
    """
    return RUNNERS[phase.kind](phase, around)
