"""The demo's experiment: what can be compared on any Linux machine, with root and without.

Both ask for something whose effect is many times the noise of a busy machine, and for something that changes little:
so a first run has verdicts, and shows what an undecided one looks like.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from iolab import _native


@dataclass(frozen=True)
class Length:
    """How long the demo takes."""

    rounds: int
    duration: str
    file_size: str


MINUTE = Length(rounds=6, duration="500ms", file_size="64MiB")
QUICK = Length(rounds=3, duration="300ms", file_size="32MiB")
"""Few rounds: enough for the largest differences alone."""


def experiment_text(*, quick: bool) -> str:
    """An experiment for this machine and this user, as TOML to keep and change."""
    length = QUICK if quick else MINUTE
    if _can_make_devices():
        return _read_ahead(length, _other_scheduler(), _queueing_engine())
    return _request_size(length, _queueing_engine(), direct=_takes_direct_io(Path.cwd()))


def _can_make_devices() -> bool:
    return os.geteuid() == 0 and os.access("/dev/loop-control", os.W_OK) and shutil.which("mkfs.ext4") is not None


def _queueing_engine() -> str:
    """io_uring, which many containers and some distributions refuse."""
    return "io_uring" if json.loads(_native.features())["io_uring"]["usable"] else "libaio"


def _other_scheduler() -> str | None:
    """A scheduler that the kernel offers for some disk, other than `none`."""
    files = Path("/sys/block").glob("*/queue/scheduler")
    offered = {name.strip("[]") for file in files for name in file.read_text().split()}
    return next((name for name in ("mq-deadline", "kyber", "bfq") if name in offered), None)


def _read_ahead(length: Length, scheduler: str | None, engine: str) -> str:
    other = f'[settings.{scheduler}]\nread_ahead_kb = 128\nscheduler = "{scheduler}"\n\n' if scheduler else ""
    return f"""\
# A file read from its beginning, through the page cache, which is dropped first.
title = "Reading a file in order: how far ahead should the kernel read?"
rounds = {length.rounds}

[target]                  # a loop device on a sparse file, made for each trial and removed after it
kind = "scratch"
size = "512MiB"
filesystem = "ext4"

[workloads.sequential_reads]
pattern = "sequential"
engine = "{engine}"
direct = false
block_size = "4KiB"
file_size = "{length.file_size}"
drop_caches = true
amount = "{length.file_size}"   # once through the file at most: what was read before is in the page cache
duration = "{length.duration}"
cut_transient = false     # so short a trial is measured from its start to its end

[settings.ahead_128KiB]   # the kernel's default, and the baseline
read_ahead_kb = 128
scheduler = "none"

[settings.ahead_0]
read_ahead_kb = 0
scheduler = "none"

[settings.ahead_1MiB]
read_ahead_kb = 1024
scheduler = "none"

{other}[compare]
metrics = ["rate_bytes_per_s", "latency_ns_p99", "cpu_ns_per_io"]
same_within = "5%"
"""


def _request_size(length: Length, engine: str, *, direct: bool) -> str:
    return f"""\
# The same file read in order, one request at a time: small requests, large ones, or small ones through a queue.
title = "Reading a file in order: how large should each request be?"
rounds = {length.rounds}

[target]                  # iolab makes and removes a directory of its own inside
kind = "directory"
path = "."

[workloads.sequential_reads]
pattern = "sequential"
engine = "psync"
block_size = "4KiB"
file_size = "{length.file_size}"
direct = {str(direct).lower()}
duration = "{length.duration}"
cut_transient = false     # so short a trial is measured from its start to its end

[settings.requests_4KiB]  # the baseline

[settings.requests_128KiB]
workload = {{ block_size = "128KiB" }}

[settings.requests_4KiB_{engine}]
workload = {{ engine = "{engine}" }}

[compare]
metrics = ["rate_bytes_per_s", "latency_ns_mean", "cpu_ns_per_byte"]
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
