"""Simulates trials on all cores, ahead of the one that is asked for, and hands their records back in the order asked.

Each core has a worker process that does one trial after the other, so that a crash costs one trial and not the run. A
trial's record is a function of the trial: it is the same whatever runs beside it.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self

from iolab.adapters.worker_process import POLL_S, WorkerProcess
from iolab.domain.executor import OnProgress, Progress, ShouldStop

if TYPE_CHECKING:
    from iolab.domain.record import Record
    from iolab.domain.trial import DeviceIdentity, Trial

Simulate = Callable[["Trial", OnProgress, ShouldStop], "Record"]


class RunAhead:
    """An `iolab.domain.executor.Executor` for trials of simulated machines. Use as a context."""

    def __init__(self, *, cores: int | None = None, simulate: Simulate | None = None) -> None:
        """
        Args:
            cores: trials at once; None: as many as this process may use.
            simulate: instead of worker processes.
        """
        self._cores = cores or len(os.sched_getaffinity(0))
        self._workers = _Workers()
        self._simulate = simulate or self._workers.run
        self._pool = ThreadPoolExecutor(self._cores, thread_name_prefix="simulation")
        self._stop = threading.Event()
        self._expected: Iterator[Trial] = iter(())
        self._begun: deque[_Begun] = deque()

    def expect(self, trials: Iterable[Trial]) -> None:
        """See `Executor.expect`. Taken from as cores become free, no more than a few trials ahead."""
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

    def close(self) -> None:
        """Ends what was begun and not asked for."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)
        self._workers.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def _take(self, trial: Trial) -> _Begun:
        """What was begun of it, or begun now. What was expected before it is not asked for any more."""
        if any(begun.trial == trial for begun in self._begun):
            while (begun := self._begun.popleft()).trial != trial:
                begun.record.cancel()
            return begun
        return self._begin(trial)

    def _begin_expected(self) -> None:
        """Enough that no core is idle while a record is being stored."""
        while not self._stop.is_set() and len(self._begun) < 2 * self._cores:
            trial = next(self._expected, None)
            if trial is None:
                return
            self._begun.append(self._begin(trial))

    def _begin(self, trial: Trial) -> _Begun:
        begun = _Begun(trial)
        begun.record = self._pool.submit(self._simulate, trial, begun.keep_progress, self._stop.is_set)
        return begun


@dataclass
class _Begun:
    trial: Trial
    progress: Progress = field(default_factory=lambda: Progress(phase="", doing="preparing"))
    record: Future[Record] = field(default_factory=Future)

    def keep_progress(self, progress: Progress) -> None:
        self.progress = progress


class _Workers:
    """Worker processes, each taken by one thread at a time."""

    def __init__(self) -> None:
        self._idle: deque[WorkerProcess] = deque()

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = WorkerProcess()
        try:
            return worker.run(trial, on_progress, should_stop)
        finally:
            if not worker.ended:
                self._idle.append(worker)

    def end(self) -> None:
        for worker in self._idle:
            worker.end()
