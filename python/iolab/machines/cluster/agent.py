"""A host that offers itself: a node of the cluster with one slot, and an agent beside it that runs the trials.

The agent, and not a worker of Ray's, is the parent of the trials' processes: when Ray, its node or the run is killed,
the trial is stopped and everything restored as after a Ctrl-C. When the agent is killed too, the next one restores.
"""

from __future__ import annotations

import json
import os
import platform
import re
import select
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from iolab.base import child_process
from iolab.base.errors import InputError, IolabError, MachineError
from iolab.base.strict_json import JsonObject
from iolab.domain.executor import TrialStalled, error_to_json
from iolab.domain.record import Record
from iolab.domain.trial import DeviceIdentity, Trial
from iolab.machines.cluster import address as addresses
from iolab.machines.cluster.environment import environment
from iolab.machines.cluster.task import SOCKET_VARIABLE
from iolab.machines.host.local_process import LocalProcess
from iolab.machines.system import lock, session
from iolab.machines.system.undo import restore_dead

GCS_PORT = 6379
"""Ray's own default for nodes."""
START_S = 120.0
POLL_S = 0.1
END_S = 15.0
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")

ReportLine = Callable[[str], None]


def serve(join: str, name: str | None, report_line: ReportLine, stop: threading.Event) -> None:
    """Offers this host to the cluster at `join` (HOST or HOST:PORT) until `stop` is set.

    `name`: None: that of this machine. InputError for what is no address or name. MachineError if Ray is not installed,
    no cluster answers, another agent has this host's slot, or the cluster was lost.
    """
    host, port = addresses.host_and_port(join, GCS_PORT, where="--join")
    name = name or platform.node()
    if not NAME.match(name):
        raise InputError(f"{name}: expected letters, digits, dots and dashes, 63 at most", where="--name")
    addresses.check_installed()
    addresses.check_answers(host, port)
    with lock.of_slot() as slot, tempfile.TemporaryDirectory(prefix="iolab-host-") as directory:
        restored = restore_dead()
        for line in restored.lines:
            report_line(f"after an iolab that was killed: {line}")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            path = str(Path(directory) / "agent")
            listening.bind(path)
            listening.listen()
            with _node(f"{host}:{port}", name, path, stop) as node:
                report_line(f"{name} offers itself to {host}:{port}; Ctrl-C ends it")
                Agent(name, slot, report_line, lambda: stop.is_set() or node.poll() is not None).serve(listening)
                if not stop.is_set():
                    raise MachineError(f"the Ray cluster is lost: {_last_word(node)}", where=f"{host}:{port}")


class Agent:
    """Runs trials for one run at a time, one after the other."""

    def __init__(self, name: str, slot: lock.Lock, report_line: ReportLine, should_end: Callable[[], bool]) -> None:
        """`slot`: the lock on this host, which the trials' processes hold too until they have restored everything."""
        self._name = name
        self._slot = slot
        self._report_line = report_line
        self._should_end = should_end
        self._facts: JsonObject = {"name": name, "boot_id": session.boot_id(), **session.fingerprint()}

    def serve(self, listening: socket.socket) -> None:
        """Takes one connection after the other until it is to end."""
        while not self._should_end():
            if _readable(listening, POLL_S):
                connection, _ = listening.accept()
                with connection, LocalProcess(held=self._slot.fds) as executor:
                    self._serve_run(connection, executor)

    def _serve_run(self, connection: socket.socket, executor: LocalProcess) -> None:
        """Until the other side is gone, which ends the trial that runs."""
        peer = _Peer(connection)
        admitted: dict[str, list[DeviceIdentity]] = {}
        while not self._should_end() and not peer.gone:
            request = peer.next()
            if request is None or "trial" not in request:
                continue
            trial = Trial.model_validate_json(json.dumps(request["trial"]))
            self._report_line(f"trial {trial.trial}: {trial.workload} under {trial.setting}")
            answer = self._answer(trial, executor, admitted, lambda: peer.asks_to_stop() or self._should_end())
            peer.send(answer)

    def _answer(
        self,
        trial: Trial,
        executor: LocalProcess,
        admitted: dict[str, list[DeviceIdentity]],
        should_stop: Callable[[], bool],
    ) -> JsonObject:
        try:
            restored = restore_dead()
            for line in restored.lines:
                self._report_line(f"after an iolab that was killed: {line}")
            if trial.target.kind == "device" and trial.writes:
                key = trial.target.model_dump_json(exclude={"admitted"})
                if key not in admitted:
                    admitted[key] = executor.admit(trial, should_stop)
                trial = trial.on_devices(admitted[key])
            record = executor.run(trial, lambda _: None, should_stop)
        except TrialStalled as error:
            return {"error": error_to_json(error), "record": self._with_host_facts(error.record)}
        except IolabError as error:
            return {"error": error_to_json(error)}
        return {"record": self._with_host_facts(record)}

    def _with_host_facts(self, record: Record) -> JsonObject:
        """The record, with what is known of this host."""
        document = record.model_dump(mode="json")
        return {**document, "observed": {**document["observed"], "host": self._facts}}


