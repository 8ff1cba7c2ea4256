"""Many runs: `iolab ls`, and the pages of `iolab serve`, over 10,000 run directories with 50 metrics each.

The runs are real directories with a journal, a description of the machine and a Parquet file per trial, written by the
store's own code: 100 benchmarks of 100 nights, two settings, three rounds, and a step of 4 % in every tenth benchmark.
Each `ls` is a new process that finds the index there; the first one, which reads every run, is timed once. The pages
are requested over HTTP, as by a browser, from a server that has just started; each comparison is of runs that it has
not compared before. Memory is the server's resident set after all requests.
"""

import json
import multiprocessing
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from iolab.domain.record import Record
from iolab.domain.trial import Trial
from iolab.files.store import trial_file
from iolab.files.store.directory import create
from iolab.files.store.event import RunStarted
from iolab.files.store.journal import Clocks, Journal
from iolab.files.store.rows import TableRow
from iolab.files.store.state import describe_finished
from result import Result, bounded

PROGRAM = Path(sys.executable).parent / "iolab"
METRICS = ("iops", "rate_bytes_per_s", "latency_ns_mean", "latency_ns_p99", *(f"counter_{n}" for n in range(46)))
SETTINGS = ("none", "bfq")
ROUNDS = 3
NIGHT_NS = 86_400 * 10**9
EXPERIMENT = """\
title = "Benchmark {number}"
rounds = 3
seed = 1
[target]
kind = "directory"
path = "."
[workloads.reads]
file_size = "16MiB"
duration = "1s"
[settings.none]
[settings.bfq]
workload = {{ queue_depth = 2 }}
[compare]
metrics = ["iops", "rate_bytes_per_s", "latency_ns_mean", "latency_ns_p99"]
"""


def measure(quick: bool) -> list[Result]:
    count, rounds = (300, 2) if quick else (10_000, 5)
    with tempfile.TemporaryDirectory(prefix="iolab-bench-", dir="/dev/shm") as made:
        runs = Path(made, "runs")
        write_runs(runs, count)
        command = f"iolab ls ({count:,} runs)"
        first_s = seconds(runs)
        listed = [seconds(runs) for _ in range(rounds)]
        with served(runs) as (address, process):
            wait_for_histories(address)
        with served(runs) as (address, process):
            pages = Pages(address)
            first_page = [sum(pages.seconds(name) for name in ("", "main.js", "api/meta.json", "api/overview.json"))]
            every = pages.seconds("api/runs/0.json")
            compared = compare(pages, rounds=4 * rounds)
            benchmark = look_at_benchmarks(pages, 2 * rounds)
            memory = resident_bytes(process.pid)
        return [
            bounded("ls, index there", "s", listed, limit=1.0, commands=[command]),
            bounded("ls, every run read (once)", "s", [first_s], limit=3600.0, commands=[command]),
            bounded("first page, all its files", "s", first_page, limit=1.0),
            bounded("list of all runs", "s", [every], limit=1.0),
            bounded("comparison of two runs, slowest", "ms", [max(compared) * 1e3], limit=300.0),
            bounded("page of a benchmark or a metric, slowest", "ms", [max(benchmark) * 1e3], limit=1000.0),
            bounded("largest page", "MB", [pages.largest / 1e6], limit=2.0),
            bounded("server's memory", "MiB", [memory / 2**20], limit=1024.0),
        ]


