"""Kills at random instants of a run on a cluster: the run, its driver, Ray's workers, nodes, a host's agent, the head.

A case is a sweep, or a run of two hosts, of which one or two parts are killed. What was killed is started again, and
the run is gone on with until it is complete. Then each trial was measured once, each round on one host, and nothing is
left behind where the hosts measured. A host is this machine in a mount namespace of its own, with locks and a state
directory of its own.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from family import Attack, Family, Lane, Outcome
from ground import Ground, detach_under, ground
from ray_nodes import RayNodes, processes_of
from support.command_line import PROGRAM
from support.devices import loops_backed_under
from support.runs import events, times_finished

HOSTS = ("a", "b")
ROUNDS = 4
PATIENCE = "20s"
TRIES_MAX = 6
RUN_S = 180.0
SIMULATED = """\
machine = "model:one_disk"
rounds = 6
[workloads.reads]
pattern = "random"
file_size = "256MiB"
queue_depth = 8
duration = "2s"
[settings.none]
scheduler = "none"
[settings.deadline]
scheduler = "mq-deadline"
"""
OF_HOSTS = f"""\
rounds = {ROUNDS}
target = {{ kind = "scratch", size = "64MiB", filesystem = "ext4" }}
[workloads.reads]
file_size = "8MiB"
duration = "300ms"
[settings.none]
scheduler = "none"
[settings.deadline]
scheduler = "mq-deadline"
nr_requests = 32
"""
VICTIMS = ("run", "driver", "ray worker", "node", "agent", "agent and its node", "head")


class Cluster:
    """Head, a node, and a host for each of `HOSTS`, each of which can be killed and started again."""

    def __init__(self, own: Ground) -> None:
        self.own = own
        self.nodes: RayNodes
        self.agents: dict[str, subprocess.Popen[str]] = {}
        self.start()

    def start(self) -> None:
        self.nodes = RayNodes()
        self.head = self.nodes.head(1)
        self.node = self.nodes.node(1)
        for name in HOSTS:
            self.start_agent(name)

    def stop(self) -> None:
        for name in HOSTS:
            self.kill_agent(name, with_node=True)
        self.nodes.__exit__()

    def state(self, name: str) -> Path:
        return self.own.directory / f"state-{name}"

    def start_agent(self, name: str) -> None:
        self.state(name).mkdir(mode=0o700, exist_ok=True)
        said = (self.own.directory / f"agent-{name}.log").open("a")
        script = f"mkdir -p /run/iolab && mount -t tmpfs none /run/iolab && exec {PROGRAM} host --join $1 --name {name}"
        self.agents[name] = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "slave", "sh", "-c", script, "sh", self.nodes.address],
            env={**os.environ, "IOLAB_STATE_DIR": str(self.state(name)), "RAY_TMPDIR": str(self.nodes.directory)},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            text=True,
            start_new_session=True,
        )

    def kill_agent(self, name: str, *, with_node: bool) -> None:
        agent = self.agents[name]
        for process in processes_of(agent.pid) if with_node else [agent.pid]:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        agent.wait()

    def mend(self) -> None:
        """Starts again what does not live."""
        if self.head.poll() is not None:
            self.stop()
            self.start()
            return
        if self.node.poll() is not None:
            self.node = self.nodes.node(1)
        for name, agent in self.agents.items():
            if agent.poll() is not None:
                self.start_agent(name)


class ClusterKills:
    def __init__(self, own: Ground) -> None:
        self.own = own
        self.cluster = Cluster(own)

    def __call__(self, case: int) -> Outcome:
        rng = self.own.lane.random("cluster", case)
        of_hosts = rng.random() < 0.6
        (self.own.work / "x.toml").write_text(OF_HOSTS if of_hosts else SIMULATED)
        out = self.own.work / f"run-{case}"
        first = (
            ["run", "x.toml", "--seed", "1", "--out", str(out)]
            if of_hosts
            else ["sweep", "x.toml", "--machine", "model:one_disk", "--machine", "model:nvme", "--out", str(out)]
        )
        kills, wrong, said = 0, list[str](), list[str]()
        for attempt in range(TRIES_MAX):
            again = [first[0], "--resume", str(out), *(["--trust-run"] if of_hosts else [])]
            process = self._start(again if out.exists() else first)
            if attempt < 2:
                kills += 1
                said.append(self._kill(rng, process, of_hosts))
                time.sleep(rng.uniform(0, 2))
                self.cluster.mend()
            try:
                stdout, stderr = process.communicate(timeout=RUN_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return Outcome(kills, [f"the run hangs, after: {said}"])
            said.append(f"status {process.returncode} {(stderr.splitlines() or [''])[-1]}")
            if "Traceback" in stdout + stderr or "defect" in stderr:
                wrong.append(f"a traceback or defect: {stderr[-400:]!r}")
            if process.returncode == 0:
                break
            self.cluster.mend()
        else:
            wrong.append(f"not complete after {TRIES_MAX} tries")
        wrong += self._counted(out, of_hosts) + self._left()
        if wrong:
            wrong.append(f"what was killed and said: {said}")
        return Outcome(max(1, kills), wrong)

    def _start(self, arguments: list[str]) -> subprocess.Popen[str]:
        return self.own.iolab.start_program(*arguments, "--on", self.cluster.nodes.on, "--patience", PATIENCE)

    def _kill(self, rng: random.Random, process: subprocess.Popen[str], of_hosts: bool) -> str:
        who = rng.choice([one for one in VICTIMS if of_hosts or "agent" not in one])
        time.sleep(rng.uniform(3, 12))
        cluster, host = self.cluster, rng.choice(HOSTS)
        if who == "run":
            process.kill()
        elif who == "driver":
            _kill_one(processes_of(process.pid), "cluster.driver")
        elif who == "ray worker":
            nodes = [cluster.head.pid, cluster.node.pid, *(agent.pid for agent in cluster.agents.values())]
            _kill_one(processes_of(rng.choice(nodes)), "ray::")
        elif who == "node":
            cluster.nodes.kill(cluster.node)
        elif who == "head":
            cluster.nodes.kill(cluster.head)
        else:
            cluster.kill_agent(host, with_node="node" in who)
        return who

    def _counted(self, out: Path, of_hosts: bool) -> list[str]:
        wrong = []
        for run in [out] if of_hosts else sorted(one.parent for one in out.glob("*/journal.jsonl")):
            times = times_finished(run)
            wanted = 2 * (ROUNDS if of_hosts else 6)
            if times != dict.fromkeys(range(wanted), 1):
                wrong.append(f"{run.name}: trials finished {dict(times)}, expected each of {wanted} once")
            if len(list((run / "trials").glob("*.parquet"))) != wanted:
                wrong.append(f"{run.name}: a trial's file is missing or too many")
            hosts: dict[int, set[str]] = {}
            for event in events(run, "trial_finished"):
                hosts.setdefault(event["round"], set()).add(event.get("host", ""))
                if event["status"] != "ok":
                    wrong.append(f"{run.name}: trial {event['trial']} is {event['status']}")
            wrong += [f"{run.name}: round {number} is of {found}" for number, found in hosts.items() if len(found) > 1]
        return wrong

    def _left(self) -> list[str]:
        give_up = time.monotonic() + 20
        while time.monotonic() < give_up:
            wrong = []
            for name in HOSTS:
                state = self.cluster.state(name)
                wrong += [f"host {name}: loop device left: {one}" for one in loops_backed_under(state)]
                wrong += [f"host {name}: undo journal left: {one.name}" for one in (state / "undo").glob("*.jsonl")]
            if not wrong:
                return []
            time.sleep(0.2)
        return wrong


def _kill_one(processes: list[int], named: str) -> None:
    for process in processes:
        with suppress(OSError):
            if named.encode() in Path("/proc", str(process), "cmdline").read_bytes():
                os.kill(process, signal.SIGKILL)
                return


@contextmanager
def lane(given: Lane) -> Iterator[Attack]:
    with ground(given) as own:
        made = ClusterKills(own)
        try:
            yield made
        finally:
            made.cluster.stop()
            for name in HOSTS:
                detach_under(made.cluster.state(name))


FAMILY = Family(
    "cluster",
    "kills on a Ray cluster of four nodes: no trial lost, none counted twice, hosts as before",
    attacks=40,
    attacks_quick=4,
    lane=lane,
    needs_root=True,
    lanes=1,
)