class _Peer:
    """The run's side of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = bytearray()
        self._requests: list[JsonObject] = []
        self.gone = False
        self.stop_asked = False

    def next(self) -> JsonObject | None:
        """The next request; None when there was none for a moment."""
        if not self._requests:
            self._read(POLL_S)
        return self._requests.pop(0) if self._requests else None

    def asks_to_stop(self) -> bool:
        """Whether the trial that runs is to be stopped: the peer reports it, or is gone."""
        self._read(0)
        return self.stop_asked or self.gone

    def send(self, answer: JsonObject) -> None:
        try:
            self._connection.sendall(json.dumps(answer).encode() + b"\n")
        except OSError:
            self.gone = True

    def _read(self, timeout_s: float) -> None:
        while not self.gone and _readable(self._connection, timeout_s):
            timeout_s = 0
            try:
                chunk = self._connection.recv(1 << 20)
            except OSError:
                chunk = b""
            self.gone = not chunk
            self._buffer += chunk
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)
        for line in lines:
            request = json.loads(line)
            self.stop_asked = "stop" in request  # of the trial that was asked for last
            if not self.stop_asked:
                self._requests.append(request)


@contextmanager
def _node(address: str, name: str, path: str, stop: threading.Event) -> Iterator[subprocess.Popen[str]]:
    """A node of the cluster on this host, which ends with the context, or with this process."""
    node = subprocess.Popen(
        [*child_process.python("iolab.machines.cluster.node"), address, name],
        # Ray would give what passes trials on the lowest priority, beside whatever else the host does.
        env={**environment(), "RAY_worker_niceness": "0", SOCKET_VARIABLE: path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert node.stdin is not None and node.stdout is not None
    try:
        give_up = time.monotonic() + START_S
        while not _readable(node.stdout.fileno(), POLL_S):
            if stop.is_set():
                break
            if time.monotonic() > give_up:
                raise MachineError(f"this host could not join within {START_S:.0f} s", where=address)
        else:
            line = node.stdout.readline().strip()
            if line != "started":
                what = f"this host could not join: {line or 'Ray ended'}"
                raise MachineError(what, where=address, remedy="have the same versions of Ray and Python on every node")
        yield node
    finally:
        with suppress(OSError):
            node.stdin.close()
        try:
            node.wait(END_S)
        except subprocess.TimeoutExpired:
            os.killpg(node.pid, 9)
            node.wait()
        node.stdout.close()


def _last_word(node: subprocess.Popen[str]) -> str:
    assert node.stdout is not None
    return node.stdout.read().strip().rpartition("\n")[2] or "its node on this host ended"


def _readable(what: socket.socket | int, timeout_s: float) -> bool:
    return bool(select.select([what], [], [], timeout_s)[0])
