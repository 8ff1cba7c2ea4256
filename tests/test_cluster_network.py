"""A real cluster whose network fails, or is not the plain one: a node in a network namespace is cut off, or the run is;
a node comes late; Ray's TLS; a forwarded port, as ssh forwards it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from fake_machine import SilentDisplay
from iolab.adapters.cluster.connection import Connection
from iolab.adapters.cluster.pool import ClusterPool
from iolab.adapters.run import sweep
from iolab.adapters.simulator import RunAhead
from iolab.domain.record import Record
from iolab.domain.trial import Trial
from ray_nodes import RayNodes
from support.command_line import CommandLine, wait_until
from support.guests import kernel_or_skip
from support.runs import times_finished
from typing_extensions import override

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray: pip install 'iolab[ray]'"),
    pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="needs grpcio: pip install 'iolab[ray]'"),
]
EXPERIMENT = """\
machine = "model:one_disk"
rounds = 10
[workloads.reads]
file_size = "16MiB"
duration = "20ms"
[settings.none]
scheduler = "none"
[settings.deadline]
scheduler = "mq-deadline"
"""
TRIALS = 20
QUICK_CHECKS = {
    "RAY_health_check_initial_delay_ms": "10000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "4",
}
"""A node that is cut off is given up sooner than by default; one that starts on a busy machine is not."""
SLEEPING = '''
import os
import time

import sleeping_trial


def simulate(trial, version):
    """Says where it ran: a line with the address of its node."""
    import ray

    with open(os.environ["RAY_WHERE_FILE"], "a") as file:
        file.write(ray.util.get_node_ip_address() + " " + ray.get_runtime_context().get_node_id() + "\\n")
    return sleeping_trial.simulate(trial, version)
'''


class Told(SilentDisplay):
    """Does something after so many trials."""

    def __init__(self, after: int, do: Callable[[], object]) -> None:
        self.left = after
        self.do = do

    @override
    def trial_finished(self, trial: Trial, record: Record, duration_ns: int) -> None:
        self.left -= 1
        if self.left == 0:
            self.do()


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a line for each trial that was begun, and what makes nodes write it."""
    (tmp_path / "where_trial.py").write_text(SLEEPING)
    benches = Path(__file__).parents[1] / "benches"
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{benches}")
    monkeypatch.setenv("RAY_WHERE_FILE", str(tmp_path / "where.txt"))
    return tmp_path / "where.txt"


