"""A real cluster whose network fails, or is not the plain one: a node in a network namespace is cut off, or the run is;
a node comes late; Ray's TLS; a forwarded port, as ssh forwards it."""

import importlib.util
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from fake_machine import SilentDisplay
from iolab.machines.cluster.connection import Connection
from iolab.machines.cluster.pool import ClusterPool
from iolab.machines.model import ModelExecutor
from iolab.studies.run import cells
from ray_nodes import RayNodes
from support.command_line import CommandLine, Outcome, wait_until
from support.guests import kernel_or_skip
from support.runs import times_finished

pytestmark = [
    pytest.mark.long,
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
    "RAY_grpc_client_keepalive_time_ms": "2000",
    "RAY_grpc_client_keepalive_timeout_ms": "10000",
}
"""A node that is cut off is given up sooner than by default; one that starts on a busy machine is not."""
HELD = '''
import os
import time

import sleeping_trial


def simulate(trial, version):
    """Says on which node it began, and ends when it may."""
    import ray

    with open(os.environ["WHERE_FILE"], "a") as file:
        file.write(ray.util.get_node_ip_address() + "\\n")
    while os.path.exists(os.environ["HOLD_FILE"]):
        time.sleep(0.02)
    return f'{{"record":{sleeping_trial.record(trial)}}}'
'''


class Wire:
    """A network namespace that one wire connects with this one; `cut` takes the wire away."""

    def __init__(self) -> None:
        self.name = f"iolab-test-{os.getpid()}"
        third, fourth = os.getpid() >> 6 & 0xFF, (os.getpid() & 0x3F) << 2
        self.ours, self.theirs = (f"10.231.{third}.{fourth + end}" for end in (1, 2))
        ours, self._theirs = f"iot{os.getpid()}a"[:15], f"iot{os.getpid()}b"[:15]
        ip("netns", "add", self.name)
        try:
            ip("link", "add", ours, "type", "veth", "peer", "name", self._theirs, "netns", self.name)
            ip("address", "add", f"{self.ours}/30", "dev", ours)
            ip("link", "set", ours, "up")
            ip("-n", self.name, "address", "add", f"{self.theirs}/30", "dev", self._theirs)
            ip("-n", self.name, "link", "set", "lo", "up")
            self.mend()
        except BaseException:
            self.remove()
            raise

    @property
    def inside(self) -> tuple[str, ...]:
        return ("ip", "netns", "exec", self.name)

    def cut(self) -> None:
        ip("-n", self.name, "link", "set", self._theirs, "down")

    def mend(self) -> None:
        ip("-n", self.name, "link", "set", self._theirs, "up")

    def remove(self) -> None:
        ip("netns", "delete", self.name)  # and with it both ends of the wire


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def made_wire() -> Iterator[Wire | None]:
    """None where no network namespace can be made."""
    made = None
    if os.geteuid() == 0 and shutil.which("ip") is not None:
        with suppress(subprocess.CalledProcessError):
            made = Wire()
    yield made
    if made is not None:
        made.remove()


