"""The process that runs trials, one after the other while its input is open: `python -P -m iolab.machines.worker`, or a
fork of one that has imported it."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import IO, Any, cast

from iolab.base import child_process
from iolab.base.errors import InterruptedRun, MachineError
from iolab.base.gc_pause import gc_paused
from iolab.domain.executor import Answer, LeftBehind, OnProgress, Progress, ShouldStop, TrialStalled, error_from_json
from iolab.domain.record import Fault, Record
from iolab.domain.trial import DeviceIdentity, Trial
from iolab.machines.fork_server import STATUS_LOST, ForkedWorker, ForkServer, ServerEnded, forked
from iolab.machines.system import life, stall
from iolab.machines.system.undo import restore_abandoned, what_stays

WORKER = "iolab.machines.worker"
Process = subprocess.Popen[bytes] | ForkedWorker

POLL_S = 0.1
STOP_PATIENCE_S = 2.5
"""A stopped worker waits for its I/O, unmounts and detaches. One that takes longer goes on by itself, or, if it does
nothing, is killed and restored from outside."""
QUIET_S = 1.0
"""A worker that shows no sign of life for so long does nothing: its main thread never sleeps longer than 0.1 s."""
DEATH_PATIENCE_S = 0.5


TAIL_BYTES = 4096
"""Bytes of a dead worker's output that are examined."""


