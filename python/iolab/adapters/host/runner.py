"""Who runs a phase of which kind. A runner takes a placed phase and what surrounds it, and returns its record."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from iolab.adapters.host import commands, fio, load, metadata, sort, weighted_load

if TYPE_CHECKING:
    from iolab.adapters.host.surroundings import Surroundings
    from iolab.domain.trial import Phase


Runner = Callable[[Any, "Surroundings"], dict[str, Any]]

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
    """The phase's record: the engine's (crates/workload/src/record.rs), or one that `iolab.domain.phase_record` makes
    in its likeness. Its `stopped` is true when `should_stop` became so.

    Raises:
        InputError: the phase is impossible.
        MachineError: the kernel refuses.
    """
    return RUNNERS[phase.kind](phase, around)
