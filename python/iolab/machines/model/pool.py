"""Trials side by side on the cores of this machine: a worker process for each, taken by one thread at a time."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from iolab.domain.executor import OnProgress, ShouldStop
from iolab.domain.record import Record
from iolab.domain.trial import Trial
from iolab.machines import fork_server
from iolab.machines.fork_server import ForkServer
from iolab.machines.system import stall
from iolab.machines.worker_process import WORKER, WorkerProcess

Simulate = Callable[["Trial", OnProgress, ShouldStop], "Record"]


class LocalPool:
    """An `iolab.domain.executor.Pool`. Each worker does one trial after the other, so that a crash costs one trial and
    not the run."""

    def __init__(self, cores: int | None = None, simulate: Simulate | None = None) -> None:
        """
        Args:
            cores: trials at once; None: as many as this process may use.
            simulate: instead of worker processes.
        """
        self.slots = cores or len(os.sched_getaffinity(0))
        self._workers = Workers()
        self._simulate = simulate
        self._threads = ThreadPoolExecutor(self.slots, thread_name_prefix="simulation")

    def begin(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Future[Record]:
        """See `Pool.begin`."""
        if self._simulate is None:
            self._workers.start_server()
        return self._threads.submit(self._simulate or self._workers.run, trial, on_progress, should_stop)

    def close(self) -> None:
        """See `Pool.close`."""
        self._threads.shutdown(cancel_futures=True)
        self._workers.end()


class Workers:
    """Worker processes, each taken by one thread at a time."""

    def __init__(self) -> None:
        self._idle: deque[WorkerProcess] = deque()
        self._lock = threading.Lock()
        self._server: ForkServer | None = None

    def start_server(self) -> None:
        """Called before there are threads, the server is a fork of this process."""
        self._forker()

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        """The trial's record, by a worker that is idle or a new one. Raises what `WorkerProcess.run` raises."""
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = WorkerProcess(server=self._forker)
        try:
            return worker.run(trial, on_progress, should_stop)
        finally:
            if not worker.ended:
                self._idle.append(worker)

    def end(self) -> None:
        """Ends those that are idle."""
        for worker in self._idle:
            worker.end()
        if self._server is not None:
            self._server.close()

    def _forker(self) -> ForkServer:
        with self._lock:
            self._server = fork_server.living(self._server, WORKER, [str(stall.PATIENCE_S)])
            return self._server
