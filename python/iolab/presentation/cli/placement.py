"""`--on`: where trials run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iolab.machines.cluster import ClusterExecutor
    from iolab.studies.run.machine_executor import MachineExecutor


def executor_on(on: str | None, patience_s: float | None) -> MachineExecutor | ClusterExecutor:
    """The executor, a context: of this machine, or of the cluster that `on` names. InputError if it names none,
    MachineError if none answers there."""
    if on is None:
        from iolab.studies.run.machine_executor import MachineExecutor

        return MachineExecutor(patience_s)
    from iolab.machines.cluster import ClusterExecutor

    return ClusterExecutor(on, patience_s)
