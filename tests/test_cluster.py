"""Trials on the hosts of a cluster, without the cluster: which host measures what, what an agent does, and a driver
that falls silent."""

import importlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_machine import SilentDisplay, experiment, record_of
from iolab.base import child_process
from iolab.base.errors import InputError, InterruptedRun, MachineError
from iolab.domain.executor import LeftBehind, ShouldStop
from iolab.domain.record import Record
from iolab.domain.trial import Trial
from iolab.files.store import read
from iolab.machines.cluster import address, connection, hosts
from iolab.machines.cluster.agent import Agent
from iolab.machines.cluster.connection import Connection, HostLost
from iolab.machines.cluster.environment import environment
from iolab.machines.cluster.hosts import HostRounds
from iolab.machines.host.local_process import LocalProcess
from iolab.machines.system.lock import Lock
from iolab.presentation.cli.invoke import invoke
from iolab.studies.run import remote_hosts, resume, run
from iolab.studies.run.plan import Plan
from support.runs import times_finished

ROUNDS = 6
PER_ROUND = 4


class World:
    """Hosts as a connection shows them. Each look at them lets something happen: a trial ends, a host dies or comes."""

    def __init__(self, names: list[str], rng: random.Random, deaths: int = 0) -> None:
        self.alive = list(names)
        self.dead: list[str] = []
        self.deaths = deaths
        self.rng = rng
        self.running: dict[str, tuple[Trial, Future[Record]]] = {}
        self.begun: list[tuple[int, str]] = []

    @property
    def hosts(self) -> list[str]:
        what = self.rng.random()
        if self.dead and what < 0.3:
            self.alive.append(self.dead.pop())
        elif self.running and self.deaths and what < 0.5:
            self.die(self.rng.choice(sorted(self.running)))
        elif self.running:
            self.end(self.rng.choice(sorted(self.running)))
        return sorted(self.alive)

    def begin(self, trial: Trial, should_stop: ShouldStop, host: str) -> Future[Record]:
        assert host not in self.running, "two trials at once on a host"
        assert host in self.alive
        self.begun.append((trial.trial, host))
        self.running[host] = trial, Future()
        return self.running[host][1]

    def end(self, host: str) -> None:
        trial, answer = self.running.pop(host)
        answer.set_result(record_of(trial).model_copy(update={"observed": {"host": {"name": host}}}))

    def die(self, host: str) -> None:
        self.deaths -= 1
        self.alive.remove(host)
        self.dead.append(host)
        self.running.pop(host)[1].set_exception(HostLost("its node died"))


class OnWorld(HostRounds):
    """The whole executor, as `OnCluster` would be it."""

    def admit(self, trial: Trial, should_stop: ShouldStop) -> list[Any]:
        return []


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "POLL_S", 0.001)
    monkeypatch.setattr(hosts, "AGAIN_S", 0.0)


def hosts_of_rounds(out: Path) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for event in read(out).found.trials.values():
        found.setdefault(event["round"], set()).add(event["host"])
    return found


def measure(out: Path, world: World, patience_s: float = 5.0) -> None:
    executor = OnWorld(world, patience_s)  # type: ignore[arg-type]
    if out.exists():
        resume(out, executor=executor, progress=SilentDisplay(), on="ray", consent=lambda _: None)
    else:
        run(experiment(), out, executor=executor, progress=SilentDisplay(), rounds=ROUNDS, on="ray")


@pytest.mark.parametrize("seed", range(8))
def test_each_round_is_of_one_host_and_no_trial_is_lost_or_done_twice(
    seed: int, tmp_path: Path, state_dir: Path
) -> None:
    world = World(["a", "b", "c"], random.Random(seed), deaths=5)
    measure(tmp_path / "run", world)
    assert set(times_finished(tmp_path / "run").values()) == {1}
    of_rounds = hosts_of_rounds(tmp_path / "run")
    assert len(of_rounds) == ROUNDS
    assert all(len(one) == 1 for one in of_rounds.values())
    if not world.dead:
        assert len(set.union(*of_rounds.values())) > 1
    times = Counter(trial for trial, _ in world.begun)
    assert sum(times.values()) == ROUNDS * PER_ROUND + 5 - world.deaths


def test_a_host_that_is_gone_in_a_round_is_waited_for_and_a_resumed_run_goes_on_there(
    tmp_path: Path, state_dir: Path
) -> None:
    class Leaves(World):
        @property
        def hosts(self) -> list[str]:
            if "b" in self.running and sum(host == "b" for _, host in self.begun) == 2:
                self.die("b")
            for host in list(self.running):
                self.end(host)
            return sorted(self.alive)

    with pytest.raises(MachineError, match=r"b is gone in the middle of a round.*iolab host --join"):
        measure(tmp_path / "run", Leaves(["a", "b"], random.Random(1)), patience_s=0.05)
    of_rounds = hosts_of_rounds(tmp_path / "run")
    assert sum(times_finished(tmp_path / "run").values()) == ROUNDS * PER_ROUND - (PER_ROUND - 1)
    with pytest.raises(InputError, match="was measured on a, b"):
        resume(tmp_path / "run", executor=LocalProcess(), progress=SilentDisplay(), consent=lambda _: None)
    world = World(["a", "b"], random.Random(2))
    measure(tmp_path / "run", world)
    assert {host for _, host in world.begun} == {"b"}
    assert all(len(one) == 1 for one in hosts_of_rounds(tmp_path / "run").values())
    assert set(times_finished(tmp_path / "run").values()) == {1}
    assert of_rounds.keys() == hosts_of_rounds(tmp_path / "run").keys()


