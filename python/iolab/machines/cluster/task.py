"""What runs on the nodes, inside Ray's workers: a trial in a worker process of iolab's, or passed to a host's agent."""

from __future__ import annotations

import json
import os
import socket
import threading

from iolab.base.errors import IolabError
from iolab.base.version import VERSION
from iolab.domain.executor import Answer, error_to_json
from iolab.domain.trial import Trial
from iolab.machines.model.pool import Workers

SOCKET_VARIABLE = "IOLAB_HOST_SOCKET"
"""Where the host's agent listens, as its Ray node has it."""

_workers: Workers | None = None


def simulate(trial: str, version: str) -> str:
    """The answer to a trial of a simulated machine or a guest, both as JSON. A worker process that dies is a trial that
    failed, and costs the node nothing.

    Args:
        version: of iolab where the run is; another one's record would not be the same.
    """
    global _workers
    if version != VERSION:
        return json.dumps(_other_version(version))
    _workers = _workers or Workers()
    try:
        record = _workers.run(Trial.model_validate_json(trial), lambda _: None, lambda: False)
    except IolabError as error:
        return json.dumps({"error": error_to_json(error)})
    return f'{{"record":{record.model_dump_json()}}}'


class HostSlot:
    """The slot of a host, taken by one run at a time: passes trials to the agent there. As an actor with two threads,
    of which one waits for the record and the other may stop it."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._agent.connect(os.environ[SOCKET_VARIABLE])
        self._lines = self._agent.makefile("rb")
        self._sending = threading.Lock()

    def run(self, trial: str) -> str:
        """The agent's answer. ConnectionError if the agent is gone: it restores what the trial changed."""
        if self._version != VERSION:
            return json.dumps(_other_version(self._version))
        self._send(f'{{"trial":{trial}}}')
        line = self._lines.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the agent of the host ended")
        return line.decode()

    def stop(self) -> None:
        """Stops the trial that runs; `run` then answers with a record that reports it."""
        self._send('{"stop":true}')

    def _send(self, line: str) -> None:
        with self._sending:
            self._agent.sendall(line.encode() + b"\n")


def _other_version(version: str) -> Answer:
    return {
        "error": {
            "what": f"a node has iolab {VERSION}, and the run is of iolab {version}",
            "where": socket.gethostname(),
            "remedy": "install the same iolab on every node",
            "exit_status": 3,
        }
    }
