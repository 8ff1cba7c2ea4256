"""Lets a search continue past candidates that the machine refuses."""

from __future__ import annotations

from collections.abc import Iterable

from iolab.base.errors import InputError, InterruptedRun, MachineError
from iolab.domain.executor import Display, Executor, LeftBehind, OnProgress, ShouldStop, TrialStalled
from iolab.domain.record import Record, impossible
from iolab.domain.trial import DeviceIdentity, Trial
from iolab.machines.fork_server import ServerEnded

REFUSALS_MAX = 4
"""So many candidates that the machine refuses one after another, without one that it takes, end the search."""


class RefusalGuard:
    """An executor that takes a candidate which the machine refuses for one that can't be measured."""

    def __init__(self, inner: Executor, baseline: str, refused: dict[str, str], progress: Display) -> None:
        self._inner, self._baseline, self._refused, self._progress = inner, baseline, refused, progress

    def expect(self, trials: Iterable[Trial]) -> None:
        """See `Executor.expect`."""
        self._inner.expect(trials)

    def admit(self, trial: Trial, should_stop: ShouldStop) -> list[DeviceIdentity]:
        """See `Executor.admit`."""
        return self._inner.admit(trial, should_stop)

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        """See `Executor.run`. An error of the default is one of all; so are many in a row."""
        try:
            record = self._inner.run(trial, on_progress, should_stop)
        except (TrialStalled, LeftBehind, InterruptedRun, ServerEnded):
            raise
        except (MachineError, InputError) as error:
            if trial.setting == self._baseline or len(self._refused) >= REFUSALS_MAX:
                raise
            self._refused[trial.setting] = str(error)
            self._progress.report_line(f"{trial.setting} is left out: {error}")
            return impossible(trial, {"refused": str(error)})
        if trial.setting != self._baseline:
            self._refused.clear()
        return record
