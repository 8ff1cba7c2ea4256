"""Before trials run: what a killed iolab left on this machine is put back, and what this machine lacks is said."""

from __future__ import annotations

from iolab.domain.executor import Display
from iolab.domain.experiment import Experiment
from iolab.machines.ports import port_of
from iolab.machines.system import recovery


def check(experiment: Experiment, progress: Display, on: str | None = None) -> None:
    """As the experiment's machine needs it. `on`: the cluster that runs the trials instead. MachineError if something
    can't be restored, or does not answer."""
    if on is not None:
        recovery.put_back(progress.report_line, needed=False)
        return
    probes = dict.fromkeys(name for on_in in experiment.probes.values() for name in on_in)
    port_of(experiment.machine).preflight(experiment.target, experiment.settings, probes, progress.report_line)
