"""The main of the child process that talks to Ray: `python -P -m iolab.machines.cluster.driver ADDRESS FUNCTION`, where
FUNCTION is MODULE:NAME of what a node runs.

It alone imports Ray, which takes seconds to start, has threads and signal handlers of its own, and ends the process
that uses it when its cluster is gone: the run's process reads it in a line, or from the end of the output, and goes on.

Standard input has a `Request` a line, standard output a `Report` a line (message.py). When the input closes, the
process ends, and Ray ends what it still runs.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TextIO

import ray

from iolab.base.errors import IolabError, MachineError
from iolab.base.version import VERSION
from iolab.domain.executor import error_to_json
from iolab.machines.cluster import task
from iolab.machines.cluster.message import HOST_RESOURCE, Report, Request

REPORT_S = 1.0
WAIT_S = 0.05
LEAVE_S = 2.0
RETRIES_MAX = 100
"""A trial is begun again elsewhere when its node or Ray's worker dies: so often at most."""
CONNECT_TIMES_MAX = 5
"""The head starts a process for each client, and in Ray 2.60 that sometimes dies as it starts: so often it is asked."""
CONNECT_AGAIN_S = 0.5
START_FAILED = "Starting Ray client server failed"
"""Ray's message in this case."""
TOLD_CHARACTERS_MAX = 300

_reports: TextIO = sys.stdout


def main() -> int:
    """Passes trials on until standard input closes; 0, or 3 after an error."""
    address, simulate = sys.argv[1:]
    # Whatever else is printed, by Ray for instance, is no report.
    global _reports
    _reports = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        driver = Driver(address, simulate)
        driver.run(_requests())
        driver.leave()
    except IolabError as error:
        _send({"error": error_to_json(error)})
        return error.exit_status
    except BrokenPipeError:
        return 0
    return 0


@dataclass
class SubmittedTrial:
    """A trial that Ray has."""

    id: int
    host: str | None


class Driver:
    """Holds the connection to Ray."""

    def __init__(self, address: str, simulate: str) -> None:
        """`simulate`: what a node runs for a trial of no host, MODULE:FUNCTION. MachineError if no cluster answers."""
        self._ray: Any = ray
        connect(address)
        self._simulate = ray.remote(num_cpus=1, max_retries=RETRIES_MAX)(_named(simulate))
        self._slots: dict[str, Any] = {}
        """By host: the actor that holds its slot."""
        self._begun: dict[Any, SubmittedTrial] = {}
        """By the reference that Ray gave."""

    def run(self, requests: SimpleQueue[Request | None]) -> None:
        """Until a None comes."""
        reported = 0.0
        while True:
            with suppress(Empty):
                while (request := requests.get_nowait() if self._begun else requests.get(timeout=WAIT_S)) is not None:
                    self._do(request)
                return
            self._hand_back()
            if time.monotonic() - reported > REPORT_S:
                reported = time.monotonic()
                self._report()

    def leave(self) -> None:
        """Has Ray end what still runs, which it would else keep for a client that may come back; not for long."""
        leaving = threading.Thread(target=self._ray.shutdown, daemon=True)
        leaving.start()
        leaving.join(LEAVE_S)

    def _do(self, request: Request) -> None:
        host = request.get("host")
        if request["do"] == "stop":
            if host is not None and host in self._slots:
                self._slots[host].stop.remote()
            return
        if host is None:
            reference = self._simulate.remote(request["trial"], VERSION)
        else:
            reference = self._slot(host).run.remote(request["trial"])
        self._begun[reference] = SubmittedTrial(request["id"], host)

    def _slot(self, host: str) -> Any:
        """The actor that passes trials to the host's agent; it waits while another run has the host's slot."""
        if host not in self._slots:
            slot = self._ray.remote(num_cpus=0, max_concurrency=2, resources={f"{HOST_RESOURCE}{host}": 1})(
                task.HostSlot
            )
            self._slots[host] = slot.remote(VERSION)
        return self._slots[host]

    def _hand_back(self) -> None:
        if not self._begun:
            return
        ready, _ = self._ray.wait(list(self._begun), num_returns=1, timeout=WAIT_S)
        more, _ = self._ray.wait(list(self._begun), num_returns=len(self._begun), timeout=0) if ready else ([], [])
        for reference in more:
            begun = self._begun.pop(reference)
            try:
                _send({"id": begun.id, "answer": self._ray.get(reference)})
            except self._ray.exceptions.RayTaskError as error:
                if begun.host is None:
                    raise _unfit(error) from None
                self._give_up(begun, error)
            except self._ray.exceptions.RayError as error:
                if begun.host is None:
                    raise MachineError(
                        f"a trial was begun {RETRIES_MAX} times, and its node died each time: {_description(error)}"
                    ) from None
                self._give_up(begun, error)

    def _give_up(self, begun: SubmittedTrial, error: BaseException) -> None:
        """A host's trial is not begun elsewhere: both settings of a pair belong on one host."""
        assert begun.host is not None
        slot = self._slots.pop(begun.host, None)
        if slot is not None:
            with suppress(Exception):
                self._ray.kill(slot)
        _send({"id": begun.id, "lost": _description(error)})

    def _report(self) -> None:
        alive = [node for node in self._ray.nodes() if node["Alive"]]
        resources = [node["Resources"] for node in alive]
        hosts = [
            name.removeprefix(HOST_RESOURCE) for one in resources for name in one if name.startswith(HOST_RESOURCE)
        ]
        _send({"slots": int(sum(one.get("CPU", 0) for one in resources)), "hosts": sorted(hosts)})


def connect(address: str) -> None:
    """This process to the cluster. MachineError if none answers."""
    for time_left in reversed(range(CONNECT_TIMES_MAX)):
        try:
            ray.init(address=address, namespace="iolab", log_to_driver=False, logging_level=logging.ERROR)
            return
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            if not time_left or START_FAILED not in str(error):
                raise _unreachable(address, error) from None
        time.sleep(CONNECT_AGAIN_S)


def _named(function: str) -> Any:
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)


def _unreachable(address: str, error: Exception) -> MachineError:
    if address == "auto":
        return MachineError(
            "no Ray cluster runs on this machine",
            where="--on ray",
            remedy="start one (ray start --head), or name another: --on ray://HOST:10001",
        )
    return MachineError(
        f"no Ray cluster can be reached: {_description(error)}",
        where=address,
        remedy="see that it runs, with the same versions of Ray and Python",
    )


def _unfit(error: Exception) -> MachineError:
    return MachineError(
        f"a node can't run iolab's trials: {_description(getattr(error, 'cause', None) or error)}",
        remedy="install the same iolab on every node",
    )


def _description(error: BaseException) -> str:
    """Ray's message in a line: the last of a traceback, the first of anything else."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    shown = lines[-1] if "Traceback" in str(error) else lines[0]
    return shown[:TOLD_CHARACTERS_MAX]


def _requests() -> SimpleQueue[Request | None]:
    """Fed by a thread that reads standard input; None when it closes."""
    queue: SimpleQueue[Request | None] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin.buffer:
            queue.put(json.loads(line))
        queue.put(None)

    threading.Thread(target=read, daemon=True).start()
    return queue


def _send(report: Report) -> None:
    _reports.write(json.dumps(report) + "\n")
    _reports.flush()


if __name__ == "__main__":
    try:
        status = main()
    except Exception as error:  # whatever Ray raises when its cluster is gone
        print(_description(error), file=sys.stderr)
        status = 1
    sys.stderr.flush()
    # Not through the interpreter's own exit, where Ray may wait for a cluster that is gone.
    os._exit(status)
