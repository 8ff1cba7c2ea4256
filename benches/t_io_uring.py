"""4 KiB random direct reads against `t/io_uring`, the program in fio's source that does nothing but
submit and reap: fixed buffers, registered files, batches of a quarter of the depth, no latency and
no statistics. XFS on a loop device on tmpfs, depths 1, 8, 32 and 128, one and two jobs. iolab runs
with its default options and records the latency of each read. CPU is that of the generator's own
process.

The filesystem is mounted with `noatime`: t/io_uring opens the file so that reads do not look for its
access time (O_NOATIME), which is 157 instructions of a read. iolab does the same on devices alone,
since `noatime` and `relatime` are options that may be compared.

What the rest of iolab's own instructions buys was counted on the null engine (valgrind, 28 November
2026): 250 for an operation (400 a day before), of which 108 draw its place and apply the job's rules
(rate, bounds, syncs, depth), 5 read the clock, 38 enter the latency in the histogram and the
interval, 2 find that nothing is verified, and the rest moves operations between the job, the slots
and the queue. t/io_uring has 142, with the ring's.

The peer is built from fio's source (`./configure --disable-native && make t/io_uring`: the processor
of guests lacks some of this one's instructions) and named by T_IO_URING. It prints whole operations
of each second; its rate is the mean of these, without the first second.

iolab's defaults submit whatever is ready. With the peer's batches it needs more at depth 8 (1.09 of
its instructions on null_blk, 0.92 by default) and less at depth 32 (1.07, 1.12 by default).
"""

import os
import re
import statistics
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import loop_device
import ours
from alternate import alternate, cpu, cpu_of_children_s, iops
from fio import TIME_LIMIT_S, Sample
from result import NotMeasured, Result, at_least, at_most, paired

FILE_MIB = 512
LEAST_IOPS, MOST_CPU, MOST_INSTRUCTIONS = 0.97, 1.05, 1.05
CELLS = [(depth, jobs) for jobs in (1, 2) for depth in (1, 8, 32, 128)]
"""Queue depth and jobs."""
RATE = re.compile(r"^IOPS=([\d.]+)([KM]?),", re.MULTILINE)
SCALE = {"": 1, "K": 1_000, "M": 1_000_000}


def measure(quick: bool) -> list[Result]:
    peer = program()
    duration_s, rounds = (2, 1) if quick else (4, 5)
    results = []
    with loop_device.mounted("xfs", size_mib=FILE_MIB + 256, file_mib=FILE_MIB, mount="noatime") as path:
        for depth, jobs in CELLS:
            results += compared(peer, path, depth, jobs, duration_s, rounds)
    return results


def program() -> Path:
    named = Path(os.environ.get("T_IO_URING", ""))
    if not named.is_file():
        raise NotMeasured("T_IO_URING names no program; build t/io_uring from fio's source, and name it there")
    return named


def peer_options(depth: int, jobs: int) -> list[str]:
    batch = max(1, depth // 4)
    return ["-p0", "-B1", "-F1", f"-d{depth}", f"-s{batch}", f"-c{batch}", f"-n{jobs}"]


def compared(program: Path, path: Path, depth: int, jobs: int, duration_s: int, rounds: int) -> list[Result]:
    options: dict[str, Any] = {"pattern": "random", "queue_depth": depth, "jobs": jobs, "drop_caches": False}
    options |= {"warm_up": "1s", "duration": f"{duration_s - 1}s"}
    peer = [str(program), *peer_options(depth, jobs), f"-r{duration_s}", str(path)]
    own = ours.phase(path, FILE_MIB << 20, options)
    arms = {"iolab": partial(ours.run, own), "t/io_uring": partial(run, peer, duration_s)}
    samples = alternate(arms, rounds)
    case = f"depth {depth}, {jobs} job{'s' if jobs > 1 else ''}"
    commands = [ours.describe(options), " ".join(["t/io_uring", *peer[1:]])]
    figures = (("IOPS", "1/s", iops, at_least(LEAST_IOPS)), ("CPU per I/O", "ns", cpu, at_most(MOST_CPU)))
    return [
        paired(
            f"{case}: {name}",
            unit,
            of(samples["iolab"]),
            of(samples["t/io_uring"]),
            "t/io_uring",
            target=target,
            commands=commands,
        )
        for name, unit, of, target in figures
    ]


def run(command: list[str], duration_s: int) -> Sample:
    """CPU time is that of the whole process, over the reads of its whole time at the mean rate."""
    before_s = cpu_of_children_s()
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    cpu_s = cpu_of_children_s() - before_s
    rates = [float(number) * SCALE[scale] for number, scale in RATE.findall(done.stdout)]
    if done.returncode != 0 or len(rates) < 2:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")
    rate = statistics.mean(rates[1:])
    return Sample(iops=rate, cpu_ns_per_io=cpu_s * 1e9 / (rate * duration_s))
