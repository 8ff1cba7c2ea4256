"""4 KiB random direct reads on a filesystem on a loop device on tmpfs: XFS and ext4, queue depth 32
and 128, one and two jobs. iolab runs with its default options. The peers are fio's io_uring with
its defaults, and fio tuned by hand (fixed buffers, registered files, batches of a quarter of the
depth, page-aligned memory). All record the latency of each I/O, and none keeps a map of blocks
already read. CPU is that of the generator's own process, with the ring's kernel workers and without
the loop device's.

One kernel thread does all I/O of a loop device and limits its rate. On two CPUs with one job, iolab leaves one CPU to
that thread and uses 0.5 to 0.65 of the other. The thread is then always busy, a quarter of the machine is idle, and no
generator can be faster: fio tuned by hand ends at the same rate. How far fio's defaults fall behind depends on the cost
of a system call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import fio
import loop_device
import ours
from alternate import alternate, cpu, iops
from fio import Sample
from result import NOT_BEHIND, Result, Target, at_least, at_most, paired

FILE_MIB = 512
IOPS, CPU = "IOPS", "CPU per I/O"
DEFAULT, TUNED = "fio io_uring", "fio tuned by hand"


@dataclass(frozen=True)
class Case:
    filesystem: str
    queue_depth: int
    jobs: int

    def __str__(self) -> str:
        return f"{self.filesystem} QD {self.queue_depth}, {self.jobs} job{'s' if self.jobs > 1 else ''}"


@dataclass(frozen=True)
class Pace:
    warm_up_s: float
    duration_s: float
    rounds: int


def measure(quick: bool) -> list[Result]:
    pace = Pace(0.2, 0.3, 1) if quick else Pace(0.5, 2.0, 5)
    results = []
    for filesystem in ("xfs", "ext4"):
        with loop_device.mounted(filesystem, size_mib=FILE_MIB + 256, file_mib=FILE_MIB) as path:
            for queue_depth in (32, 128):
                for jobs in (1, 2):
                    results += measure_case(Case(filesystem, queue_depth, jobs), path, pace)
    return [*medians(results), *results]


def measure_case(case: Case, path: Path, pace: Pace) -> list[Result]:
    options: dict[str, Any] = {"pattern": "random", "queue_depth": case.queue_depth, "jobs": case.jobs}
    options |= {"warm_up": f"{pace.warm_up_s:g}s", "duration": f"{pace.duration_s:g}s", "drop_caches": False}
    default = fio_command(case, path, pace)
    tuned = [*default, *tuning(case.queue_depth)]
    arms: dict[str, Callable[[], Sample]] = {
        "iolab": partial(ours.run, ours.phase(path, FILE_MIB << 20, options)),
        DEFAULT: partial(fio.run, default),
        TUNED: partial(fio.run, tuned),
    }
    samples = alternate(arms, pace.rounds)
    commands = [ours.describe(options), " ".join(default), " ".join(tuned)]
    own = samples["iolab"]
    rows = []
    for peer, iops_target in ((DEFAULT, None), (TUNED, NOT_BEHIND)):
        other = samples[peer]
        rows += [
            paired(f"{case}: {IOPS}", "1/s", iops(own), iops(other), peer, target=iops_target, commands=commands),
            paired(f"{case}: {CPU}", "ns", cpu(own), cpu(other), peer, commands=commands),
        ]
    return rows


def fio_command(case: Case, path: Path, pace: Pace) -> list[str]:
    where = [f"--filename={path}", f"--size={FILE_MIB}m", f"--numjobs={case.jobs}"]
    how = ["--ioengine=io_uring", "--direct=1", "--rw=randread", "--bs=4k", f"--iodepth={case.queue_depth}"]
    return fio.command(*where, *how, warm_up_s=pace.warm_up_s, duration_s=pace.duration_s)


def tuning(queue_depth: int) -> list[str]:
    batch = queue_depth // 4
    return [
        "--fixedbufs",
        "--registerfiles",
        "--iomem_align=4096",
        f"--iodepth_batch_submit={batch}",
        f"--iodepth_batch_complete_min={batch}",
        f"--iodepth_batch_complete_max={queue_depth}",
    ]


def medians(rows: list[Result]) -> list[Result]:
    """The targets are for the median of the cases; a range is that of the cases' own medians."""
    return [
        across_cases(rows, IOPS, DEFAULT, at_least(1.4)),
        across_cases(rows, CPU, DEFAULT, at_most(0.6)),
        across_cases(rows, IOPS, TUNED, NOT_BEHIND),
        across_cases(rows, CPU, TUNED, at_most(0.9)),
    ]


def across_cases(rows: list[Result], figure: str, peer: str, target: Target) -> Result:
    own = [row for row in rows if row.name.endswith(f": {figure}") and row.peer_name == peer]
    peers = [row.peer for row in own if row.peer is not None]
    name = f"all {len(own)} cases: {figure}"
    return paired(name, own[0].unit, [row.ours for row in own], peers, peer, target=target)
