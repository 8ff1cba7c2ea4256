"""Cost of the probes that read kernel events: throughput with the probe on, against off.

Block events: 4 KiB random direct reads on a loop device on tmpfs, paced at 150,000 IOPS and at full
speed. Scheduler events: two processes that wake each other through a pipe on one CPU, with enough
work in between for 100,000 switches per second, and without work. A round without any probe in
either arm shows the noise. The throughput includes the cost on the observed CPUs. The thread that
reads the events has its own cost: the CPU time per event.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import loop_device
import ours
from alternate import alternate
from result import NOT_BEHIND, Result, at_least, bounded, paired

SIZE_MIB = 256
IOPS = 150_000
SWITCHES_PER_S = 100_000
KEPT = at_least(0.95)
PACED = {"rate_iops": IOPS}
READ_NS_MAX = 300.0
"""The time to read an event: 150,000 IOPS with three events each then take a seventh of a CPU to read."""

LOAD = """
import json, sys
from iolab import _native
load = _native.Load.start(sys.stdin.read(), _native.Memory())
while (record := load.wait(60.0)) is None:
    pass
print(record)
"""

PING_PONG = """
import os, sys, time
work, duration_s, cpu = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
os.sched_setaffinity(0, {cpu})
(their_end, ours), (our_end, theirs) = os.pipe(), os.pipe()
if os.fork() == 0:
    os.close(ours)
    while os.read(their_end, 1):
        for _ in range(work):
            pass
        os.write(theirs, b"x")
    os._exit(0)
rounds, began = 0, time.monotonic()
while time.monotonic() - began < duration_s:
    for _ in range(100):
        for _ in range(work):
            pass
        os.write(ours, b"x")
        os.read(our_end, 1)
    rounds += 100
print(rounds / (time.monotonic() - began))
os.close(ours)
os.wait()
"""


@dataclass(frozen=True)
class Watched:
    rate_per_s: float
    events_lost: int = 0
    """The events that the probe lost."""
    events: int = 0
    reader_ns: int = 0
    """CPU time of the process that holds the probe."""

    def __str__(self) -> str:
        return f"{self.rate_per_s:,.0f}/s, {self.events} events, {self.events_lost} lost"


def measure(quick: bool) -> list[Result]:
    duration_s, rounds = (0.3, 2) if quick else (1.0, 15)
    with loop_device.bare(size_mib=SIZE_MIB) as device:
        block = [
            *block_rows(device, f"block events, paced at {IOPS:,} IOPS", PACED, duration_s, rounds, aim=True),
            *block_rows(device, "block events, at full speed", {}, duration_s, rounds, aim=False),
        ]
    return [
        *block,
        *switch_rows(f"scheduler events, {SWITCHES_PER_S:,} switches/s", work_for_rate(), duration_s, rounds, aim=True),
        *switch_rows("scheduler events, at full speed", 0, duration_s, rounds, aim=False),
    ]


def block_rows(
    device: Path, name: str, options: dict[str, Any], duration_s: float, rounds: int, *, aim: bool
) -> list[Result]:
    options = {"pattern": "random", "queue_depth": 32, "warm_up": "0.2s", "duration": f"{duration_s:g}s"} | options
    load = partial(iops, ours.phase(device, SIZE_MIB << 20, {"drop_caches": False, **options}))
    number = device.stat().st_rdev
    of_host = {name: value for name, value in defaults("block").items() if name != "trace"}
    spec = {**of_host, "devices": [f"{os.major(number)}:{os.minor(number)}"]}
    return rows(name, "block", spec, load, rounds, "1/s", [ours.describe(options)], aim=aim)


def switch_rows(name: str, work: int, duration_s: float, rounds: int, *, aim: bool) -> list[Result]:
    load = partial(ping_pong, work, duration_s)
    spec = {name: value for name, value in defaults("switches").items() if name != "tasks"} | {"pids": None}
    return rows(name, "switches", spec, load, rounds, "1/s", [f"two processes, a pipe, work {work}"], aim=aim)


def rows(
    name: str,
    probe: str,
    spec: dict[str, Any],
    load: Callable[[], float],
    rounds: int,
    unit: str,
    commands: list[str],
    *,
    aim: bool,
) -> list[Result]:
    arms: dict[str, Callable[[], Watched]] = {
        "on": partial(watched, probe, spec, load),
        "off": partial(unwatched, load),
        "off again": partial(unwatched, load),
    }
    samples = alternate(arms, rounds)
    rates = {arm: [one.rate_per_s for one in of_arm] for arm, of_arm in samples.items()}
    lost = [float(one.events_lost) for one in samples["on"]]
    cost = [one.reader_ns / max(one.events, 1) for one in samples["on"]]
    target = KEPT if aim else None
    return [
        paired(f"{name}: rate", unit, rates["on"], rates["off"], "off", target=target, commands=commands),
        paired(f"{name}: off against off", unit, rates["off again"], rates["off"], "off", target=NOT_BEHIND),
        bounded(f"{name}: events lost", "events", lost, limit=1),
        bounded(f"{name}: CPU to read an event", "ns", cost, limit=READ_NS_MAX),
    ]


def watched(probe: str, spec: dict[str, Any], load: Callable[[], float]) -> Watched:
    from iolab import _native

    wanted = {"trace_instance": f"iolab-bench-{os.getpid()}", probe: spec}
    probes = _native.Probes.start(json.dumps(wanted))
    before = os.times()
    try:
        rate = load()
    finally:
        after = os.times()
        observed = json.loads(probes.stop())
    if probe in observed["absent"]:
        raise RuntimeError(observed["absent"][probe])
    seen = observed["observations"][probe]
    cpu_ns = int((after.user + after.system - before.user - before.system) * 1e9)
    return Watched(rate, seen["trace_events_lost"], events(seen), cpu_ns)


def unwatched(load: Callable[[], float]) -> Watched:
    return Watched(load())


def events(seen: dict[str, Any]) -> int:
    """The number of events. Switches count, wake-ups do not."""
    if "switches" in seen:
        return int(seen["switches"])
    return sum(sum(device["events"].values()) for device in seen["devices"])


def iops(phase: dict[str, Any]) -> float:
    return ours.sample(json.loads(child(LOAD, given=json.dumps(phase)))).iops


def ping_pong(work: int, duration_s: float) -> float:
    """Rounds per second: two switches each."""
    last_cpu = max(os.sched_getaffinity(0))
    return float(child(PING_PONG, str(work), str(duration_s), str(last_cpu)))


def work_for_rate() -> int:
    """Turns of an empty loop that make a round take as long as two switches shall."""
    wanted_s, many = 2 / SWITCHES_PER_S, 1000
    bare_s, loaded_s = 1 / ping_pong(0, 0.3), 1 / ping_pong(many, 0.3)
    return max(0, round(many * (wanted_s - bare_s) / (loaded_s - bare_s)))


def child(program: str, *arguments: str, given: str = "") -> str:
    """Not in this process, whose CPU time is the reader's."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout


def defaults(probe: str) -> dict[str, Any]:
    """What a user gets who sets none."""
    from iolab.domain.probe import PROBES, resolved

    return resolved(PROBES[probe].options())
