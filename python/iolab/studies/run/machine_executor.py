"""Hands each trial to the machine that it names: this one, a simulated one or a guest."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from types import TracebackType
from typing import Self

from iolab.domain.executor import OnProgress, ShouldStop
from iolab.domain.record import Record
from iolab.domain.trial import DeviceIdentity, Trial
from iolab.machines.host.local_process import LocalProcess
from iolab.machines.model import ModelExecutor


class MachineExecutor:
    """Each trial on the machine that it names. Use as a context."""

    def __init__(self, patience_s: float | None = None) -> None:
        """`patience_s`: see `LocalProcess`."""
        self._host = LocalProcess(patience_s)
        self._model = ModelExecutor()

    def expect(self, trials: Iterable[Trial]) -> None:
        """See `Executor.expect`. A host does one at a time; a guest's time is its own, whatever else runs."""
        coming = iter(trials)
        for first in coming:  # a run has one machine
            chosen = self._host if first.is_of_host else self._model
            chosen.expect(chain([first], coming))
            break

    def admit(self, trial: Trial, should_stop: ShouldStop) -> list[DeviceIdentity]:
        """See `Executor.admit`."""
        return self._host.admit(trial, should_stop)

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        """See `Executor.run`."""
        chosen = self._host if trial.is_of_host else self._model
        return chosen.run(trial, on_progress, should_stop)

    def soonest(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Trial:
        """See `RunsAhead.soonest`."""
        return trial if trial.is_of_host else self._model.soonest(trial, on_progress, should_stop)

    def close(self) -> None:
        """Closes both executors: trials begun ahead end, and locks on targets are released."""
        self._model.close()
        self._host.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()