@pytest.fixture
def wire(made_wire: Wire | None) -> Wire:
    """Whole."""
    if made_wire is None:
        pytest.skip("no network namespace can be made here: they need root and `ip` (Debian: iproute2)")
    made_wire.mend()
    return made_wire


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a line for each trial of `held_trial` that was begun; they go on until `hold` beside it is gone."""
    directory = tmp_path_factory.mktemp("where")
    (directory / "held_trial.py").write_text(HELD)
    return directory / "where"


@pytest.fixture(scope="module")
def nodes(made_wire: Wire | None, where: Path) -> Iterator[RayNodes]:
    """A head with one CPU. The tests share it: it takes longer to start than they take."""
    environment = {
        **QUICK_CHECKS,
        "PYTHONPATH": python_path(where),
        "WHERE_FILE": str(where),
        "HOLD_FILE": str(where.with_name("hold")),
    }
    with RayNodes(environment, ip=made_wire.ours if made_wire else None) as made:
        made.head(1)
        yield made


def python_path(where: Path) -> str:
    return os.pathsep.join([str(where.parent), str(Path(__file__).parents[1] / "benches")])


def test_a_node_that_comes_late_is_used_and_what_it_ran_when_it_was_cut_off_begins_again_elsewhere(
    nodes: RayNodes, wire: Wire, where: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wire is cut while both nodes run a trial."""
    hold = where.with_name("hold")
    hold.touch()

    def join_and_be_cut_off() -> None:
        try:
            wait_until(where.exists, "a trial on the head")
            late = nodes.node(1, ip=wire.theirs, inside=wire.inside)
            wait_until(lambda: wire.theirs in where.read_text(), "a trial on the node that came late")
            wire.cut()
        finally:
            hold.unlink()
        nodes.kill(late)

    monkeypatch.setenv("PYTHONPATH", python_path(where))
    directory = cells.create(
        [cells.CellRequest(cells.Source(Path("reads.toml"), EXPERIMENT), None, 3)], tmp_path / "out", seed=1
    )
    with (
        closing(Connection(nodes.on, simulate="held_trial:simulate")) as connection,
        ModelExecutor(pool=ClusterPool(connection)) as executor,
        ThreadPoolExecutor(1) as beside,
    ):
        joined = beside.submit(join_and_be_cut_off)
        cells.complete(directory, executor=executor, progress=SilentDisplay())
        joined.result()
    assert where.read_text().split().count(wire.theirs) == 1
    assert times_finished(tmp_path / "out" / "reads") == dict.fromkeys(range(6), 1)


def test_one_forwarded_port_is_enough(nodes: RayNodes, iolab: CommandLine) -> None:
    """That for clients, as `ssh -L` forwards it."""
    iolab.write("reads.toml", EXPERIMENT)
    with forwarded((nodes.ip, nodes.client_port)) as port:
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


def test_guests_boot_on_nodes(nodes: RayNodes, iolab: CommandLine) -> None:
    iolab.write("guest.toml", GUEST.format(kernel=kernel_or_skip()))
    iolab("run", "guest.toml", "--out", "run", "--on", nodes.on)
    assert times_finished(iolab.cwd / "run") == {0: 1}
    assert "kernel_instructions_per_op" in iolab("show", "run", "--as", "csv").stdout


def test_a_run_that_is_cut_off_from_its_cluster_ends_with_a_line(
    nodes: RayNodes, wire: Wire, iolab: CommandLine
) -> None:
    """Nothing is refused and nothing closed: packets get lost. The run ends after its patience, and goes on later. The
    last test of these nodes: Ray keeps the CPU of a client that was cut off for half a minute."""
    iolab.write("reads.toml", EXPERIMENT.replace("rounds = 10", "rounds = 400"))
    apart = replace(iolab, prefix=wire.inside)
    with apart.start("sweep", "reads.toml", "--out", "out", "--on", nodes.on, "--patience", "5s") as process:
        run = iolab.cwd / "out" / "reads"
        wait_until(lambda: sum(times_finished(run).values()) >= 3, "the first trials")
        wire.cut()
        stderr = process.ended()[1]
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
        # It takes its time: Ray tries three times before it gives up.
        with iolab.start("sweep", "reads.toml", "--out", "other", "--on", nodes.on) as refused:
            for name, value in variables.items():
                monkeypatch.setenv(name, value)
            iolab("sweep", "reads.toml", "--out", "out", "--on", nodes.on)
            stdout, stderr = refused.communicate()
        Outcome(refused.returncode, stdout, stderr).assert_one_clear_line(3, "Ray cluster")
    assert times_finished(iolab.cwd / "out" / "reads") == dict.fromkeys(range(TRIALS), 1)


def certificate(directory: Path) -> Mapping[str, str]:
    """The variables by which Ray finds a certificate that is its own CA."""
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