def asked(rounds: int = TRIALS // 2) -> list[sweep.Asked]:
    return [sweep.Asked(sweep.Source(Path("reads.toml"), EXPERIMENT), None, rounds)]


def nodes_in(where: Path) -> set[str]:
    return {line.split()[1] for line in where.read_text().splitlines()}


@contextmanager
def sleeping(on: str) -> Iterator[RunAhead]:
    connection = Connection(on, simulate="where_trial:simulate")
    try:
        with RunAhead(pool=ClusterPool(connection)) as executor:
            yield executor
    finally:
        connection.close()


def test_a_node_that_comes_late_is_used(where: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RayNodes() as nodes:
        nodes.head(1)
        monkeypatch.setenv("RAY_ADDRESS", nodes.address)
        directory = sweep.create(asked(), tmp_path / "out", seed=1)
        with sleeping("ray") as executor:
            sweep.complete(directory, executor=executor, progress=Told(2, lambda: nodes.node(1)))
    assert len(nodes_in(where)) == 2
    assert times_finished(tmp_path / "out" / "reads") == dict.fromkeys(range(TRIALS), 1)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Wire:
    """A network namespace that one wire connects with this one; `cut` takes the wire away."""

    OURS, THEIRS = "10.231.77.1", "10.231.77.2"

    def __init__(self) -> None:
        self.name = f"iolab-test-{os.getpid()}"
        ours, self._theirs = f"iot{os.getpid()}a"[:15], f"iot{os.getpid()}b"[:15]
        ip("netns", "add", self.name)
        try:
            ip("link", "add", ours, "type", "veth", "peer", "name", self._theirs, "netns", self.name)
            ip("address", "add", f"{self.OURS}/30", "dev", ours)
            ip("link", "set", ours, "up")
            ip("-n", self.name, "address", "add", f"{self.THEIRS}/30", "dev", self._theirs)
            ip("-n", self.name, "link", "set", self._theirs, "up")
            ip("-n", self.name, "link", "set", "lo", "up")
        except BaseException:
            self.remove()
            raise

    @property
    def inside(self) -> tuple[str, ...]:
        return ("ip", "netns", "exec", self.name)

    def cut(self) -> None:
        ip("-n", self.name, "link", "set", self._theirs, "down")

    def remove(self) -> None:
        ip("netns", "delete", self.name)  # and with it both ends of the wire


@pytest.fixture
def wire() -> Iterator[Wire]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and `ip` (Debian: iproute2)")
    try:
        made = Wire()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespace can be made here: {error.stderr.decode().strip()}")
    yield made
    made.remove()


def test_what_a_node_ran_that_is_cut_off_is_begun_again_elsewhere(where: Path, wire: Wire, tmp_path: Path) -> None:
    """The wire is cut while both nodes run a trial."""
    with RayNodes(QUICK_CHECKS, ip=wire.OURS) as nodes:
        nodes.head(1)
        nodes.node(1, ip=wire.THEIRS, inside=wire.inside)
        directory = sweep.create(asked(), tmp_path / "out", seed=1)
        with sleeping(nodes.on) as executor:
            wait_until(lambda: executor._pool.slots == 2, "both nodes")
            sweep.complete(directory, executor=executor, progress=Told(8, wire.cut))
    assert {line.split()[0] for line in where.read_text().splitlines()} == {wire.OURS, wire.THEIRS}
    assert times_finished(tmp_path / "out" / "reads") == dict.fromkeys(range(TRIALS), 1)


def test_a_run_that_is_cut_off_from_its_cluster_ends_with_a_line(iolab: CommandLine, wire: Wire) -> None:
    """Nothing is refused and nothing closed: packets get lost. The run ends after its patience, and goes on later."""
    iolab.write("reads.toml", EXPERIMENT.replace("rounds = 10", "rounds = 400"))
    with RayNodes(ip=wire.OURS) as nodes:
        nodes.head(1)
        apart = replace(iolab, prefix=wire.inside)
        with apart.start("sweep", "reads.toml", "--out", "out", "--on", nodes.on, "--patience", "5s") as process:
            run = iolab.cwd / "out" / "reads"
            wait_until(lambda: sum(times_finished(run).values()) >= 3, "the first trials")
            wire.cut()
            began = time.monotonic()
            stderr = process.communicate(timeout=120)[1]
        assert time.monotonic() - began < 60
        assert process.returncode == 3, stderr
        line = next(line for line in stderr.splitlines() if line.startswith("iolab:"))
        assert "Ray cluster" in line and "iolab sweep --resume out" in line
        before = times_finished(run)
        assert 3 <= sum(before.values()) < 800
        assert set(before.values()) == {1}


def test_with_tls_whoever_has_no_certificate_is_kept_out(
    iolab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the variables that docs/many-hosts.md names."""
    if shutil.which("openssl") is None:
        pytest.skip("certificates are made with openssl")
    iolab.write("reads.toml", EXPERIMENT)
    variables = certificate(tmp_path)
    with RayNodes(variables) as nodes:
        nodes.head(1)
        refused = iolab("sweep", "reads.toml", "--out", "other", "--on", nodes.on, status=None)
        refused.assert_one_clear_line(3, "Ray cluster")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        iolab("sweep", "reads.toml", "--out", "out", "--on", nodes.on)
    assert times_finished(iolab.cwd / "out" / "reads") == dict.fromkeys(range(TRIALS), 1)


def certificate(directory: Path) -> Mapping[str, str]:
    """Of a certificate that is its own CA, the variables by which Ray finds it."""
    names = "subjectAltName=IP:127.0.0.1,DNS:localhost," + ",".join(f"IP:{address}" for address in own_addresses())
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=iolab"),
            *("-addext", names, "-keyout", str(directory / "key.pem"), "-out", str(directory / "cert.pem")),
        ],
        check=True,
        capture_output=True,
    )
    return {
        "RAY_USE_TLS": "1",
        "RAY_TLS_SERVER_CERT": str(directory / "cert.pem"),
        "RAY_TLS_SERVER_KEY": str(directory / "key.pem"),
        "RAY_TLS_CA_CERT": str(directory / "cert.pem"),
    }


def own_addresses() -> set[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards, suppress(OSError):
        towards.connect(("192.0.2.1", 9))  # sends nothing
        return {towards.getsockname()[0]}
    return {"127.0.0.1"}


def test_one_forwarded_port_is_enough(iolab: CommandLine) -> None:
    """That for clients, as `ssh -L` forwards it."""
    iolab.write("reads.toml", EXPERIMENT)
    with RayNodes() as nodes, forwarded((nodes.ip, nodes.client_port)) as port:
        nodes.head(1)
        iolab("sweep", "reads.toml", "--out", "out", "--on", f"ray://localhost:{port}")
    assert times_finished(iolab.cwd / "out" / "reads") == dict.fromkeys(range(TRIALS), 1)


@contextmanager
def forwarded(target: tuple[str, int]) -> Iterator[int]:
    """A port of this machine whose connections end at the target."""

    def pass_on(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while chunk := source.recv(1 << 16):
                sink.sendall(chunk)
            sink.shutdown(socket.SHUT_WR)

    def serve(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                ours, _ = listening.accept()
                theirs = socket.create_connection(target)
                for pair in ((ours, theirs), (theirs, ours)):
                    threading.Thread(target=pass_on, args=pair, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


GUEST = """\
machine = "guest:{kernel}"
rounds = 1
[target]
kind = "scratch"
size = "32MiB"
filesystem = "none"
[guest]
memory = "512MiB"
[workloads.reads]
operations = 500
pattern = "random"
engine = "psync"
block_size = "4KiB"
file_size = "4MiB"
"""


def test_guests_boot_on_nodes(iolab: CommandLine) -> None:
    iolab.write("guest.toml", GUEST.format(kernel=kernel_or_skip()))
    with RayNodes() as nodes:
        nodes.head(1)
        iolab("run", "guest.toml", "--out", "run", "--on", nodes.on, time_limit_s=600)
    shown = iolab("show", "run", "--as", "json").json()
    assert times_finished(iolab.cwd / "run") == {0: 1}
    assert "kernel_instructions_per_op" in str(shown)
