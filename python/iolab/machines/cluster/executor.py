"""The executor of `--on ray`: simulated machines and guests on any node, hosts where they offer themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from types import TracebackType
from typing import Self

from iolab.domain.executor import OnProgress, ShouldStop
from iolab.domain.record import Record
from iolab.domain.trial import DeviceIdentity, Trial
from iolab.machines.cluster.connection import SILENCE_S, Connection
from iolab.machines.cluster.hosts import PATIENCE_S, HostRounds
from iolab.machines.cluster.pool import ClusterPool
from iolab.machines.model import ModelExecutor


class ClusterExecutor:
    """An `iolab.domain.executor.ConcurrentExecutor`. Use as a context."""

    def __init__(self, on: str, patience_s: float | None = None) -> None:
        """
        Args:
            on: `ray`, or `ray://HOST:PORT`.
            patience_s: how long a cluster may not answer, or a host be gone; None: 30 s and a minute.

        Raises:
            InputError, MachineError: as `Connection`.
        """
        self._connection = Connection(on, silence_s=patience_s or SILENCE_S)
        self._anywhere = ModelExecutor(pool=ClusterPool(self._connection))
        self._hosts = HostRounds(self._connection, patience_s or PATIENCE_S)

    def pin(self, host_of: Mapping[int, str]) -> None:
        """Gives the host on which the rounds of a resumed run began."""
        self._hosts.pin(host_of)

    def expect(self, trials: Iterable[Trial]) -> None:
        """See `Executor.expect`. All are of hosts, or none is."""
        coming = iter(trials)
        first = next(coming, None)
        if first is not None:
            (self._hosts if first.is_of_host else self._anywhere).expect(chain([first], coming))

    def admit(self, trial: Trial, should_stop: ShouldStop) -> list[DeviceIdentity]:
        """See `Executor.admit`. Each host's agent looks at that host's devices before it writes to them."""
        return []

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        """See `Executor.run`."""
        return (self._hosts if trial.is_of_host else self._anywhere).run(trial, on_progress, should_stop)

    def soonest(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Trial:
        """See `RunsAhead.soonest`."""
        return (self._hosts if trial.is_of_host else self._anywhere).soonest(trial, on_progress, should_stop)

    def close(self) -> None:
        """Ends what was begun and not asked for, and leaves the cluster."""
        self._anywhere.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()
