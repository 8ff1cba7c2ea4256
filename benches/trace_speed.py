"""Speed of `iolab trace`: one pass over the file, all figures included. The cases are a set of blktrace files for two
CPUs, and a table in Alibaba's format. The peer for blktrace is btt, after its pass of `blkparse -d`; the peers for the
table are a scan by polars and one by pandas that sum four columns by operation. The third case is a trace of 10 GiB
that comes through a pipe, like a recording that does not end. The figures are records per second and peak memory. The
time includes the start of the process, and for the pipe the writer's time. The files are in memory."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from alternate import alternate
from import_speed import Sample, sample
from result import NotMeasured, Result, at_least, bounded, paired
from startup import MEMORY

RECORDS, QUICK_RECORDS = 5_000_000, 100_000
MEMORY_MAX_BYTES = 512 * 2**20
_QUEUE, _GET, _INSERT, _ISSUE, _COMPLETE = 1, 4, 12, 7, 8
_CATEGORY = {_QUEUE: 1 << 20, _GET: 1 << 20, _INSERT: 1 << 20, _ISSUE: 1 << 22, _COMPLETE: 1 << 23}
_RECORD = struct.Struct("<IIQQIIIIIHH")
_DEPTH = 32
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


def measure(quick: bool) -> list[Result]:
    if not (shutil.which("btt") and shutil.which("blkparse")):
        raise NotMeasured("btt and blkparse: apt install blktrace")
    records, rounds = (QUICK_RECORDS, 1) if quick else (RECORDS, 5)
    with tempfile.TemporaryDirectory(prefix="iolab-bench-", dir=MEMORY) as name:
        directory = Path(name)
        blktrace(directory / "sda", records)
        files = [str(path) for path in sorted(directory.glob("sda.blktrace.*"))]
        both = f"cd {name} && blkparse -i sda -d merged.bin -O && btt -i merged.bin"
        results = compared(
            "blktrace", records, rounds, [sys.executable, "-c", OURS, *files], {"btt": ["sh", "-c", both]}
        )
        table(directory / "table.csv", records)
        csv = str(directory / "table.csv")
        peers = {"polars": [sys.executable, "-c", POLARS, csv], "pandas": [sys.executable, "-c", PANDAS, csv]}
        results += compared("table", records, rounds, [sys.executable, "-c", OURS, csv], peers)
        return results + piped(directory, 2**26 if quick else 10 * 2**30)


def compared(what: str, records: int, rounds: int, ours: list[str], peers: dict[str, list[str]]) -> list[Result]:
    arms = {"iolab": partial(sample, ours)} | {name: partial(sample, peer) for name, peer in peers.items()}
    found = alternate(arms, rounds)

    def rates(samples: list[Sample]) -> list[float]:
        return [records / one.seconds for one in samples]

    return [
        *(
            paired(
                f"records per second, {what}",
                "1/s",
                rates(found["iolab"]),
                rates(found[name]),
                name,
                target=at_least(1),
                commands=["iolab.studies.trace.study", shown(peer)],
            )
            for name, peer in peers.items()
        ),
        bounded(f"peak memory, {what}", "bytes", [one.peak_bytes for one in found["iolab"]], limit=MEMORY_MAX_BYTES),
    ]


STREAM = """
import sys, numpy as np
kinds = "<u4,<u4,<u8,<u8,<u4,<u4,<u4,<u4,<u4,<u2,<u2"
part = np.frombuffer(open(sys.argv[1], "rb").read(), dtype=kinds).copy()
span = int(part["f2"][-1]) + 700
for _ in range(int(sys.argv[2]) // part.nbytes):
    sys.stdout.buffer.write(part.tobytes())
    part["f1"] += len(part)
    part["f2"] += span
"""
TOLD = """
import json
from iolab import _native
job = _native.TraceJob.start(json.dumps({"paths": ["-"]}))
print(job.wait(3600))
"""


def piped(directory: Path, size: int) -> list[Result]:
    """One CPU's recording through a pipe, of the given length."""
    blktrace(directory / "part", 200_000, cpus=1)
    part = directory / "part.blktrace.0"
    began = time.monotonic()
    writer = [sys.executable, "-c", STREAM, str(part), str(size)]
    with (
        subprocess.Popen(writer, stdout=subprocess.PIPE) as source,
        subprocess.Popen([sys.executable, "-c", TOLD], stdin=source.stdout, stdout=subprocess.PIPE) as reader,
    ):
        assert source.stdout is not None and reader.stdout is not None
        source.stdout.close()
        figures = json.loads(reader.stdout.read())
        _, status, used = os.wait4(reader.pid, 0)
        reader.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - began
    written = size // part.stat().st_size * part.stat().st_size // _RECORD.size
    if figures["events_lost"] or figures["malformed"] or figures["records"] != written:
        raise NotMeasured(f"the pipe was not read whole: {figures['records']} records")
    what = f"blktrace, {size / 2**30:.3g} GiB through a pipe"
    return [
        bounded(f"nanoseconds per record, {what}", "ns", [1e9 * seconds / figures["records"]], limit=200),
        bounded(f"peak memory, {what}", "bytes", [used.ru_maxrss * 1024], limit=MEMORY_MAX_BYTES),
    ]


def shown(command: list[str]) -> str:
    """A command's program and what it reads."""
    return command[2].strip().replace("\n", "; ")


def blktrace(path: Path, records: int, cpus: int = 2) -> None:
    """The files of one or two CPUs, of reads at a depth of 32."""
    files = [path.with_name(f"{path.name}.blktrace.{cpu}").open("wb") for cpu in range(cpus)]
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
        cpu, sector = number % cpus, (number * 2654435761 % 2**28) * 8
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
