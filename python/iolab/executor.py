"""Hands a trial to whoever runs it. One small interface; a child process on this machine, or the modelled machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from iolab.errors import InputError, InterruptedRun, IolabError, MachineError

if TYPE_CHECKING:
    from iolab.machine.lock import Lock
    from iolab.record import Record
    from iolab.trial import Target, Trial

Doing = Literal["preparing", "laying out", "running", "restoring"]


@dataclass(frozen=True)
class Progress:
    """What a trial is doing now; counts are those of the phase."""

    phase: str
    doing: Doing
    elapsed_ns: int = 0
    ops: int = 0
    bytes: int = 0
    errors: int = 0
    fraction: float | None = None
    """0 to 1 of the phase; None when no bound tells."""
    warming_up: bool = False


OnProgress = Callable[[Progress], None]
ShouldStop = Callable[[], bool]


class Executor(Protocol):
    def expect(self, trials: Iterable[Trial]) -> None:
        """The trials that will be run next, in this order, for who can begin early. Some may never be asked for."""
        ...

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        """Runs one trial to its record. The record's status is `interrupted` when `should_stop` became true.

        Raises:
            InputError, MachineError: the trial cannot run as it is, or here.
        """
        ...


class ByMachine:
    """Each trial on the machine that it names. Use as a context."""

    def __init__(self) -> None:
        from iolab.machine.model import RunAhead

        self._host = LocalProcess()
        self._model = RunAhead()

    def expect(self, trials: Iterable[Trial]) -> None:
        """See `Executor.expect`. A host does one trial at a time."""
        self._model.expect(trial for trial in trials if trial.model is not None)

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        """See `Executor.run`."""
        chosen = self._host if trial.model is None else self._model
        return chosen.run(trial, on_progress, should_stop)

    def close(self) -> None:
        self._model.close()
        self._host.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()


class LocalProcess:
    """Runs each trial in a child `python -m iolab.machine.worker`, so that a crash in it costs one trial, not the run.

    The target stays locked for this run until `close`. Use as a context, or leave it to the end of the process.
    """

    def __init__(self) -> None:
        self._locks: dict[str, Lock] = {}

    def expect(self, trials: Iterable[Trial]) -> None:
        """One trial at a time: what runs beside another would be measured with it."""

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        """See `Executor.run`. A child that dies yields a record with status `failed` that names the signal."""
        from iolab.worker_process import WorkerProcess

        # The child inherits the lock: if this process is killed, nobody gets the target before the child is done.
        child = WorkerProcess(pass_fds=self._lock(trial.target).fds)
        try:
            return child.run(trial, on_progress, should_stop)
        finally:
            child.end()

    def close(self) -> None:
        """Lets others use the targets."""
        for lock in self._locks.values():
            lock.release()
        self._locks = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def _lock(self, target: Target) -> Lock:
        from iolab.machine import lock

        key = target.model_dump_json()
        if key not in self._locks:
            self._locks[key] = lock.of_target(target)
        return self._locks[key]


def error_to_json(error: IolabError) -> dict[str, Any]:
    """What `error_from_json` raises again on the other side."""
    return {
        "class": type(error).__name__,
        "what": error.what,
        "where": error.where,
        "remedy": error.remedy,
        "exit_status": error.exit_status,
    }


def error_from_json(fields: dict[str, Any]) -> IolabError:
    kinds: dict[int, type[IolabError]] = {kind.exit_status: kind for kind in (InputError, MachineError, InterruptedRun)}
    kind = kinds.get(fields["exit_status"], MachineError)
    return kind(fields["what"], where=fields["where"], remedy=fields["remedy"])
