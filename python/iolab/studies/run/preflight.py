"""Before trials run: what a killed iolab left on this machine is put back, and what this machine lacks is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolab.base.errors import MachineError
from iolab.domain.probe import PROBES
from iolab.machines.host import probe_needs
from iolab.machines.system import reach
from iolab.machines.system.undo import restore_dead

if TYPE_CHECKING:
    from iolab.domain.executor import Display
    from iolab.domain.experiment import Experiment


def check(experiment: Experiment, progress: Display, on: str | None = None) -> None:
    """Restores what was left; where trials run here, sees that the target answers and states what probes lack. `on`:
    the cluster that runs the trials instead. MachineError if something can't be restored, or does not answer."""
    is_here = experiment.is_of_host and on is None
    _restore_abandoned(progress, simulated=not is_here)
    if is_here:
        reach.check_answer(experiment.target)
        _say_what_probes_lack(experiment, progress)


def _restore_abandoned(progress: Display, *, simulated: bool) -> None:
    try:
        restored = restore_dead()
    except MachineError as error:
        if not simulated:
            raise
        progress.say(str(error))  # nothing of this machine is needed
        return
    for line in restored.done:
        progress.say(f"restored, after a run that was killed: {line}")
    for line in restored.problems:
        progress.say(f"not restored, after a run that was killed: {line}")


def _say_what_probes_lack(experiment: Experiment, progress: Display) -> None:
    """Before it takes long; the run goes on, and each trial's record has the reason too."""
    for name in dict.fromkeys(name for probes in experiment.probes.values() for name in probes):
        for supply in probe_needs.lacking(PROBES[name]):
            progress.say(f"probe {name}: {supply.detail}; {supply.remedy}")
