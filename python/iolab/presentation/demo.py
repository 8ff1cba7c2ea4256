"""The demo's experiment: what can be compared on any Linux machine, with root and without."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

SCHEDULERS = ("none", "mq-deadline", "bfq")
"""The first that the kernel has is the baseline."""


@dataclass(frozen=True)
class Length:
    """How long the demo takes."""

    rounds: int
    duration: str
    warm_up: str
    file_size: str


MINUTE = Length(rounds=8, duration="1s", warm_up="200ms", file_size="64MiB")
QUICK = Length(rounds=3, duration="300ms", warm_up="100ms", file_size="32MiB")
"""Too short for a verdict most of the time; it says so."""


def experiment_text(*, quick: bool) -> str:
    """An experiment for this machine and this user, as TOML to keep and change."""
    length = QUICK if quick else MINUTE
    schedulers = _schedulers_here() if _can_make_devices() else []
    if len(schedulers) > 1:
        return _schedulers(length, [schedulers[0], schedulers[-1]] if quick else schedulers)
    return _io_paths(length, direct=_takes_direct_io(Path.cwd()))


def _can_make_devices() -> bool:
    return os.geteuid() == 0 and os.access("/dev/loop-control", os.W_OK) and shutil.which("mkfs.ext4") is not None


def _schedulers_here() -> list[str]:
    """Those of `SCHEDULERS` that the kernel offers for some disk."""
    files = Path("/sys/block").glob("*/queue/scheduler")
    offered = {name.strip("[]") for file in files for name in file.read_text().split()}
    return [name for name in SCHEDULERS if name in offered]


def _schedulers(length: Length, available: list[str]) -> str:
    settings = "\n".join(f'[settings.{name}]\nscheduler = "{name}"\n' for name in available)
    return f"""\
# Random reads beside a sequential writer, under each I/O scheduler.
title = "Which I/O scheduler keeps readers fast beside a writer?"
rounds = {length.rounds}

[target]                  # a loop device on a sparse file, made for each trial and removed after it
kind = "scratch"
size = "1GiB"
filesystem = "ext4"

[workloads.mixed]
kind = "mix"
warm_up = "{length.warm_up}"
duration = "{length.duration}"

[workloads.mixed.jobs.readers]
pattern = "random"
block_size = "4KiB"
queue_depth = 8
file_size = "{length.file_size}"

[workloads.mixed.jobs.writer]
pattern = "sequential"
read_percent = 0
block_size = "256KiB"
queue_depth = 8
rate = "100MiB/s"         # due at this rate, whether the device keeps up or not
file_size = "{length.file_size}"

{settings}
[compare]
metrics = ["read.iops", "read.latency_ns_p99", "write.rate_bytes_per_s", "cpu_ns_per_io"]
same_within = "5%"
"""


def _io_paths(length: Length, *, direct: bool) -> str:
    return f"""\
# The same random reads, eight in flight: by eight threads that wait, or by one ring.
title = "Eight threads that block, or one io_uring?"
rounds = {length.rounds}

[target]                  # iolab makes and removes a directory of its own inside
kind = "directory"
path = "."

[workloads.random_reads]
pattern = "random"
block_size = "4KiB"
file_size = "{length.file_size}"
direct = {str(direct).lower()}
shared_files = true
warm_up = "{length.warm_up}"
duration = "{length.duration}"

[settings.psync]
workload = {{ engine = "psync", jobs = 8, queue_depth = 1 }}

[settings.io_uring]
workload = {{ engine = "io_uring", jobs = 1, queue_depth = 8 }}

[compare]
metrics = ["iops", "latency_ns_p99", "cpu_ns_per_io", "context_switches_per_io"]
same_within = "5%"
"""


def _takes_direct_io(directory: Path) -> bool:
    """Whether files here can be opened with O_DIRECT; memory filesystems often refuse."""
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        try:
            os.close(os.open(file.name, os.O_RDONLY | os.O_DIRECT))
        except OSError:
            return False
    return True
