"""The run's side of the driver: hands trials to it, and their records to whoever waits for them.

Nothing waits for the cluster without end: a driver that says nothing for a while, or ends, ends the run with one line.
What is finished is on disk by then.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import tempfile
import threading
import time
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iolab.base import child_process
from iolab.base.errors import IolabError, MachineError
from iolab.domain.executor import LeftBehind, ShouldStop, TrialStalled, error_from_json
from iolab.domain.record import Record, interrupted
from iolab.machines.cluster import address as addresses
from iolab.machines.cluster.environment import environment

if TYPE_CHECKING:
    from iolab.domain.trial import Trial
    from iolab.machines.cluster.message import Report, Request

START_S = 90.0
"""Ray takes seconds to start, on a busy machine many."""
SILENCE_S = 30.0
"""The driver reports every second while the cluster answers."""
STOP_S = 15.0
"""A host's agent restores what a stopped trial has changed; after this the run does not wait for its word."""
END_S = 3.0
POLL_S = 0.1
SIMULATE = "iolab.machines.cluster.task:simulate"
TAIL_BYTES = 2000


class HostLost(Exception):
    """The host of a trial is gone, and what became of the trial is not known: it has to be run again, there."""


@dataclass
class _PendingTrial:
    trial: Trial
    host: str | None
    answer: Future[Record]
    should_stop: ShouldStop
    stopped_at: float | None = None


