"""Runs trials on this machine, each in a child process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from iolab.domain.executor import OnProgress, ShouldStop
from iolab.domain.record import Record
from iolab.domain.trial import DeviceIdentity, Target, Trial
from iolab.machines import fork_server
from iolab.machines.fork_server import ForkServer, ServerEnded
from iolab.machines.system import lock, stall
from iolab.machines.system.lock import Lock
from iolab.machines.worker_process import WORKER, WorkerProcess


class LocalProcess:
    """Runs each trial in a child, which `ForkServer` forks: a crash in it costs one trial, not the run.

    The target stays locked for this run until `close`. Use as a context, or leave it to the end of the process.
    """

    def __init__(self, patience_s: float | None = None, *, held: Sequence[int] = ()) -> None:
        """
        Args:
            patience_s: how long a trial may get nowhere before it is given up; None: `stall.PATIENCE_S`.
            held: descriptors of locks that the children hold too, until they have restored everything.
        """
        self._locks: dict[str, Lock] = {}
        self._held = tuple(held)
        self._patience_s = patience_s or stall.PATIENCE_S
        self._server: ForkServer | None = None
        self._leaving: WorkerProcess | None = None
        """The last trial's, which has answered and may not have ended: its record is stored meanwhile."""
        self._ready: tuple[tuple[int, ...], WorkerProcess] | None = None
        """The next trial's, if its target is the same, with the locks that it holds: forked while a record is stored,
        when nothing is measured."""

    def expect(self, trials: Iterable[Trial]) -> None:
        """One trial at a time: what runs beside another would be measured with it. But its process can begin."""
        self._forker()

    def admit(self, trial: Trial, should_stop: ShouldStop) -> list[DeviceIdentity]:
        """See `Executor.admit`. In a child too: reading from a device can take for ever."""
        child = self._child(trial)
        try:
            return child.admit(trial, should_stop)
        finally:
            child.end()

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        """See `Executor.run`. A child that dies yields a record with status `failed` that names the signal."""
        # The child inherits the lock: if this process is killed, nobody gets the target before the child is done.
        child = self._child(trial)
        try:
            record = child.run(trial, on_progress, should_stop)
        finally:
            child.stop()
            self._leaving = child
        fds = self._fds(trial.target)
        with suppress(ServerEnded):  # the next trial asks again
            self._ready = (fds, self._forked(fds, ahead=True))
        return record

    def close(self) -> None:
        """Releases the locks on the targets, so that other runs may use them."""
        self._see_off()
        if self._server is not None:
            self._server.close()
            self._server = None
        for held in self._locks.values():
            held.release()
        self._locks = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def _see_off(self) -> None:
        if self._leaving is not None:
            self._leaving.end()
            self._leaving = None
        if self._ready is not None:
            _, ready = self._ready
            self._ready = None
            if ready.has_begun():
                ready.end()

    def _child(self, trial: Trial) -> WorkerProcess:
        fds = self._fds(trial.target)
        if self._ready is not None and self._ready[0] == fds:
            _, ready = self._ready
            self._ready = None
            self._see_off()
            if ready.has_begun():
                return ready
        self._see_off()
        return self._forked(fds)

    def _forked(self, fds: tuple[int, ...], *, ahead: bool = False) -> WorkerProcess:
        return WorkerProcess(pass_fds=fds, patience_s=self._patience_s, server=self._forker, ahead=ahead)

    def _forker(self) -> ForkServer:
        self._server = fork_server.living(self._server, WORKER, [str(self._patience_s)])
        return self._server

    def _fds(self, target: Target) -> tuple[int, ...]:
        return (*self._held, *self._lock(target).fds)

    def _lock(self, target: Target) -> Lock:
        key = target.model_dump_json(exclude={"admitted"})
        if key not in self._locks:
            self._locks[key] = lock.of_target(target)
        return self._locks[key]
