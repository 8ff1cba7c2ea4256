"""Eight causes planted on this kernel: the first-named mechanism is the planted one.

Loop devices and an ext4 made here; the effects are large, and what names a cause is mostly a count, so that a busy
machine does not change the outcome. Nothing here looks at a time that was not made many times longer.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from iolab.adapters.system import tracefs
from support.command_line import CommandLine
from support.devices import MIB, attach, command, detach, mounted, sparse_file

pytestmark = pytest.mark.root

DEVICE_BYTES = 48 * MIB
BURNERS = 8
BURNERS_NICE = -20
"""Above all other work, so that the machine's own load is nothing beside them; and the job is as far above."""
THROTTLED_IOPS = 20
BLOCK_BYTES = 4096
HOLES = 1536
PUNCH_HOLE_KEEP_SIZE = 0x02 | 0x01
ROUNDS = 3
ROUNDS_OF_TIMES = 5
"""Where a time is what moves."""
BLKIO = Path("/sys/fs/cgroup/blkio")

READS = """
[workloads.reads]
file_size = "16MiB"
duration = "150ms"
cut_transient = false
"""
SEQUENTIAL = READS + 'pattern = "sequential"\n'


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A loop device with ext4, mounted: the device, and where."""
    if tracefs.root() is None:
        pytest.skip("tracefs is not mounted: no block events here")
    device = attach(sparse_file(tmp_path / "backing", DEVICE_BYTES))
    try:
        command("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-m", "0", device)
        with mounted(device, tmp_path / "disk") as place:
            yield device, place
    finally:
        detach(device)


def experiment(place: Path, workload: str, settings: str, *, rounds: int = ROUNDS, probes: str = "block = true") -> str:
    target = f'kind = "directory"\npath = "{place}"'
    return f"rounds = {rounds}\n[target]\n{target}\n[probes]\n{probes}\n{workload}\n{settings}\n"


def first_named(iolab: CommandLine, *runs: str) -> dict[str, Any]:
    """The one pair's cause, which has to have a first mechanism."""
    told = json.loads(iolab("explain", *runs, "--json").stdout)
    (cause,) = told["causes"]
    assert cause["first"] is not None, cause
    found: dict[str, Any] = cause
    return found


def run(iolab: CommandLine, text: str, out: str = "run") -> None:
    iolab.write(f"{out}.toml", text)
    iolab("run", f"{out}.toml", "--out", out)


@contextmanager
def burners(cpu: int) -> Iterator[None]:
    """Processes that do nothing but use this CPU, before everybody else."""

    def place() -> None:
        os.sched_setaffinity(0, {cpu})
        os.setpriority(os.PRIO_PROCESS, 0, BURNERS_NICE)

    own = [subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=place) for _ in range(BURNERS)]
    try:
        yield
    finally:
        for one in own:
            one.send_signal(signal.SIGKILL)
        for one in own:
            one.wait()


def test_read_ahead_off(iolab: CommandLine, disk: tuple[Path, Path]) -> None:
    workload = SEQUENTIAL + 'engine = "psync"\ndirect = false\n'
    run(iolab, experiment(disk[1], workload, "[settings.plain]\n[settings.off]\nread_ahead_kb = 0"))
    cause = first_named(iolab, "run")
    assert (cause["first"]["name"], cause["by_change"]) == ("gathering", ["read_ahead_kb"])
    assert iolab("explain", "run").stdout.startswith(
        "read_ahead_kb is 0 in off, not set in plain: on reads, bios are "
    )


def test_merges_off(iolab: CommandLine, disk: tuple[Path, Path]) -> None:
    workload = SEQUENTIAL + "queue_depth = 32\nbatch = 32\ndrop_caches = false\n"
    run(iolab, experiment(disk[1], workload, "[settings.plain]\n[settings.off]\nnomerges = 2"))
    cause = first_named(iolab, "run")
    assert (cause["first"]["name"], cause["by_change"]) == ("merging", ["nomerges"])
    (merged,) = cause["first"]["metrics"]
    assert merged["with_setting"]["candidate"] == 0.0 and merged["strength"] > 3


def test_small_requests(iolab: CommandLine, disk: tuple[Path, Path]) -> None:
    workload = SEQUENTIAL + 'block_size = "128KiB"\nengine = "psync"\ndrop_caches = false\n'
    run(iolab, experiment(disk[1], workload, "[settings.plain]\n[settings.small]\nmax_sectors_kb = 4"))
    cause = first_named(iolab, "run")
    assert (cause["first"]["name"], cause["by_change"]) == ("request_size", ["max_sectors_kb"])


