"""How fast traces are read: binary ones beside btt and its pass of blkparse, tables beside polars' and pandas' scans.

    python benches/trace_speed.py [--records 5000000]

The traces are made here; each program reads them from memory, in turns. Prints a line per program: records per second
and the most memory of the process.
"""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

ROUNDS = 3
_QUEUE, _GET, _INSERT, _ISSUE, _COMPLETE = 1, 4, 12, 7, 8
_CATEGORY = {_QUEUE: 1 << 20, _GET: 1 << 20, _INSERT: 1 << 20, _ISSUE: 1 << 22, _COMPLETE: 1 << 23}
_RECORD = struct.Struct("<IIQQIIIIIHH")
_DEPTH = 32


def blktrace(path: Path, records: int) -> None:
    """Two CPUs' files of reads at a depth of 32."""
    files = [path.with_name(f"{path.name}.blktrace.{cpu}").open("wb") for cpu in (0, 1)]
    sequences = [0, 0]
    waiting: list[tuple[int, int]] = []
    now_ns = 0

    def put(cpu: int, action: int, sector: int) -> None:
        nonlocal now_ns
        now_ns += 700
        sequences[cpu] += 1
        code = action | _CATEGORY[action] | 1 << 16
        files[cpu].write(
            _RECORD.pack(0x65617407, sequences[cpu], now_ns, sector, 4096, code, 100 + cpu, 8 << 20, cpu, 0, 0)
        )

    for number in range(records // 5):
        cpu, sector = number & 1, (number * 2654435761 % 2**28) * 8
        for action in (_QUEUE, _GET, _INSERT, _ISSUE):
            put(cpu, action, sector)
        waiting.append((cpu, sector))
        if len(waiting) == _DEPTH:
            put(*_completed(waiting.pop(number * 7 % _DEPTH)))
    for one in waiting:
        put(*_completed(one))
    for file in files:
        file.close()


def _completed(one: tuple[int, int]) -> tuple[int, int, int]:
    return one[0], _COMPLETE, one[1]


def table(path: Path, records: int) -> None:
    """Lines as Alibaba's."""
    with path.open("w") as file:
        for number in range(records):
            operation = "W" if number % 3 else "R"
            offset = number * 2654435761 % 2**40 // 4096 * 4096
            file.write(f"{number % 7},{operation},{offset},{4096 << number % 4},{1577808000000000 + number * 13}\n")


def measured(command: list[str], directory: Path) -> tuple[float, int]:
    """Seconds and the most bytes of memory of a program and its children."""
    began = time.perf_counter()
    child = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command[0]} ended with status {child.returncode}")
    return time.perf_counter() - began, usage.ru_maxrss * 1024


OURS = """
import json, sys
from iolab import _native
_native.TraceJob.start(json.dumps({"paths": sys.argv[1:]})).wait(3600)
"""
POLARS = """
import sys, polars as pl
names = ["device", "operation", "offset", "size", "at_us"]
frame = pl.scan_csv(sys.argv[1], has_header=False, new_columns=names)
groups = frame.group_by("operation")
print(groups.agg(pl.len(), pl.col("size").sum(), pl.col("offset").max(), pl.col("at_us").max()).collect())
"""
PANDAS = """
import sys, pandas as pd
names = ["device", "operation", "offset", "size", "at_us"]
frame = pd.read_csv(sys.argv[1], header=None, names=names)
print(frame.groupby("operation").agg({"size": ["count", "sum"], "offset": "max", "at_us": "max"}))
"""


def main() -> None:
    """Makes the traces and times each program in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=5_000_000)
    records = parser.parse_args().records
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        directory = Path(name)
        blktrace(directory / "sda", records)
        table(directory / "table.csv", records)
        files = [str(path) for path in sorted(directory.glob("sda.blktrace.*"))]
        csv = str(directory / "table.csv")
        python = sys.executable
        programs: dict[str, Callable[[], tuple[float, int]]] = {
            "iolab, blktrace": lambda: measured([python, "-c", OURS, *files], directory),
            "iolab, table": lambda: measured([python, "-c", OURS, csv], directory),
            "polars, table": lambda: measured([python, "-c", POLARS, csv], directory),
        }
        if shutil.which("btt"):
            both = "blkparse -i sda -d merged.bin -O && btt -i merged.bin"
            programs["blkparse + btt"] = lambda: measured(["sh", "-c", both], directory)
        if find_spec("pandas"):
            programs["pandas, table"] = lambda: measured([python, "-c", PANDAS, csv], directory)
        taken: dict[str, list[tuple[float, int]]] = {program: [] for program in programs}
        for _ in range(ROUNDS):
            for program, run in programs.items():
                taken[program].append(run())
        for program, found in taken.items():
            seconds = sorted(one for one, _ in found)
            rates = ", ".join(f"{records / one / 1e6:.2f}" for one in seconds)
            print(f"{program}: {rates} M records/s, {max(memory for _, memory in found) / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
