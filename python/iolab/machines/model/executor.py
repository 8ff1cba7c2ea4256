"""Simulates trials ahead of the one that is asked for, as many at once as a pool has slots, and hands their records
back in the order asked, or as they end.

A trial's record is a function of the trial: it is the same wherever it is simulated, and whatever runs beside it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from iolab.domain.executor import OnProgress, Pool, Progress, ShouldStop
from iolab.domain.record import Record
from iolab.domain.trial import DeviceIdentity, Trial
from iolab.machines.model.pool import LocalPool, Simulate
from iolab.machines.worker_process import POLL_S


class ModelExecutor:
    """An `iolab.domain.executor.ConcurrentExecutor` for trials of simulated machines. Use as a context."""

    def __init__(self, *, cores: int | None = None, simulate: Simulate | None = None, pool: Pool | None = None) -> None:
        """`pool`: where they run; without one on this machine, with `cores` and `simulate` as `LocalPool` has them."""
        self._pool: Pool = pool or LocalPool(cores, simulate)
        self._stop = threading.Event()
        self._expected: Iterator[Trial] = iter(())
        self._begun: deque[_RunningTrial] = deque()
        self._soonest: _RunningTrial | None = None
        """What `soonest` named last, until it is asked for."""

    def expect(self, trials: Iterable[Trial]) -> None:
        """See `Executor.expect`. Taken from as slots become free, no more than a few trials ahead."""
        self._expected = iter(trials)

    def admit(self, trial: Trial, should_stop: ShouldStop) -> list[DeviceIdentity]:
        """See `Executor.admit`. A simulated machine writes to no device of this one."""
        return []

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        """See `Executor.run`."""
        self._begin_expected()
        asked = self._take(trial)
        while True:
            self._begin_expected()
            done, _ = wait([asked.record], POLL_S)
            if done:
                return asked.record.result()
            if should_stop():
                self._stop.set()
            on_progress(asked.progress)

    def soonest(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Trial:
        """See `RunsAhead.soonest`."""
        self._begin_expected()
        asked = next((begun for begun in self._begun if begun.trial == trial), None)
        if asked is None:
            asked = self._begin(trial)
            self._begun.appendleft(asked)
        while not should_stop():
            self._begin_expected()
            done, _ = wait([begun.record for begun in self._begun], POLL_S, FIRST_COMPLETED)
            if done:
                first = asked if asked.record in done else next(one for one in self._begun if one.record in done)
                self._soonest = first
                return first.trial
            on_progress(asked.progress)
        return trial

    def close(self) -> None:
        """Ends what was begun and not asked for."""
        self._stop.set()
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def _take(self, trial: Trial) -> _RunningTrial:
        """What was begun of it, or begun now. What was expected before it is not asked for any more, unless it was
        `soonest` that named it."""
        if (soonest := self._soonest) is not None and soonest.trial == trial:
            self._soonest = None
            self._begun.remove(soonest)
            return soonest
        if any(begun.trial == trial for begun in self._begun):
            while (begun := self._begun.popleft()).trial != trial:
                begun.record.cancel()
            return begun
        return self._begin(trial)

    def _begin_expected(self) -> None:
        """Enough that no slot is idle while a record is being stored."""
        while not self._stop.is_set() and len(self._begun) < 2 * self._pool.slots:
            trial = next(self._expected, None)
            if trial is None:
                return
            self._begun.append(self._begin(trial))

    def _begin(self, trial: Trial) -> _RunningTrial:
        begun = _RunningTrial(trial)
        begun.record = self._pool.begin(trial, begun.keep_progress, self._stop.is_set)
        return begun


@dataclass(eq=False)
class _RunningTrial:
    trial: Trial
    progress: Progress = field(default_factory=lambda: Progress(phase="", doing="preparing"))
    record: Future[Record] = field(default_factory=Future)

    def keep_progress(self, progress: Progress) -> None:
        self.progress = progress
