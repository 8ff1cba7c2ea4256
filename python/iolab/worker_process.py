"""The process that runs trials: `python -m iolab.machine.worker`, one trial after the other while its input is open."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from iolab.executor import OnProgress, Progress, ShouldStop, error_from_json

if TYPE_CHECKING:
    from iolab.record import Record
    from iolab.trial import Trial

POLL_S = 0.1
STOP_PATIENCE_S = 30.0
"""A stopped worker waits for its I/O, unmounts and detaches; after this it is killed and restored from outside."""


class WorkerProcess:
    """A worker. It stops, restores everything and ends when its standard input closes."""

    def __init__(self, *, pass_fds: Sequence[int] = ()) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (until `end`)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "iolab.machine.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            pass_fds=pass_fds,
        )
        self.ended = False
        self._stopping = False
        self._killed_after_stop = False
        self._restored: list[str] = []
        self._said = ""
        """Its last words, once it has ended."""
        self._stop_deadline = float("inf")

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        """The trial's record. A worker that was stopped, or died, has `ended` and takes no other; its death is a record
        with status `failed` that names the signal.

        Raises:
            InputError, MachineError: what the worker says went wrong.
        """
        from iolab.record import Record

        started_unix_ns = time.time_ns()
        answer = self._answer(trial, on_progress, should_stop)
        if answer is None or self._stopping:
            self.end()
        if answer is None:
            return self._record_of_death(trial, started_unix_ns)
        if "record" in answer:
            return Record.model_validate(answer["record"])
        raise error_from_json(answer["error"])

    def end(self) -> None:
        """Waits for the worker, killing it when its patience is over. What a killed one leaves is restored."""
        if self.ended:
            return
        self._stop()
        try:
            self._process.wait(max(0.0, self._stop_deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._kill()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._said = _tail(self._stderr)
        self._stderr.close()
        self.ended = True

    def _answer(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> dict[str, Any] | None:
        """{"record": ...} or {"error": ...}; None when it died without one."""
        self._send(trial.model_dump_json())
        for message in self._messages(should_stop):
            if message is None:
                continue
            if "progress" in message:
                on_progress(Progress(**message["progress"]))
            else:
                return message
        return None

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def _messages(self, should_stop: ShouldStop) -> Iterator[dict[str, Any] | None]:
        """The worker's lines as they come, None when there was none for a while."""
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        buffer = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(fd, selectors.EVENT_READ)
            while True:
                if not self._stopping and should_stop():
                    self._stopping = True
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

        self._killed_after_stop = True
        self._process.kill()
        self._process.wait()
        self._restored += restore_abandoned()

    def _record_of_death(self, trial: Trial, started_unix_ns: int) -> Record:
        from iolab.machine.undo import restore_abandoned
        from iolab.record import Fault, Record

        return Record(
            spec=trial,
            status="interrupted" if self._stopping else "failed",
            started_unix_ns=started_unix_ns,
            ended_unix_ns=time.time_ns(),
            controls_applied={},
            controls_absent={},
            phases=[],
            observed={},
            faults=[Fault(what=self._death())],
            notes=[*self._restored, *restore_abandoned()],
        )

    def _death(self) -> str:
        tail = f": {self._said}" if self._said else ""
        if self._killed_after_stop:
            return f"the trial's process did not stop within {STOP_PATIENCE_S:.0f} s and was killed{tail}"
        exit_status = self._process.returncode
        if exit_status < 0:
            name = signal.Signals(-exit_status).name
            return f"the trial's process was killed by {name} ({-exit_status}){tail}"
        return f"the trial's process ended with status {exit_status} and no record{tail}"


def _tail(stderr: IO[bytes]) -> str:
    stderr.seek(0)
    return " / ".join(stderr.read().decode(errors="replace").split("\n")[-4:]).strip(" /")