class Stops(World):
    """A trial that goes on until it is stopped, and then ends as `answer` says."""

    def __init__(self, answer: Callable[[Trial], Record]) -> None:
        super().__init__(["a"], random.Random(1))
        self.answer = answer

    @property
    def hosts(self) -> list[str]:
        return self.alive

    def begin(self, trial: Trial, should_stop: ShouldStop, host: str) -> Future[Record]:
        def wait_for_stop() -> Record:
            signal.raise_signal(signal.SIGINT)
            while not should_stop():
                time.sleep(0.001)
            time.sleep(0.05)
            self.begun.append((trial.trial, host))
            return self.answer(trial)

        return ThreadPoolExecutor(1).submit(wait_for_stop)


def left_behind(trial: Trial) -> Record:
    raise LeftBehind("host a has not said so")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda one: record_of(one, status="interrupted"), "everything restored"),
        (left_behind, "host a has not said so"),
    ],
)
def test_a_stop_waits_for_what_the_hosts_say(
    answer: Callable[[Trial], Record], said: str, tmp_path: Path, state_dir: Path
) -> None:
    world = Stops(answer)
    with pytest.raises(InterruptedRun, match=said):
        measure(tmp_path / "run", world)
    assert len(world.begun) == 1


def test_without_any_host_the_run_ends_with_a_line(tmp_path: Path, state_dir: Path) -> None:
    with pytest.raises(MachineError, match="none offers itself; on the host: iolab host --join"):
        measure(tmp_path / "run", World([], random.Random(1)), patience_s=0.05)
    assert not (tmp_path / "run").exists()


def test_two_nodes_of_one_name_are_told_apart_by_the_user(tmp_path: Path, state_dir: Path) -> None:
    with pytest.raises(MachineError, match="two nodes offer a; give each its own name"):
        measure(tmp_path / "run", World(["a", "a"], random.Random(1)), patience_s=0.05)


def test_what_several_hosts_cannot_be_asked(tmp_path: Path) -> None:
    without_target = experiment("[workloads.w]\nduration = '1s'\nfile_size = '1MiB'\n[settings.s]\n")
    with pytest.raises(InputError, match="has no \\[target\\]"):
        remote_hosts.check(without_target, None, "ray")
    with pytest.raises(InputError, match="a boot of one machine"):
        remote_hosts.check(experiment(), "old", "ray")


