"""What surrounds a phase that is run here: where its files are, who gets the progress, how to undo changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from iolab.domain.executor import OnProgress, ShouldStop

if TYPE_CHECKING:
    from iolab import _native
    from iolab.machines.host.groups import Groups
    from iolab.machines.host.site import Site
    from iolab.machines.system.undo import UndoJournal


@dataclass(frozen=True)
class Surroundings:
    """What a runner (`RUNNERS` in `iolab.machines.host.host`) may use. Whatever it changes on the
    machine is in `undo` first."""

    site: Site
    memory: _native.Memory
    """What earlier phases of the trial wrote, for those that verify."""
    undo: UndoJournal
    on_progress: OnProgress
    should_stop: ShouldStop
    groups: Mapping[str, Groups] = field(default_factory=dict)
    """By phase: its control groups, if it has any of its own."""
