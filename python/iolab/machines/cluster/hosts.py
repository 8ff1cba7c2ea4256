"""Trials of hosts: which host measures which round, and in what order.

A round is measured on one host, so that both settings of a pair meet the same machine; a host does one trial at a time.
A free host takes the next round, so that a host that comes late is used, and a quick one measures more rounds. A round
that has begun stays with its host, also when the host is gone for a while and when the run goes on another day.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass

from iolab.base.errors import MachineError
from iolab.domain.executor import LeftBehind, OnProgress, Progress, ShouldStop
from iolab.domain.record import NOT_RESTORED, Record, interrupted
from iolab.domain.trial import Trial
from iolab.machines.cluster.connection import Connection, HostLost

POLL_S = 0.1
PATIENCE_S = 60.0
AGAIN_S = 2.0
"""A host that was lost is not asked again before."""


@dataclass
class _TrialResult:
    trial: Trial
    result: Future[Record]


class HostRounds:
    """An `iolab.domain.executor.ConcurrentExecutor` for hosts' trials, without `admit`: each agent looks at its own
    devices."""

    def __init__(self, connection: Connection, patience_s: float = PATIENCE_S) -> None:
        """`patience_s`: how long a host that is needed may be gone."""
        self._connection = connection
        self._patience_s = patience_s
        self._expected: Iterator[Trial] = iter(())
        self._next: Trial | None = None
        self._rounds: dict[int, deque[Trial]] = {}
        """By round, in the order of the rounds: what of it has not begun."""
        self._host_of: dict[int, str] = {}
        self._ended_of: Counter[int] = Counter()
        """By round, how many of its trials have a record."""
        self._running: dict[str, _TrialResult] = {}
        """By host."""
        self._done: dict[int, _TrialResult] = {}
        """By trial, until it is asked for."""
        self._lost: dict[str, tuple[float, str]] = {}
        """By host: when it was lost last, and why."""
        self._idle_since: float | None = None

    def pin(self, host_of: Mapping[int, str]) -> None:
        """Rounds that began before, by their host."""
        self._host_of |= host_of
        self._ended_of.update(host_of.keys())

    def expect(self, trials: Iterable[Trial]) -> None:
        """See `Executor.expect`."""
        self._expected = iter(trials)
        self._next = next(self._expected, None)

    def soonest(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Trial:
        """See `RunsAhead.soonest`."""
        while not should_stop():
            self._turn(should_stop)
            if trial.trial in self._done:
                return trial
            if self._done:
                return next(iter(self._done.values())).trial
            self._wait(on_progress)
        self._wait_until_restored()
        return trial

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        """See `Executor.run`."""
        while trial.trial not in self._done:
            begun = any(one.trial.trial == trial.trial for one in self._running.values())
            if should_stop() and not begun:
                return interrupted(trial)
            if not begun and self._next is None and trial not in self._rounds.get(trial.round, ()):
                self._rounds.setdefault(trial.round, deque()).append(trial)  # nobody expected it
            self._turn(should_stop)
            self._wait(on_progress)
        return self._done.pop(trial.trial).result.result()

    def _wait_until_restored(self) -> None:
        """Waits until every host has reported that its trial is stopped. LeftBehind if one has not, or could not
        restore."""
        for one in self._running.values():
            error = one.result.exception()  # the connection sees to it that there is a result in time
            if isinstance(error, LeftBehind):
                raise error
            notes = [] if error is not None else one.result.result().notes
            if left := [note for note in notes if note.startswith(NOT_RESTORED)]:
                raise LeftBehind("; ".join(left))

    def _turn(self, should_stop: ShouldStop) -> None:
        """Takes what has ended, and gives each free host its next trial."""
        for host, one in list(self._running.items()):
            if one.result.done():
                del self._running[host]
                self._end(host, one)
        if should_stop():
            return
        for host in self._free():
            trial = self._next_for(host)
            if trial is not None:
                self._running[host] = _TrialResult(trial, self._connection.begin(trial, should_stop, host))

    def _end(self, host: str, one: _TrialResult) -> None:
        error = one.result.exception()
        if not isinstance(error, HostLost):
            self._ended_of[one.trial.round] += 1
            self._done[one.trial.trial] = one
            self._lost.pop(host, None)
            return
        self._lost[host] = time.monotonic(), str(error)
        self._rounds.setdefault(one.trial.round, deque()).appendleft(one.trial)
        if not self._ended_of[one.trial.round]:
            del self._host_of[one.trial.round]  # nothing of it is measured yet: any host may do it

    def _free(self) -> list[str]:
        """Hosts that can be given a trial."""
        now = time.monotonic()
        offered = Counter(self._connection.hosts)
        return [
            host
            for host, nodes in offered.items()
            if nodes == 1 and host not in self._running and now - self._lost.get(host, (0.0, ""))[0] > AGAIN_S
        ]

    def _next_for(self, host: str) -> Trial | None:
        self._take_rounds()
        left = [number for number, trials in self._rounds.items() if trials]
        own = next((number for number in left if self._host_of.get(number) == host), None)
        number = own if own is not None else next((one for one in left if one not in self._host_of), None)
        if number is None:
            return None
        self._host_of[number] = host
        return self._rounds[number].popleft()

    def _take_rounds(self) -> None:
        """So many that each host finds one."""
        while self._next is not None and all(not left or one in self._host_of for one, left in self._rounds.items()):
            number = self._next.round
            while self._next is not None and self._next.round == number:
                self._rounds.setdefault(number, deque()).append(self._next)
                self._next = next(self._expected, None)

    def _wait(self, on_progress: OnProgress) -> None:
        if self._running:
            self._idle_since = None
            wait([one.result for one in self._running.values()], POLL_S, FIRST_COMPLETED)
            on_progress(Progress(phase=f"on {', '.join(sorted(self._running))}", doing="running"))
            return
        if self._done:
            return
        now = time.monotonic()
        self._idle_since = self._idle_since or now
        waited_s = now - self._idle_since
        if waited_s > self._patience_s:
            raise self._given_up(waited_s)
        on_progress(Progress(phase="", doing="preparing", waiting=f"waits for a host: {self._what_lacks()}"))
        time.sleep(POLL_S)

    def _what_lacks(self) -> str:
        offered = Counter(self._connection.hosts)
        twice = [host for host, nodes in offered.items() if nodes > 1]
        if twice:
            return f"two nodes offer {twice[0]}"
        absent = {self._host_of[number] for number, left in self._rounds.items() if left and number in self._host_of}
        if absent - offered.keys():
            return f"{', '.join(sorted(absent - offered.keys()))} is gone in the middle of a round"
        if self._lost and offered:
            host, (_, why) = next(iter(self._lost.items()))
            return f"{host}: {why}"
        return "none offers itself"

    def _given_up(self, waited_s: float) -> MachineError:
        remedy = "on the host: iolab host --join HOST:PORT; then continue with iolab run --resume"
        if "two nodes" in (lacks := self._what_lacks()):
            remedy = "give each its own name: iolab host --join HOST:PORT --name NAME"
        return MachineError(f"no trial could be begun for {waited_s:.0f} s: {lacks}", where="--on", remedy=remedy)