@pytest.mark.parametrize(
    ("option", "value", "meant"),
    [
        ("--on", "model:one_disk", "--machine model:one_disk"),
        ("--on", "guest:6.12", "--machine guest:6.12"),
        ("--on", "host", "--machine host"),
        ("--machine", "ray", "--on ray"),
        ("--machine", "ray://head:10001", "--on ray://head:10001"),
    ],
)
def test_a_machine_and_a_cluster_are_named_by_the_option_that_was_meant(
    option: str, value: str, meant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "job.toml"
    path.write_text('machine = "model:one_disk"\n[workloads.a]\nduration = "1s"\n')
    assert invoke(["run", str(path), option, value]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"iolab: {option}: {value}") and line.endswith(f"name it as {meant}")


@pytest.mark.parametrize("text", ["rays", "ray://", "ray://host:port", "ray://host:70000"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected"):
        address.parse(text)


def test_where_nobody_listens_is_said_at_once() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(MachineError, match=r"no Ray cluster can be reached: Connection refused"):
            address.check_answers("127.0.0.1", bound.getsockname()[1])


SILENT = 'import json, time; print(json.dumps({"slots": 1, "hosts": []}), flush=True); time.sleep(60)'
ENDS = 'import json, sys; print(json.dumps({"slots": 1, "hosts": []}), flush=True); input(); sys.exit("the head died")'


@pytest.mark.parametrize(
    ("driver", "silence_s", "said"),
    [(SILENT, 0.3, "has not answered for 0 s"), (ENDS, 60.0, "is lost: the head died")],
)
def test_a_cluster_that_is_gone_is_an_error_after_a_time(
    driver: str, silence_s: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(address, "check_installed", lambda **_: None)
    monkeypatch.setattr(child_process, "python", lambda _: [sys.executable, "-c", driver])
    made = Connection("ray", silence_s=silence_s)
    answer = made.begin(a_trial(), lambda: False)
    with pytest.raises(MachineError, match=said):
        answer.result(timeout=60)
    with pytest.raises(MachineError, match=said):
        made.begin(a_trial(), lambda: False).result(timeout=60)
    made.close()


@pytest.mark.parametrize(("failures", "said"), [(2, None), (99, "Starting Ray client server failed")])
def test_a_cluster_that_fails_to_start_a_server_for_its_client_is_asked_again(
    failures: int, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ray 2.60 sometimes fails, in the words of its head."""
    asked = []

    def init(**_: object) -> None:
        asked.append(1)
        if len(asked) <= failures:
            told = "Traceback (most recent call last):\nRuntimeError: Starting Ray client server failed. See x.err"
            raise ConnectionAbortedError(f"Initialization failure from server:\n{told}\n")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    monkeypatch.delitem(sys.modules, "iolab.machines.cluster.driver", raising=False)
    driver = importlib.import_module("iolab.machines.cluster.driver")
    del sys.modules["iolab.machines.cluster.driver"]
    monkeypatch.setattr(driver, "CONNECT_AGAIN_S", 0.0)
    if said is None:
        driver.connect("ray://head:10001")
        assert len(asked) == failures + 1
    else:
        with pytest.raises(MachineError, match=said):
            driver.connect("ray://head:10001")
        assert len(asked) == driver.CONNECT_TIMES_MAX


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("Ray runtime started.", "its node on this host ended"),
        ("Version mismatch: this Error is why", "Version mismatch: this Error is why"),
    ],
)
def test_a_node_that_ends_says_why_in_one_line(says: str, why: str, tmp_path: Path) -> None:
    """With a stand-in for Ray, whose processes log errors as they end, because a head was killed."""
    scripts = tmp_path / "ray" / "scripts"
    scripts.mkdir(parents=True)
    for place in (scripts.parent, scripts):
        (place / "__init__.py").touch()
    logged = "(raylet) store.cc:366: Disconnecting client due to connection trouble with code 2"
    (scripts / "scripts.py").write_text(f"print({says!r}, flush=True)\nprint({logged!r}, flush=True)\n")
    node = subprocess.Popen(
        [*child_process.python("iolab.machines.cluster.node"), "head:1", "a"],
        env={**child_process.python_environment(), "PYTHONPATH": f"{tmp_path}:{os.pathsep.join(sys.path)}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert node.wait(60) == 1
    assert node.stdout is not None and node.stderr is not None
    assert node.stdout.read().splitlines() == [*(["started"] if "started" in says else []), why]
    assert node.stderr.read() == ""


def test_what_the_user_sets_for_ray_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment()["RAY_worker_lease_timeout_milliseconds"] == "5000"
    monkeypatch.setenv("RAY_worker_lease_timeout_milliseconds", "700")
    assert environment()["RAY_worker_lease_timeout_milliseconds"] == "700"


def test_a_stop_does_not_wait_for_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "check_installed", lambda **_: None)
    monkeypatch.setattr(child_process, "python", lambda _: [sys.executable, "-c", SILENT])
    monkeypatch.setattr(connection, "END_S", 0.1)
    made = Connection("ray")
    assert made.begin(a_trial(), lambda: True).result(timeout=10).status == "interrupted"
    made.close()


def a_trial() -> Trial:
    return plan()[0]


def plan() -> list[Trial]:
    return Plan(experiment(), 7).round(0)


class SlowProcess:
    """Stands for `LocalProcess`: a trial of setting `pinned` goes on until it is stopped."""

    def run(self, trial: Trial, on_progress: object, should_stop: ShouldStop) -> Record:
        while trial.setting == "pinned" and not should_stop():
            time.sleep(0.001)
        return record_of(trial, status="interrupted" if trial.setting == "pinned" else "ok")


@pytest.fixture
def agent(state_dir: Path) -> Iterator[socket.socket]:
    """The run's side of a connection to an agent."""
    ours, theirs = socket.socketpair()
    served = Agent("a", Lock([]), lambda _: None, lambda: False)
    thread = threading.Thread(target=served._serve_run, args=(theirs, SlowProcess()))
    thread.start()
    yield ours
    ours.close()
    thread.join(10)
    assert not thread.is_alive()
    theirs.close()


def test_an_agent_runs_trials_stops_one_and_ends_with_the_connection(agent: socket.socket) -> None:
    lines = agent.makefile("r")
    plain, pinned = (next(one for one in plan() if one.setting == name) for name in ("plain", "pinned"))
    agent.sendall(f'{{"trial":{plain.model_dump_json()}}}\n'.encode())
    record = Record.model_validate(json.loads(lines.readline())["record"])
    assert (record.status, record.spec, record.observed["host"]["name"]) == ("ok", plain, "a")
    agent.sendall(f'{{"trial":{pinned.model_dump_json()}}}\n'.encode())
    agent.sendall(b'{"stop":true}\n')
    assert json.loads(lines.readline())["record"]["status"] == "interrupted"
    agent.sendall(f'{{"trial":{pinned.model_dump_json()}}}\n'.encode())
    lines.close()  # and the fixture sees that the trial ends with the connection