def write_runs(parent: Path, count: int) -> None:
    """100 nights of each benchmark, or as many as make `count`."""
    nights = min(100, count)
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        list(
            pool.map(
                write_benchmark, *zip(*((parent, number, nights) for number in range(count // nights)), strict=True)
            )
        )


def write_benchmark(parent: Path, benchmark: int, nights: int) -> None:
    draw = random.Random(benchmark)
    for night in range(nights):
        speed = 0.96 if benchmark % 10 == 0 and night >= nights * 3 // 4 else 1.0
        write_run(parent / f"night-{night:03d}-benchmark-{benchmark:03d}", benchmark, night, speed, draw)


def write_run(path: Path, benchmark: int, night: int, speed: float, draw: random.Random) -> None:
    text = EXPERIMENT.format(number=benchmark)
    began_ns = 1_760_000_000 * 10**9 + night * NIGHT_NS + benchmark * 10**9
    started: RunStarted = {
        "event": "run_started",
        "format": 2,
        "seed": number_of(benchmark, night),
        "rounds": ROUNDS,
        "until_decided": False,
        "machine": "host",
        "probes": [],
        "workloads": ["reads"],
        "settings": list(SETTINGS),
        "iolab_version": "0",
        "build_profile": "release",
        "fingerprint": {"kernel": f"6.{night // 25} #1"},
    }
    machine: dict[str, object] = {
        "hostname": f"host-{benchmark % 4}",
        "kernel": {"release": f"6.{night // 25}"},
        "cpu": {"model": "A CPU", "count_online": 8},
    }
    made = create(path, experiment_text=text, machine=machine, first_event=started)
    with Journal(made.journal_file, clocks=Clocks(lambda: began_ns, lambda: began_ns)) as journal:
        trial = 0
        for turn in range(ROUNDS):
            for setting in SETTINGS:
                write_trial(made.trial_file(trial), journal, trial, turn, setting, began_ns + trial, speed, draw)
                trial += 1
        journal.append("run_finished", rounds=ROUNDS)


def number_of(benchmark: int, night: int) -> int:
    return benchmark * 1000 + night


def write_trial(
    path: Path, journal: Journal, trial: int, turn: int, setting: str, at_ns: int, speed: float, draw: random.Random
) -> None:
    spec = Trial.model_validate(
        {
            "trial": trial,
            "round": turn,
            "position": trial % 2,
            "workload": "reads",
            "setting": setting,
            "seed": 1,
            "machine": "host",
            "controls": {},
            "phases": [],
            "target": {"kind": "directory", "path": "/"},
        }
    )
    record = Record(
        spec=spec,
        status="ok",
        started_unix_ns=at_ns,
        ended_unix_ns=at_ns,
        controls_applied={},
        controls_absent={},
        phases=[],
        observed={},
        faults=[],
        notes=[],
    )
    factor = speed * (1.1 if setting == "bfq" else 1.0)
    rows = [
        TableRow("main", "all", "all", "metric", name, name, None, 1e6 * factor * draw.lognormvariate(0, 0.01), None)
        for name in METRICS
    ]
    stored = trial_file.write(path, record, rows)
    journal.append(**describe_finished(record, stored, attempt=1, duration_ns=10**9))


def seconds(runs: Path) -> float:
    began = time.perf_counter()
    subprocess.run([PROGRAM, "ls", runs], check=True, stdout=subprocess.DEVNULL, timeout=7200)
    return time.perf_counter() - began


@contextmanager
def served(runs: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with subprocess.Popen([PROGRAM, "serve", runs, "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found, "it does not say where it serves"
            yield found[0], process
        finally:
            process.terminate()
            process.wait(timeout=60)


class Pages:
    def __init__(self, address: str) -> None:
        self.address = address
        self.largest = 0

    def seconds(self, name: str) -> float:
        began = time.perf_counter()
        self.get(name)
        return time.perf_counter() - began

    def get(self, name: str) -> bytes:
        with urllib.request.urlopen(f"{self.address}{name}", timeout=600) as answer:
            content: bytes = answer.read()
        self.largest = max(self.largest, len(content))
        return content


def wait_for_histories(address: str) -> None:
    """The first server that sees the runs looks at each history once; what it finds is kept."""
    while json.loads(Pages(address).get("api/overview.json"))["pending"]:
        time.sleep(2)


def compare(pages: Pages, rounds: int) -> list[float]:
    listed = json.loads(pages.get("api/runs/0.json"))["columns"]
    groups: dict[tuple[str, str], list[str]] = {}
    for benchmark, hardware, id in zip(listed["benchmark"], listed["hardware"], listed["id"], strict=True):
        groups.setdefault((benchmark, hardware), []).append(id)
    draw = random.Random(2)
    pairs = [
        draw.sample(group, 2) for group in draw.choices([one for one in groups.values() if len(one) > 1], k=rounds)
    ]
    return [pages.seconds(f"api/compare/{ours}/{theirs}.json") for ours, theirs in pairs]


def look_at_benchmarks(pages: Pages, count: int) -> list[float]:
    listed = json.loads(pages.get("api/overview.json"))["benchmarks"]
    taken = []
    for one in random.Random(3).sample(listed, min(count, len(listed))):
        place = f"api/benchmarks/{one['id']}-{one['hardware']}"
        page = json.loads(pages.get(f"{place}.json"))
        metric = random.Random(4).choice([info["id"] for info in page["metrics"].values()])
        taken += [pages.seconds(f"{place}/{name}.json") for name in ("matrix", metric)]
    return taken


def resident_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1024


if __name__ == "__main__":
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    write_runs(Path(sys.argv[1]), int(sys.argv[2]))
