"""Speed of the simulation, in requests per second of wall time, for one simulation on one core.

The cases are random reads of 4 KiB on the detailed disk at depths 1 and 32; the same on the
simulated array through tasks, block layer and CFQ; 144 disks with 128 reads of 256 KiB in flight on
each for 180 simulated seconds, bare and behind request queues; a million calls of twelve threads of
the NFS/RDMA client; a million files created in XFS; on detailed CPUs, 32 CPUs with 144 disks for
180 simulated seconds; and a flash drive of 952 GiB in its steady state, written once at random.

The peer is SimPy's simplest model of a disk: one queue and one server, a time for each request, no
disk mechanics. Each run on either side is a separate process.
"""

import subprocess
import sys
import tempfile
import venv
from functools import partial
from pathlib import Path

from alternate import alternate
from result import NotMeasured, Result, at_least, bounded, paired

ROOT = Path(__file__).parents[1]
TIME_LIMIT_S = 600.0
SIMPY = "simpy==4.1.1"
PACKAGES = {
    "device_cost": "iolab-devices",
    "whole_stack": "iolab-stack",
    "nfs_calls": "iolab-stack",
    "detailed_cpus": "iolab-stack",
    "creates": "iolab-stack",
}
"""The examples, and whose they are."""
BUILD = ["cargo", "build", "--release", "--quiet", "-p", "iolab-devices", "-p", "iolab-stack"]
BUILD += [word for example in PACKAGES for word in ("--example", example)]

ONE_QUEUE = """
import sys, time, random, simpy
requests, depth = int(sys.argv[1]), int(sys.argv[2])
environment = simpy.Environment()
disk = simpy.Resource(environment, capacity=1)
draw = random.Random(1).uniform
def reader():
    for _ in range(requests // depth):
        with disk.request() as turn:
            yield turn
            yield environment.timeout(draw(2.0, 12.0))
for _ in range(depth):
    environment.process(reader())
began = time.perf_counter()
environment.run()
print(requests / (time.perf_counter() - began))
"""

RATES = {
    "disk reads at depth 1": ("device_cost", 1.0),
    "disk reads at depth 32": ("device_cost", 1.0),
    "array hits through CFQ, 8 tasks": ("whole_stack", 0.3),
    "array reads through CFQ, 8 tasks": ("whole_stack", 0.3),
}
"""Load, its example, and the rate that is wanted in millions of requests per second."""

TIMES = {
    "144 disks at random": ("device_cost", 10.0),
    "144 disks at random through noop": ("whole_stack", 10.0),
    "a million NFS/RDMA calls, mapped": ("nfs_calls", 3.0),
    "a million NFS/RDMA calls, pulled up": ("nfs_calls", 3.0),
    "32-way with 144 disks for 180 s": ("detailed_cpus", 20.0),
    "a million creates, one thread, workqueue": ("creates", 3.0),
    "a day of writes to a terabyte drive": ("whole_stack", 60.0),
}
"""Load, its example, and the wall time that is wanted in seconds."""


def measure(quick: bool) -> list[Result]:
    rounds, peer_requests = (1, 20_000) if quick else (5, 200_000)
    build()
    with tempfile.TemporaryDirectory() as folder:
        simpy = install_simpy(Path(folder))
        loads = {name: partial(ours, example, name) for name, (example, _) in (RATES | TIMES).items()}
        peers = {f"SimPy at depth {depth}": partial(peer, simpy, peer_requests, depth) for depth in (1, 32)}
        samples = alternate(loads | peers, rounds)
    rates = [
        result
        for name in RATES
        for result in rate(name, samples[name], samples[f"SimPy at depth {1 if name.endswith(' 1') else 32}"])
    ]
    commands = [command(example, name) for name, (example, _) in TIMES.items()]
    times = [
        bounded(f"{name}, wall time", "s", samples[name], limit=limit, commands=commands)
        for name, (_, limit) in TIMES.items()
    ]
    return [*rates, *times]


def rate(name: str, own_millions: list[float], simpy: list[float]) -> list[Result]:
    """Against what is wanted, and beside the peer, which models far less."""
    example, wanted = RATES[name]
    own = [1e6 * one for one in own_millions]
    commands = [command(example, name)]
    beside = paired(name, "requests/s", own, simpy, "SimPy, one queue", commands=commands)
    against = paired(
        f"{name}, against the target", "requests/s", own, [1e6 * wanted] * len(own), "target", target=at_least(1)
    )
    return [against, beside]


def build() -> None:
    done = subprocess.run(BUILD, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotMeasured(f"the examples could not be built: {done.stderr.strip().splitlines()[-1]}")


def ours(example: str, name: str) -> float:
    """The value of the line of that name: an example also runs the loads whose names contain it."""
    program = ROOT / "target/release/examples" / example
    output = run([str(program), name])
    values = [fields[1] for line in output.splitlines() if (fields := line.split("\t"))[0] == name]
    return float(values[0])


def peer(python: Path, requests: int, depth: int) -> float:
    return float(run([str(python), "-c", ONE_QUEUE, str(requests), str(depth)]))


def run(arguments: list[str]) -> str:
    return subprocess.run(arguments, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=True).stdout


def command(example: str, name: str) -> str:
    return f"cargo run --release -p {PACKAGES[example]} --example {example} {name!r}"


def install_simpy(folder: Path) -> Path:
    """Python of an environment of its own that has SimPy."""
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    install = [str(python), "-P", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", SIMPY]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        raise NotMeasured(f"pip could not install {SIMPY}: is a package index reachable?")
    return python
