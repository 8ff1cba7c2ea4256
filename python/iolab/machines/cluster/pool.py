"""A cluster's CPUs as slots for trials of simulated machines and guests."""

from __future__ import annotations

from concurrent.futures import Future

from iolab.domain.executor import OnProgress, ShouldStop
from iolab.domain.record import Record
from iolab.domain.trial import Trial
from iolab.machines.cluster.connection import Connection


class ClusterPool:
    """An `iolab.domain.executor.Pool`. Nodes that come late are used; what a lost node ran is begun again elsewhere."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def slots(self) -> int:
        """See `Pool.slots`."""
        return max(1, self._connection.slots)

    def begin(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Future[Record]:
        """See `Pool.begin`."""
        return self._connection.begin(trial, should_stop)

    def close(self) -> None:
        """See `Pool.close`: the connection's owner closes it."""