def test_context_switches(iolab: CommandLine, disk: tuple[Path, Path]) -> None:
    workload = READS + "queue_depth = 16\ndrop_caches = false\n"
    settings = (
        "[settings.batches]\nworkload = { batch = 16 }\n"
        '[settings.singly]\nworkload = { engine = "psync", queue_depth = 1 }'
    )
    run(iolab, experiment(disk[1], workload, settings))
    cause = first_named(iolab, "run")
    assert cause["first"]["name"] == "switching" and "workload.engine" in cause["by_change"]


def test_fragmentation(iolab: CommandLine, disk: tuple[Path, Path]) -> None:
    workload = READS.replace("16MiB", "2MiB") + 'pattern = "sequential"\nblock_size = "128KiB"\nengine = "psync"\n'
    text = experiment(
        disk[1], workload + "drop_caches = false\n", "[settings.only]", probes="block = true\nextents = true"
    )
    run(iolab, text, "whole")
    leave_holes_only(disk[1])
    run(iolab, text, "pieces")
    cause = first_named(iolab, "whole", "pieces")
    assert (cause["first"]["name"], cause["changes"]) == ("layout", [])
    assert "request_size" in [group["name"] for group in cause["symptoms"]]


def leave_holes_only(place: Path) -> None:
    """Takes all free space but single blocks: whatever is written next lies in pieces."""
    os.sync()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    with (place / "hog").open("wb") as file:
        free = os.statvfs(place)
        os.posix_fallocate(file.fileno(), 0, (free.f_bavail - 64) * free.f_frsize)
        for hole in range(HOLES):
            if libc.fallocate(file.fileno(), PUNCH_HOLE_KEEP_SIZE, 2 * hole * BLOCK_BYTES, BLOCK_BYTES):
                raise OSError(ctypes.get_errno(), "fallocate")
        os.fsync(file.fileno())


def test_a_throttled_device(iolab: CommandLine, disk: tuple[Path, Path]) -> None:
    device, place = disk
    workload = READS.replace("150ms", "400ms") + 'engine = "psync"\ndrop_caches = false\n'
    text = experiment(place, workload, "[settings.only]", rounds=ROUNDS_OF_TIMES)
    run(iolab, text, "free")
    with throttled(device):
        run(iolab, text, "throttled")
    cause = first_named(iolab, "free", "throttled")
    assert (cause["first"]["name"], cause["changes"]) == ("above", [])
    assert "a limit of a control group" in " ".join(iolab("explain", "free", "throttled").stdout.split())


@contextmanager
def throttled(device: Path) -> Iterator[None]:
    """Few reads per second of this one device, for the group that the tests run in."""
    file = own_blkio_group() / "blkio.throttle.read_iops_device"
    number = device.stat().st_rdev
    name = f"{os.major(number)}:{os.minor(number)}"
    if not file.exists():
        pytest.skip("no blkio controller of control groups version 1 with throttling here")
    file.write_text(f"{name} {THROTTLED_IOPS}")
    try:
        yield
    finally:
        file.write_text(f"{name} 0")


def own_blkio_group() -> Path:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "blkio" in controllers.split(","):
            return BLKIO / path.lstrip("/")
    return BLKIO


def test_the_wrong_cpu(iolab: CommandLine, disk: tuple[Path, Path]) -> None:
    quiet, busy = two_cpus()
    workload = READS.replace("150ms", "300ms") + 'engine = "psync"\ndirect = false\ndrop_caches = false\n'
    settings = f"[settings.alone]\ncpus = [{quiet}]\nnice = -20\n[settings.beside]\ncpus = [{busy}]\nnice = -20"
    text = experiment(disk[1], workload, settings, rounds=ROUNDS_OF_TIMES, probes=PROBES_OF_CPUS)
    with burners(busy):
        run(iolab, text)
    cause = first_named(iolab, "run")
    assert (cause["first"]["name"], cause["by_change"]) == ("placement", ["cpus"])


def test_competition_for_cpus(iolab: CommandLine, disk: tuple[Path, Path]) -> None:
    cpu, _ = two_cpus()
    workload = READS.replace("150ms", "300ms") + 'engine = "psync"\ndirect = false\ndrop_caches = false\n'
    settings = f"[settings.alone]\ncpus = [{cpu}]\nnice = -20"
    text = experiment(disk[1], workload, settings, rounds=ROUNDS_OF_TIMES, probes=PROBES_OF_CPUS)
    run(iolab, text, "alone")
    with burners(cpu):
        run(iolab, text, "beside")
    cause = first_named(iolab, "alone", "beside")
    assert (cause["first"]["name"], cause["changes"]) == ("contention", [])


PROBES_OF_CPUS = 'block = true\nswitches = { tasks = "own" }'


def two_cpus() -> tuple[int, int]:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU: none is wrong")
    return cpus[0], cpus[1]
