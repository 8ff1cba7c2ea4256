"""A Ray cluster of several nodes on this machine: each a session of processes of its own, which are killed as one."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

START_S = 120.0
OBJECT_STORE_BYTES = 80 << 20


class RayNodes:
    """Use as a context: nothing of it is left behind. It waits while another process has nodes on this machine: the
    servers that heads start for clients take each other's ports, as they all count from 23000."""

    _of_this_process: ClassVar[int] = 0
    _lock: ClassVar[int] = -1

    def __init__(self, environment: Mapping[str, str] | None = None, ip: str | None = None) -> None:
        """`environment`: more variables of every node; `ip`: the head's address, where Ray is not to choose one."""
        self._lock_machine()
        # Sockets lie in it, whose paths are short.
        self.directory = Path(tempfile.mkdtemp(prefix="rn-", dir="/tmp"))
        self.port, self.client_port = free_port(), free_port()
        self._ip_given = ip
        self.ip = ip or "127.0.0.1"
        self._environment = {
            **os.environ,
            "RAY_enable_worker_prestart": "0",
            "RAY_prestart_worker_first_driver": "0",
            "RAY_worker_niceness": "0",
            # Else the process that starts a server for each client runs gRPC's handlers in the fork, which may end it.
            "GRPC_ENABLE_FORK_SUPPORT": "0",
            "RAY_TMPDIR": str(self.directory),
            **(environment or {}),
        }
        self.started: list[subprocess.Popen[bytes]] = []
        """Those that live, the head first."""

    @property
    def address(self) -> str:
        """What nodes join."""
        return f"{self.ip}:{self.port}"

    @property
    def on(self) -> str:
        """What `--on` takes."""
        return f"ray://{self.ip}:{self.client_port}"

    def head(self, cpus: int) -> subprocess.Popen[bytes]:
        return self._start(
            *("--head", "--port", str(self.port), "--ray-client-server-port", str(self.client_port)),
            *("--include-dashboard", "false", "--temp-dir", str(self.directory), "--num-cpus", str(cpus)),
            *("--no-monitor", *(("--node-ip-address", self._ip_given) if self._ip_given else ())),
        )

    def node(self, cpus: int, *, ip: str | None = None, inside: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """`ip`: its address, else as Ray chooses; `inside`: a command that starts it, such as `ip netns exec NAME`."""
        own_ip = ("--node-ip-address", ip) if ip else ()
        return self._start("--address", self.address, "--num-cpus", str(cpus), *own_ip, inside=inside)

    def kill(self, node: subprocess.Popen[bytes]) -> None:
        """All of the node's processes, at once."""
        for process in processes_of(node.pid):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        node.wait()
        if node in self.started:
            self.started.remove(node)

    def __enter__(self) -> RayNodes:
        return self

    def kill_all(self) -> None:
        """Every node, the head too."""
        for node in reversed(self.started[:]):
            self.kill(node)

    def __exit__(self, *_: object) -> None:
        self.kill_all()
        shutil.rmtree(self.directory, ignore_errors=True)
        RayNodes._of_this_process -= 1
        if not RayNodes._of_this_process:
            fcntl.flock(RayNodes._lock, fcntl.LOCK_UN)  # a fork of this process may have it open too
            os.close(RayNodes._lock)

    @classmethod
    def _lock_machine(cls) -> None:
        if not cls._of_this_process:
            cls._lock = os.open(Path(tempfile.gettempdir()) / "iolab-ray-nodes.lock", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(cls._lock, fcntl.LOCK_EX)
        cls._of_this_process += 1

    def _start(self, *arguments: str, inside: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        said = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the node lives)
        node = subprocess.Popen(
            [
                *(*inside, sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"),
                *("--object-store-memory", str(OBJECT_STORE_BYTES), "--include-log-monitor", "false"),
                *("--dashboard-agent-listen-port", str(free_port()), *arguments),
            ],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.started.append(node)
        give_up = time.monotonic() + START_S
        while True:
            said.seek(0)
            text = said.read().decode(errors="replace")
            if "Ray runtime started" in text:
                if (found := re.search(r"Local node IP: *(\S+)", text)) and node is self.started[0]:
                    self.ip = found[1]
                if node is self.started[0]:
                    self._wait_for_clients_port(give_up)
                return node
            assert node.poll() is None and time.monotonic() < give_up, text
            time.sleep(0.05)

    def _wait_for_clients_port(self, give_up: float) -> None:
        """A head reports that it runs before its server of clients listens."""
        while True:
            with suppress(OSError), socket.create_connection((self.ip, self.client_port), timeout=5):
                return
            assert time.monotonic() < give_up, "the head listens to no clients"
            time.sleep(0.1)


def processes_of(session: int) -> list[int]:
    """Those of the session, or begun by them."""
    parents: dict[int, int] = {}
    found = set()
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            _, parent, _, of_session = place.read_text().rpartition(")")[2].split()[:4]
            number = int(place.parent.name)
            parents[number] = int(parent)
            if int(of_session) == session:
                found.add(number)
    while more := {number for number, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])
