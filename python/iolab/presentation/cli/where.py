"""`--on`: where trials run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iolab.machines.cluster import OnCluster
    from iolab.studies.run.by_machine import ByMachine


def executor_on(on: str | None, patience_s: float | None) -> ByMachine | OnCluster:
    """The executor, a context: of this machine, or of the cluster that `on` names. InputError if it names none,
    MachineError if none answers there."""
    if on is None:
        from iolab.studies.run.by_machine import ByMachine

        return ByMachine(patience_s)
    from iolab.machines.cluster import OnCluster

    return OnCluster(on, patience_s)