class Connection:
    """Connected to a cluster. `begin` and `close` are for one thread; futures are resolved by another."""

    def __init__(self, on: str, *, silence_s: float = SILENCE_S, simulate: str = SIMULATE) -> None:
        """
        Args:
            on: as `--on` has it.
            silence_s: how long the cluster may not answer.
            simulate: what a node runs for a trial of no host, MODULE:FUNCTION with the arguments of `task.simulate`.

        Raises:
            InputError: it is no address.
            MachineError: no cluster answers there in time, or Ray is not installed.
        """
        self.address = addresses.parse(on)
        is_client = self.address.startswith(addresses.SCHEME)
        addresses.check_installed(client=is_client)
        if is_client:
            where = self.address.removeprefix(addresses.SCHEME)
            addresses.check_answers(*addresses.host_and_port(where, addresses.CLIENT_PORT, where="--on"))
        self.slots = 0
        """CPUs of the nodes that live."""
        self.hosts: list[str] = []
        """Hosts that offer themselves, by the driver's last message."""
        self._silence_s = silence_s
        self._pending: dict[int, _PendingTrial] = {}
        self._lock = threading.Lock()
        self._failed: IolabError | None = None
        self._ready = threading.Event()
        self._closing = False
        self._heard = time.monotonic()
        self._had_slots = time.monotonic()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (until `close`)
        self._driver = subprocess.Popen(
            [*child_process.python("iolab.machines.cluster.driver"), self.address, simulate],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            start_new_session=True,  # a Ctrl-C is for the run, which stops its trials first
        )
        self._number = 0
        self._thread = threading.Thread(target=self._listen, name="cluster", daemon=True)
        self._thread.start()
        if not self._ready.wait(START_S):
            self._fail(MachineError(f"the Ray cluster has not answered for {START_S:.0f} s", where=on))
        if self._failed is not None:
            self.close()
            raise self._failed

    def begin(self, trial: Trial, should_stop: ShouldStop, host: str | None = None) -> Future[Record]:
        """The trial's record, from any node, or from `host`. The future raises what `Executor.run` raises, MachineError
        when the cluster is lost, and HostLost."""
        answer: Future[Record] = Future()
        with self._lock:
            if self._failed is not None:
                answer.set_exception(self._failed)
                return answer
            self._number += 1
            self._pending[self._number] = _PendingTrial(trial, host, answer, should_stop)
            number = self._number
        request: Request = {"do": "begin", "id": number, "trial": trial.model_dump_json()}
        if host is not None:
            request["host"] = host
        self._send(request)
        return answer

    def close(self) -> None:
        """Ends the driver, and with it what its nodes still run; a host's agent restores what its trial has changed."""
        self._closing = True
        assert self._driver.stdin is not None
        with suppress(OSError):
            self._driver.stdin.close()
        try:
            self._driver.wait(END_S)
        except subprocess.TimeoutExpired:
            self._driver.kill()
            self._driver.wait()
        self._thread.join()
        self._stderr.close()

    def _send(self, request: Request) -> None:
        assert self._driver.stdin is not None
        with suppress(OSError):  # the other thread sees that the driver has ended
            self._driver.stdin.write(json.dumps(request).encode() + b"\n")
            self._driver.stdin.flush()

    def _listen(self) -> None:
        assert self._driver.stdout is not None
        buffer = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._driver.stdout.fileno(), selectors.EVENT_READ)
            while self._failed is None:
                if selector.select(POLL_S):
                    chunk = os.read(self._driver.stdout.fileno(), 1 << 20)
                    if not chunk:
                        self._fail(self._ended())
                        break
                    buffer += chunk
                    *lines, rest = bytes(buffer).split(b"\n")
                    buffer = bytearray(rest)
                    for line in lines:
                        self._take(json.loads(line))
                self._watch()
        self._driver.stdout.close()

    def _take(self, report: Report) -> None:
        if "error" in report:
            self._fail(error_from_json(report["error"]))
        elif "slots" in report:
            self._heard = time.monotonic()
            self.slots, self.hosts = report["slots"], report["hosts"]
            self._had_slots = self._heard if self.slots else self._had_slots
            self._ready.set()
        else:
            with self._lock:
                pending = self._pending.pop(report["id"], None)
            if pending is None:
                return
            if "lost" in report:
                _resolve(pending.answer, HostLost(report["lost"]))
            else:
                _resolve(pending.answer, _result(pending.trial, report["answer"]))

    def _watch(self) -> None:
        """Stops what is to be stopped; gives up a cluster that does not answer, or has no room for any trial."""
        now = time.monotonic()
        with self._lock:
            pending = dict(self._pending)
        for number, one in pending.items():
            if one.stopped_at is None and one.should_stop():
                one.stopped_at = now
                if one.host is None:
                    _resolve(one.answer, interrupted(one.trial))
                else:
                    self._send({"do": "stop", "id": number, "host": one.host})
            elif one.stopped_at is not None and now - one.stopped_at > STOP_S:
                left = (
                    f"host {one.host} has not reported that it has restored everything; its agent continues by itself"
                )
                _resolve(one.answer, LeftBehind(left, remedy=f"see there: iolab restore (host {one.host})"))
        if self._ready.is_set() and now - self._heard > self._silence_s:
            self._fail(MachineError(f"the Ray cluster has not answered for {self._silence_s:.0f} s", where=self._where))
        waits = any(one.host is None for one in pending.values())
        if self._ready.is_set() and waits and now - self._had_slots > self._silence_s:
            what = f"no node of the Ray cluster has had a CPU for trials for {self._silence_s:.0f} s"
            self._fail(MachineError(what, where=self._where, remedy="start nodes: ray start --address HOST:PORT"))

    def _fail(self, error: IolabError) -> None:
        with self._lock:
            self._failed = self._failed or error
            pending = list(self._pending.values())
            self._pending = {}
        for one in pending:
            _resolve(one.answer, error)
        self._ready.set()
        if not self._closing:
            self._driver.kill()

    def _ended(self) -> MachineError:
        """The driver's last line, once it has ended."""
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - TAIL_BYTES))
        lines = [line.strip() for line in self._stderr.read().decode(errors="replace").splitlines() if line.strip()]
        detail = f": {lines[-1]}" if lines else ""
        return MachineError(f"the Ray cluster is lost{detail}", where=self._where)

    @property
    def _where(self) -> str:
        return addresses.HERE if self.address == "auto" else self.address


def _result(trial: Trial, text: str) -> Record | BaseException:
    answer = json.loads(text)
    record = Record.model_validate(answer["record"]) if "record" in answer else None
    if "error" not in answer:
        assert record is not None, "an answer is a record or an error"
        return record
    error = error_from_json(answer["error"])
    if record is None:
        return error
    return TrialStalled(record, error.what.removeprefix(TrialStalled.PREFIX), where=error.where or trial.machine)


def _resolve(answer: Future[Record], result: Record | BaseException) -> None:
    with suppress(InvalidStateError):  # somebody has resolved it before: it was stopped
        if isinstance(result, BaseException):
            answer.set_exception(result)
        else:
            answer.set_result(result)
