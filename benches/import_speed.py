"""Import of large files of other tools: `iolab import FILE --out RUN`, from start to a durable run.
The peer is a Python process in which pandas only reads the same file into memory
(`pandas.read_csv`, nothing computed). One file is a CSV file of about 1 GB, with names of settings
and workloads, rounds and four metrics. The other is a latency log of fio of the same size, a line
per operation. Wall time and peak resident memory of the whole process; the files are in memory.

A third file is a wide CSV file, of a hundred metrics with all their digits. For both CSV files, CPU
time is compared with a process in which polars groups the same rows and computes the mean of each
metric. iolab also looks for the columns' meaning, computes verdicts' input for each round, and stores
a durable run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from alternate import alternate
from result import Result, at_most, paired
from startup import MEMORY, PROGRAM, shown

if TYPE_CHECKING:
    import numpy
    import polars

MB = 1_000_000
FILE_BYTES, QUICK_BYTES = 1000 * MB, 50 * MB
LINES_AT_ONCE = 500_000
WIDE_METRICS = 100
FASTER, LITTLE_MEMORY, TWICE = at_most(0.8), at_most(0.1), at_most(2)
PEER, GROUPING = "pandas.read_csv", "polars, grouping"
GROUP = """
import sys, polars as pl
path, *keys = sys.argv[1:]
print(pl.scan_csv(path).group_by(keys).agg(pl.all().mean(), pl.len().alias("rows")).collect().shape)
"""


class Sample(NamedTuple):
    seconds: float
    peak_bytes: float
    cpu_s: float


def measure(quick: bool) -> list[Result]:
    size, rounds = (QUICK_BYTES, 1) if quick else (FILE_BYTES, 3)
    with tempfile.TemporaryDirectory(prefix="iolab-bench-", dir=MEMORY) as directory:
        table, log = Path(directory) / "rows.csv", Path(directory) / "load_lat.1.log"
        wide = Path(directory) / "wide.csv"
        write(table, size, rows_of_table)
        results = compared(table, "", rounds)
        results.append(grouped(table, "csv", ["setting", "workload", "round"], rounds))
        table.unlink()
        write(wide, size, rows_of_wide_table)
        results.append(grouped(wide, f"csv of {WIDE_METRICS} metrics", ["setting", "round"], rounds))
        wide.unlink()
        write(log, size, operations_of_log)
        return results + compared(log, ", header=None", rounds)


def compared(path: Path, options: str, rounds: int) -> list[Result]:
    run = path.with_suffix(".run")
    ours = [PROGRAM, "import", str(path), "--out", str(run)]
    peer = [sys.executable, "-c", f"import pandas; pandas.read_csv({str(path)!r}{options})"]
    found = alternate({"iolab": partial(imported, ours, run), PEER: partial(sample, peer)}, rounds)
    what = f"{path.suffix[1:]} of {path.stat().st_size / MB:.0f} MB"
    commands = [shown(ours), shown(peer)]
    return [
        paired(
            f"{name}, {what}",
            unit,
            [getattr(one, of) for one in found["iolab"]],
            [getattr(one, of) for one in found[PEER]],
            PEER,
            target=target,
            commands=commands,
        )
        for name, unit, of, target in (
            ("wall time", "s", "seconds", FASTER),
            ("peak memory", "bytes", "peak_bytes", LITTLE_MEMORY),
        )
    ]


def grouped(path: Path, what: str, keys: list[str], rounds: int) -> Result:
    """CPU time of the whole process, against one that only groups the rows."""
    run = path.with_suffix(".run")
    ours = [PROGRAM, "import", str(path), "--out", str(run)]
    peer = [sys.executable, "-c", GROUP, str(path), *keys]
    found = alternate({"iolab": partial(imported, ours, run), GROUPING: partial(sample, peer)}, rounds)
    return paired(
        f"CPU time, {what}, {path.stat().st_size / MB:.0f} MB",
        "s",
        [one.cpu_s for one in found["iolab"]],
        [one.cpu_s for one in found[GROUPING]],
        GROUPING,
        target=TWICE,
        commands=[shown(ours), shown(peer)],
    )


def imported(command: list[str], run: Path) -> Sample:
    one = sample(command)
    shutil.rmtree(run)
    return one


def sample(command: list[str]) -> Sample:
    """Wall time, peak resident memory and CPU time of one process. CalledProcessError if it fails."""
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return Sample(seconds, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime)


def write(path: Path, size: int, lines: Callable[[numpy.random.Generator, int], polars.DataFrame]) -> None:
    """Lines until the file has `size` bytes, the same ones each time."""
    import numpy as np

    draw = np.random.default_rng(1)
    with path.open("wb") as file:
        while (at := file.tell()) < size:
            lines(draw, at).write_csv(file, include_header=at == 0 and path.suffix == ".csv")


def rows_of_table(draw: numpy.random.Generator, _at: int) -> polars.DataFrame:
    import polars as pl

    n = LINES_AT_ONCE
    return pl.DataFrame(
        {
            "setting": draw.choice(["none", "mq-deadline", "bfq", "kyber"], n),
            "workload": draw.choice(["randread", "randwrite"], n),
            "round": draw.integers(0, 30, n),
            "rate_bytes_per_s": draw.lognormal(20, 0.1, n).round(1),
            "iops": draw.lognormal(11, 0.1, n).round(3),
            "latency_ns_mean": draw.lognormal(12, 0.1, n).round(3),
            "latency_ns_p99": draw.integers(10**5, 10**7, n),
        }
    )


def rows_of_wide_table(draw: numpy.random.Generator, _at: int) -> polars.DataFrame:
    import polars as pl

    n = LINES_AT_ONCE // WIDE_METRICS
    columns = {"setting": draw.choice(["none", "mq-deadline", "bfq", "kyber"], n), "round": draw.integers(0, 30, n)}
    return pl.DataFrame(columns | {f"metric_{number}": draw.lognormal(11, 0.1, n) for number in range(WIDE_METRICS)})


def operations_of_log(draw: numpy.random.Generator, at: int) -> polars.DataFrame:
    """Time in ms, latency in ns, direction, block size, offset, priority; about 30 operations a millisecond."""
    import numpy as np
    import polars as pl

    n = LINES_AT_ONCE
    columns = {
        "time": np.sort(draw.integers(at // 1000, at // 1000 + n // 30, n)),
        "value": draw.lognormal(11.5, 0.6, n).astype(np.int64),
        "direction": draw.integers(0, 2, n),
        "bytes": np.full(n, 4096),
        "offset": draw.integers(0, 1 << 22, n) * 4096,
        "priority": np.zeros(n, np.int64),
    }
    return pl.DataFrame(columns)
