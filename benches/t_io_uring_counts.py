"""Instructions of a 4 KiB random direct read in a [guest machine](../guest.md), where no noise is:
iolab against `t/io_uring` in the cells of [t_io_uring](#t_io_uring), on null_blk, which completes
each request as it is submitted, or by a timer 10 us later, so that the reader waits as it does for a
drive. User space and kernel are counted together, on one CPU. iolab records the latency of each
read.

A figure is the difference between a short run and a long one, over the difference of their reads, so
that it has neither start nor end: loads of 10,000 and of 30,000 reads, and 0.03 s and 0.1 s of the
peer.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from guest_counts import chosen_kernel
from result import NotMeasured, Result, at_most, paired
from t_io_uring import CELLS, MOST_INSTRUCTIONS, peer_options, program

OPERATIONS = (10_000, 30_000)
SECONDS = (0.03, 0.1)
"""Of a short run and of a long one."""
DRIVES = {"": {"irqmode": 0}, "10 us later, ": {"irqmode": 2, "completion_nsec": 10_000}}
"""null_blk's parameters by when it completes a request."""
Counts = dict[tuple[int, int], Mapping[str, Any]]
"""What the probe counted in each cell."""
Workload = Callable[[int, int], str]
"""A cell's, as an experiment's table."""
PER_READ = "io_read"
"""The kernel's function that is called once for each read."""


def measure(quick: bool) -> list[Result]:
    peer = program()
    kernel = chosen_kernel(newest=True)
    cells = CELLS[:1] if quick else CELLS
    return [result for when in DRIVES for result in compared(kernel, peer, when, cells)]


def compared(kernel: str, peer: Path, when: str, cells: list[tuple[int, int]]) -> list[Result]:
    drive = DRIVES[when]
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        ours, peers = (
            per_read(
                *(run(kernel, place / f"{side}-{number}", program, drive, cells, one) for number, one in enumerate(two))
            )
            for side, program, two in (
                ("ours", None, [our_workload(count) for count in OPERATIONS]),
                ("peer", peer, [peer_workload(peer.name, drive, seconds) for seconds in SECONDS]),
            )
        )
    command = f"iolab run with machine = guest:{kernel}, {drive}, "
    return [
        paired(
            f"{when}{name(*cell)}: instructions per I/O",
            "count",
            [ours[cell]],
            [peers[cell]],
            "t/io_uring",
            target=at_most(MOST_INSTRUCTIONS),
            commands=[command + our_workload(OPERATIONS[-1])(*cell).replace("\n", " ")],
        )
        for cell in cells
    ]


def per_read(short: Counts, long: Counts) -> dict[tuple[int, int], float]:
    return {
        cell: (long[cell]["total"] - short[cell]["total"]) / (reads(long[cell]) - reads(short[cell])) for cell in long
    }


def name(depth: int, jobs: int) -> str:
    return f"depth {depth}, {jobs} job{'s' if jobs > 1 else ''}"


def our_workload(operations: int) -> Workload:
    def workload(depth: int, jobs: int) -> str:
        each = {"queue_depth": depth, "jobs": jobs, "operations": operations // jobs}
        lines = ['pattern = "random"', f'file_size = "{64 // jobs}MiB"', *(f"{key} = {each[key]}" for key in each)]
        return "\n".join(lines)

    return workload


def peer_workload(peer: str, parameters: dict[str, int], seconds: float) -> Workload:
    """A drive of its own, as a guest has them (`null_blk_parameters`), because a command's target has a filesystem."""
    drive = "nullb1"
    settings = {"size": 64, "memory_backed": 0, "submit_queues": 1, **parameters, "power": 1}
    made = " && ".join(f"echo {value} > $k/{key}" for key, value in settings.items())

    def workload(depth: int, jobs: int) -> str:
        options = " ".join(peer_options(depth, jobs))
        command = f"k=/sys/kernel/config/nullb/{drive}; mkdir $k && {made} && "
        command += f"timeout -s INT {seconds:g} {peer} {options} /dev/{drive} || [ $? = 124 ]"
        return f"kind = \"command\"\ncommand = '''{command}'''"

    return workload


def run(
    kernel: str,
    place: Path,
    peer: Path | None,
    parameters: dict[str, int],
    cells: list[tuple[int, int]],
    workload: Workload,
) -> Counts:
    """What a trial of each cell's workload counted."""
    from iolab.files.store import read

    tables = "".join(f'[workloads."{depth}-{jobs}"]\n{workload(depth, jobs)}\n' for depth, jobs in cells)
    filesystem = "none" if peer is None else "ext4"
    machine = ", ".join(f'"drive_parameters.{key}" = {value}' for key, value in parameters.items())
    experiment = place.with_suffix(".toml")
    experiment.write_text(
        f'machine = "guest:{kernel}"\nrounds = 1\nseed = 1\n[guest]\ntime_limit = "40min"\n'
        f'[target]\nkind = "scratch"\nsize = "64MiB"\nfilesystem = "{filesystem}"\n{tables}'
        f"[settings.drive]\nmachine = {{ {machine} }}\n"
    )
    path = os.environ["PATH"] if peer is None else f"{peer.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "iolab", "run", experiment, "--out", place],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    data = read(place)
    found: Counts = {}
    for trial in data.trials.iter_rows(named=True):
        record = data.record(trial["trial"])
        if record.status != "ok":
            raise NotMeasured(f"a guest failed: {record.faults}")
        depth, jobs = map(int, trial["workload"].split("-"))
        found[depth, jobs] = record.phases[-1]["probes"]["instructions"]
    return found


def reads(counts: Mapping[str, Any]) -> int:
    return int(counts["calls"][counts["symbols"].index(PER_READ)])
