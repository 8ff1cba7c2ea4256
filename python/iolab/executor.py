"""Hands a trial to whoever runs it. One small interface; a child process on this machine, or the modelled machine."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol, Self

from iolab.errors import InputError, InterruptedRun, IolabError, MachineError

if TYPE_CHECKING:
    from iolab.machine.lock import Lock
    from iolab.record import Record
    from iolab.trial import Target, Trial

POLL_S = 0.1
STOP_PATIENCE_S = 30.0
"""A stopped child waits for its I/O, unmounts and detaches; after this it is killed and restored from outside."""

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
        lock = self._lock(trial.target)
        started_unix_ns = time.time_ns()
        with tempfile.TemporaryFile() as stderr:
            child = _Child(lock, stderr)
            try:
                answer = child.run(trial, on_progress, should_stop)
            finally:
                child.end()
            if answer is None:
                return _record_of_death(trial, started_unix_ns, child, stderr, stopped=child.stopping)
        return _result(answer)

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


class _Child:
    """The worker process. It stops, restores everything and ends when its standard input closes."""

    def __init__(self, lock: Lock, stderr: IO[bytes]) -> None:
        # The child inherits the lock: if this process is killed, nobody gets the target before the child is done.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "iolab.machine.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            pass_fds=lock.fds,
        )
        self.stopping = False
        self.killed_after_stop = False
        self.restored: list[str] = []
        self._stop_deadline = float("inf")

    @property
    def exit_status(self) -> int:
        return self._process.returncode

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> dict[str, Any] | None:
        """The child's answer: {"record": ...} or {"error": ...}; None when it died without one."""
        self._send(trial.model_dump_json())
        for message in self._messages(should_stop):
            if message is None:
                continue
            if "progress" in message:
                on_progress(Progress(**message["progress"]))
            else:
                return message
        return None

    def end(self) -> None:
        """Waits for the child, killing it when its patience is over. What a killed child leaves is restored."""
        self._stop()
        try:
            self._process.wait(max(0.0, self._stop_deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._kill()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def _messages(self, should_stop: ShouldStop) -> Iterator[dict[str, Any] | None]:
        """The child's lines as they come, None when there was none for a while."""
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        buffer = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(fd, selectors.EVENT_READ)
            while True:
                if not self.stopping and should_stop():
                    self.stopping = True
                    self._stop()
                if time.monotonic() > self._stop_deadline:
                    self._kill()
                    return
                if not selector.select(POLL_S):
                    yield None
                    continue
                chunk = os.read(fd, 1 << 20)
                if not chunk:
                    return
                buffer += chunk
                *lines, rest = buffer.split(b"\n")
                buffer = bytearray(rest)
                for line in lines:
                    yield json.loads(line)

    def _stop(self) -> None:
        assert self._process.stdin is not None
        if self._stop_deadline == float("inf"):
            self._stop_deadline = time.monotonic() + STOP_PATIENCE_S
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def _kill(self) -> None:
        from iolab.machine.undo import restore_abandoned

        self.killed_after_stop = True
        self._process.kill()
        self._process.wait()
        self.restored += restore_abandoned()


def _result(answer: dict[str, Any]) -> Record:
    from iolab.record import Record

    if "record" in answer:
        return Record.model_validate(answer["record"])
    raise error_from_json(answer["error"])


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


def _record_of_death(trial: Trial, started_unix_ns: int, child: _Child, stderr: IO[bytes], *, stopped: bool) -> Record:
    from iolab.machine.undo import restore_abandoned
    from iolab.record import Fault, Record

    restored = [*child.restored, *restore_abandoned()]
    return Record(
        spec=trial,
        status="interrupted" if stopped else "failed",
        started_unix_ns=started_unix_ns,
        ended_unix_ns=time.time_ns(),
        controls_applied={},
        controls_absent={},
        phases=[],
        observed={},
        faults=[Fault(what=_death(child, stderr))],
        notes=restored,
    )


def _death(child: _Child, stderr: IO[bytes]) -> str:
    stderr.seek(0)
    said = " / ".join(stderr.read().decode(errors="replace").split("\n")[-4:]).strip(" /")
    tail = f": {said}" if said else ""
    if child.killed_after_stop:
        return f"the trial's process did not stop within {STOP_PATIENCE_S:.0f} s and was killed{tail}"
    if child.exit_status < 0:
        name = signal.Signals(-child.exit_status).name
        return f"the trial's process was killed by {name} ({-child.exit_status}){tail}"
    return f"the trial's process ended with status {child.exit_status} and no record{tail}"
