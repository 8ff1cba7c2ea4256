"""Several processes that do one phase together, each in a control group of its own: started at the same moment,
watched, stopped together. None outlives the one that started them."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, Literal, TypedDict, TypeVar, cast

from iolab.base import child_process
from iolab.base.errors import InputError, MachineError
from iolab.base.strict_json import JsonObject
from iolab.domain import native_types as native
from iolab.domain.executor import ErrorFields, ShouldStop, error_from_json
from iolab.machines.system.cgroup import Cgroup
from iolab.machines.system.command import dying_with_parent

POLL_S = 0.02
START_DELAY_NS = 20_000_000
"""From the message to the members to the moment of their start: more than the message takes."""
STOP_PATIENCE_S = 10.0

R = TypeVar("R")


class Message(TypedDict, total=False):
    """A member's message, as member.py writes it: that it is ready, then its progress, and last a record or an error.
    The record is of the type that the task has (`Task`)."""

    ready: bool
    progress: native.Snapshot
    record: object
    error: ErrorFields


OnSnapshots = Callable[[list[native.Snapshot]], None]


@dataclass(frozen=True)
class Task(Generic[R]):
    """What a member does, and where. R: its record's type."""

    name: str
    work: Literal["load", "sort"]
    spec: native.Phase | native.SortSpec
    """The engine's specification: a phase (crates/measure/workload/src/phase.rs) or a sort
    (crates/measure/engine/src/sorter/mod.rs)."""
    cgroups: tuple[Cgroup, ...] = ()
    cpus: list[int] | None = None
    """CPUs it may run on, None: any."""


class MemberDied(MachineError):
    """A member process ended without an answer; the text states how."""

    def __init__(self, name: str, exit_status: int) -> None:
        self.name = name
        self.exit_status = exit_status
        how = f"with status {exit_status}"
        if exit_status < 0:
            how = f"by {signal.Signals(-exit_status).name}"
        super().__init__(f"its process ended {how} and no record", where=name)


def run(
    tasks: Sequence[Task[R]], *, on_snapshots: OnSnapshots, should_stop: ShouldStop, ends_all: Collection[str] = ()
) -> list[R]:
    """Each task's record, in the same order.

    Args:
        on_snapshots: is called with the latest snapshot of each member that has one, whenever there is news.
        ends_all: names of tasks; when one of them is done, all others are stopped.

    Raises:
        InputError, MachineError: a member could not start; the others are stopped.
        MemberDied: one was killed.
    """
    members = [_Member(task) for task in tasks]
    try:
        _start_together(members, should_stop)
        _watch(members, on_snapshots, should_stop, ends_all)
        return [member.record() for member in members]
    finally:
        for member in members:
            member.end()


def _start_together(members: Sequence[_Member[R]], should_stop: ShouldStop) -> None:
    _receive(members, until=lambda: all(member.ready for member in members), should_stop=should_stop)
    for member in members:
        member.place()
    start_ns = time.monotonic_ns() + START_DELAY_NS
    for member in members:
        member.send({"start_monotonic_ns": start_ns})


def _watch(
    members: Sequence[_Member[R]], on_snapshots: OnSnapshots, should_stop: ShouldStop, ends_all: Collection[str]
) -> None:
    def report() -> bool:
        on_snapshots([member.snapshot for member in members if member.snapshot])
        return all(member.answer for member in members)

    def over() -> bool:
        return should_stop() or any(member.answer for member in members if member.task.name in ends_all)

    _receive(members, until=report, should_stop=over)


def _receive(members: Sequence[_Member[R]], *, until: Callable[[], bool], should_stop: ShouldStop) -> None:
    """Takes in the members' messages. The first error or death ends it; a stop is passed on once."""
    deadline = float("inf")
    with selectors.DefaultSelector() as selector:
        for member in members:
            selector.register(member.stdout_fd, selectors.EVENT_READ, member)
        while not until():
            if deadline == float("inf") and should_stop():
                deadline = time.monotonic() + STOP_PATIENCE_S
                for member in members:
                    member.stop()
            if time.monotonic() > deadline:
                late = ", ".join(member.task.name for member in members if not member.answer)
                raise MachineError(f"did not stop within {STOP_PATIENCE_S:.0f} s and was killed", where=late)
            for key, _ in selector.select(POLL_S):
                if not key.data.receive():
                    selector.unregister(key.fd)


@dataclass
class _Member(Generic[R]):
    task: Task[R]
    ready: bool = False
    snapshot: native.Snapshot | None = None
    answer: Message | None = None
    _buffer: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        # A session of its own: Ctrl-C in the terminal stops it through the one that started it.
        self._process = subprocess.Popen(
            child_process.python("iolab.machines.host.member"),
            env=child_process.python_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=dying_with_parent(),
        )
        assert self._process.stdout is not None
        self.stdout_fd = self._process.stdout.fileno()
        self.send({"name": self.task.name, "work": self.task.work, "spec": self.task.spec})

    def send(self, message: JsonObject) -> None:
        assert self._process.stdin is not None
        if self._process.stdin.closed:
            return  # It has been stopped.
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def place(self) -> None:
        """Where it is to run, before it starts."""
        for cgroup in self.task.cgroups:
            cgroup.add(self._process.pid)
        if self.task.cpus is not None:
            try:
                os.sched_setaffinity(self._process.pid, self.task.cpus)
            except OSError as error:
                raise InputError(f"cannot run on CPUs {self.task.cpus}: {error.strerror}", where="cpus") from error

    def stop(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def receive(self) -> bool:
        """Takes in what there is to read; False at the end.

        Raises:
            InputError, MachineError: the error that the member reports, or its death.
        """
        chunk = os.read(self.stdout_fd, 1 << 20)
        if not chunk and self.answer is None:
            raise MemberDied(self.task.name, self._process.wait())
        *lines, rest = (self._buffer + chunk).split(b"\n")
        self._buffer = bytearray(rest)
        for line in lines:
            self._take(json.loads(line))
        return bool(chunk)

    def record(self) -> R:
        assert self.answer is not None
        return cast(R, self.answer["record"])

    def end(self) -> None:
        """Waits for a member that has answered; kills any other."""
        self.stop()
        if self.answer is None:
            self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _take(self, message: Message) -> None:
        if "error" in message:
            raise error_from_json(message["error"])
        if "record" in message:
            self.answer = message
        elif "progress" in message:
            self.snapshot = message["progress"]
        else:
            self.ready = True
