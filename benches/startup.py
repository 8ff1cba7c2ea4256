"""Start-up times: `import iolab`, `iolab --help`; `show` and `compare` of a run of 10,000 trials;
`compare` of a CSV file of 30 rounds, 2 settings and 1,000 metrics. Wall time of the whole process,
median of several runs.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from large_run import write_csv, write_run
from result import Result, bounded

PROGRAM = str(Path(sys.executable).parent / "iolab")
MEMORY = Path("/dev/shm")
START_LIMIT_S, READ_LIMIT_S = 0.3, 3.0
TRIALS, ROUNDS, METRICS = 10_000, 30, 1000


def measure(quick: bool) -> list[Result]:
    trials, metrics, repetitions = (500, 50, 2) if quick else (TRIALS, METRICS, 7)
    with tempfile.TemporaryDirectory(prefix="iolab-bench-", dir=MEMORY) as directory:
        run, csv = Path(directory) / "run", Path(directory) / "numbers.csv"
        write_run(run, trials)
        write_csv(csv, rounds=ROUNDS, metrics=metrics)
        columns = ["--setting-column", "setting", "--round-column", "round", "--baseline", "a"]
        waits = [
            ("import iolab", START_LIMIT_S, [sys.executable, "-c", "import iolab"]),
            ("iolab --help", START_LIMIT_S, [PROGRAM, "--help"]),
            (f"show, {trials:,} trials", READ_LIMIT_S, [PROGRAM, "show", str(run)]),
            (f"compare, {trials:,} trials", READ_LIMIT_S, [PROGRAM, "compare", str(run)]),
            (f"compare, CSV of {metrics:,} metrics", READ_LIMIT_S, [PROGRAM, "compare", str(csv), *columns]),
        ]
        return [
            bounded(name, "s", [seconds(command) for _ in range(repetitions)], limit=limit, commands=[shown(command)])
            for name, limit, command in waits
        ]


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def shown(command: list[str]) -> str:
    return " ".join([Path(command[0]).name, *command[1:]])