class WorkerProcess:
    """A worker. It stops, restores everything and ends when its standard input closes."""

    def __init__(
        self,
        *,
        pass_fds: Sequence[int] = (),
        patience_s: float = stall.PATIENCE_S,
        server: Callable[[], ForkServer] | None = None,
        ahead: bool = False,
    ) -> None:
        """
        Args:
            pass_fds: descriptors that it holds open as long as it lives.
            patience_s: how long a trial, or a step of undoing it, may get nowhere.
            server: gives the living server that forks it; None: a new Python.
            ahead: the server is only asked for it; `has_begun` waits for the answer.
        """
        self._patience_s = patience_s
        # In memory: to make a file of a filesystem takes 2 ms between two trials, and writes to a disk.
        self._stderr = os.fdopen(os.memfd_create("stderr"), "w+b")
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        self._stdin, self._stdout = os.fdopen(ours_in, "wb"), os.fdopen(ours_out, "rb")
        self._process: Process
        try:
            if server is not None:
                fork = server().fork if ahead else partial(forked, server)
                self._process = fork(theirs_in, theirs_out, self._stderr.fileno(), pass_fds)
            else:
                self._process = subprocess.Popen(
                    [*child_process.python(WORKER), str(patience_s)],
                    env=child_process.python_environment(),
                    stdin=theirs_in,
                    stdout=theirs_out,
                    stderr=self._stderr,
                    pass_fds=pass_fds,
                )
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self.ended = False
        self._stopping = False
        self._killed_after_stop = False
        self._restored: list[str] = []
        self._said = ""
        """Its last words, once it has ended."""
        self._stop_deadline = float("inf")
        self._watch = life.Watch()
        self._stalled: str | None = None
        """Why the trial was given up."""
        self._left: str | None = None
        """What was left behind with the worker, which does not end."""

    def has_begun(self) -> bool:
        """Whether there is such a process; if not, because its server was killed, nothing of it is left."""
        try:
            _ = self._process.pid
        except ServerEnded:
            for stream in (self._stdin, self._stdout, self._stderr):
                stream.close()
            self.ended = True
        return not self.ended

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        """The trial's record. A worker that was stopped, or died, has `ended` and takes no other; its death is a record
        with status `failed` that names the signal.

        Raises:
            InputError, MachineError: the error that the worker reports.
            TrialStalled: the trial got nowhere for too long; has its record, with status `failed`.
            LeftBehind: it was stopped, and what it changed is not restored.
        """
        started_unix_ns = time.time_ns()
        stalls = None if not trial.is_of_host else stall.Stall(trial, self._process.pid, self._patience_s)
        answer = self._answer(trial.model_dump_json(), on_progress, should_stop, stalls)
        if answer is None or self._stopping or self._stalled is not None or "stuck" in answer:
            self.end()
        if self._stalled is not None:
            raise self._stall(trial, started_unix_ns, answer)
        if answer is not None and "stuck" in answer:
            raise LeftBehind(error_from_json(answer["error"]).what, where=stall.label(trial.target))
        if self._left is not None and self._stopping:
            raise LeftBehind(self._left, where=stall.label(trial.target))
        if answer is None:
            return self._record_of_death(trial, started_unix_ns)
        if "defect" in answer:
            named = f"trial {trial.trial}, {trial.workload} under {trial.setting}"
            return self._failed(trial, started_unix_ns, f"{named}: a defect in iolab: {answer['defect']}")
        if "record" in answer:
            with gc_paused():
                return Record.model_validate(answer["record"])
        raise error_from_json(answer["error"])

    def admit(self, trial: Trial, should_stop: ShouldStop) -> list[DeviceIdentity]:
        """See `Executor.admit`."""
        stalls = stall.Stall(trial, self._process.pid, self._patience_s)
        answer = self._answer(f'{{"admit":{trial.model_dump_json()}}}', lambda _: None, should_stop, stalls)
        stopping = self._stopping
        if answer is None or "stuck" in answer:
            self.end()
            if self._stalled is not None:
                raise MachineError(self._stalled, where=stall.label(trial.target))
            if stopping:
                raise InterruptedRun("stopped before anything was written")
            raise MachineError(f"while the target was looked at, {self._death()}")
        if "defect" in answer:
            raise MachineError(f"a defect in iolab, while the target was looked at: {answer['defect']}")
        if "error" in answer:
            raise error_from_json(answer["error"])
        return [DeviceIdentity.model_validate_json(json.dumps(device)) for device in answer["admitted"]]

    def end(self) -> None:
        """Waits for the worker. One that takes too long is left to itself, or killed, if that is possible and it does
        nothing; what a killed one leaves is restored."""
        if self.ended:
            return
        self.stop()
        while self._left is None and not self._ends_within(POLL_S):
            self._watch.look([self._process.pid])
            if time.monotonic() > self._stop_deadline:
                self._leave_or_kill()
                break
        self._stdout.close()
        self._said = _tail(self._stderr)
        self._stderr.close()
        self.ended = True

    def _answer(
        self, question: str, on_progress: OnProgress, should_stop: ShouldStop, stalls: stall.Stall | None
    ) -> Answer | None:
        """{"record": ...}, {"admitted": ...}, {"error": ...} or {"defect": ...}; None when it died without one."""
        self._send(question)
        progress = Progress(phase="", doing="preparing")
        for message in self._messages(should_stop):
            if stalls is not None and not self._stopping and self._stalled is None:
                self._stalled = stalls.verdict()
                if self._stalled is not None:
                    self.stop()
                elif stalls.text:
                    on_progress(replace(progress, waiting=stalls.text))
            if message is None:
                continue
            if "progress" in message:
                progress = Progress(**cast(Any, message["progress"]))  # written by asdict() of this class
                if stalls is not None:
                    stalls.progress(progress)
                on_progress(replace(progress, waiting=stalls.text if stalls is not None else ""))
            else:
                return message
        return None

    def _send(self, line: str) -> None:
        with suppress(BrokenPipeError):
            self._stdin.write(line.encode() + b"\n")
            self._stdin.flush()

    def _messages(self, should_stop: ShouldStop) -> Iterator[Answer | None]:
        """The worker's lines as they come, None when there was none for a while."""
        fd = self._stdout.fileno()
        begun: list[bytes] = []
        with selectors.DefaultSelector() as selector:
            selector.register(fd, selectors.EVENT_READ)
            while True:
                if not self._stopping and should_stop():
                    self._stopping = True
                    self.stop()
                if self._stop_deadline < float("inf"):
                    self._watch.look([self._process.pid])
                if time.monotonic() > self._stop_deadline:
                    self._leave_or_kill()
                    return
                if not selector.select(POLL_S):
                    yield None
                    continue
                chunk = os.read(fd, 1 << 20)
                if not chunk:
                    return
                # A record may have tens of megabytes: only what is new is looked through.
                first, *others = chunk.split(b"\n")
                begun.append(first)
                for other in others:
                    line = b"".join(begun)
                    begun = [other]
                    with gc_paused():
                        message = json.loads(line)
                    yield message

    def stop(self) -> None:
        """Asks it to restore what it changed and to end."""
        if self._stop_deadline == float("inf"):
            self._stop_deadline = time.monotonic() + STOP_PATIENCE_S
        with suppress(BrokenPipeError):
            self._stdin.close()

    def _ends_within(self, seconds: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.poll() is not None

    def _leave_or_kill(self) -> None:
        """A worker that moves, or whose threads no signal reaches, is left: it restores by itself as soon as it can."""
        stuck = self._watch.stuck()
        if stuck or self._watch.quiet_s < min(QUIET_S, STOP_PATIENCE_S / 2):
            self._left = self._what_is_left(stuck)
            return
        self._kill()

    def _kill(self) -> None:
        self._killed_after_stop = True
        self._process.kill()
        try:
            self._process.wait(DEATH_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._watch.look([self._process.pid])
            self._left = self._what_is_left(self._watch.stuck())
            return
        self._restored += restore_abandoned()

    def _what_is_left(self, stuck: list[tuple[life.Task, float]]) -> str:
        who = life.description(stuck)
        stays = ", ".join(what_stays(self._process.pid)) or "nothing"
        return (
            f"process {self._process.pid} does not end yet: {who or 'it is still restoring'}; left to undo: {stays}; "
            "it continues by itself as soon as it can, and iolab restore reports whether it has"
        )

    def _stall(self, trial: Trial, started_unix_ns: int, answer: Answer | None) -> TrialStalled:
        given_up = self._record_of_death(trial, started_unix_ns)
        text = error_from_json(answer["error"]).what if answer is not None and "error" in answer else None
        noted = Record.model_validate(answer["record"]).notes if answer is not None and "record" in answer else []
        notes = [*given_up.notes, *noted, *filter(None, [text, self._left])]
        assert self._stalled is not None
        record = given_up.model_copy(
            update={"status": "failed", "faults": [Fault(what=self._stalled)], "notes": list(dict.fromkeys(notes))}
        )
        why = "; ".join(filter(None, [self._stalled, text, self._left]))
        return TrialStalled(record, why, where=stall.label(trial.target))

    def _record_of_death(self, trial: Trial, started_unix_ns: int) -> Record:
        return self._failed(trial, started_unix_ns, self._death())

    def _failed(self, trial: Trial, started_unix_ns: int, why: str) -> Record:
        return Record(
            spec=trial,
            status="interrupted" if self._stopping else "failed",
            started_unix_ns=started_unix_ns,
            ended_unix_ns=time.time_ns(),
            controls_applied={},
            controls_absent={},
            phases=[],
            observed={},
            faults=[Fault(what=why)],
            notes=[*self._restored, *restore_abandoned()],
        )

    def _death(self) -> str:
        tail = f": {self._said}" if self._said else ""
        if self._killed_after_stop:
            return f"the trial's process did not stop within {STOP_PATIENCE_S:.0f} s and was killed{tail}"
        exit_status = self._process.returncode
        if exit_status is None:
            return f"the trial's process did not end{tail}"
        if exit_status == STATUS_LOST:
            return f"the trial's process died; its exit status is unknown: the process that forked it died too{tail}"
        if exit_status < 0:
            name = signal.Signals(-exit_status).name
            return f"the trial's process was killed by {name} ({-exit_status}){tail}"
        return f"the trial's process ended with status {exit_status} and no record{tail}"


def _tail(stderr: IO[bytes]) -> str:
    stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - TAIL_BYTES))
    return " / ".join(stderr.read().decode(errors="replace").split("\n")[-4:]).strip(" /")
