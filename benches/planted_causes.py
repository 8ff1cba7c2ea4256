"""`iolab explain` on this kernel: how often it names the planted cause first.

Eight causes are planted on a loop device on tmpfs with ext4: settings of one run, or a change between two runs of which
iolab has no record. A repetition plants each cause once, one after the other, so that a busy moment of the machine does
not affect one cause alone. *Ours* is the share of repetitions in which the first-named mechanism is the planted one. An
explanation that names another mechanism, or none, is wrong.
"""

import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import loop_device
from result import NotMeasured, Result

REPETITIONS = 20
DEVICE_MIB = 48
ROUNDS = 3
ROUNDS_OF_TIMES = 6
"""Where a time is what moves, or a count that other work on the CPUs changes."""
BLOCK_BYTES = 4096
HOLES = 1536
PUNCH_HOLE_KEEP_SIZE = 0x02 | 0x01
PR_SET_PDEATHSIG = 1
BURNERS = 8
BURNERS_NICE = -5
"""A burner's weight is three times that of a session at 0: the load gets one part of 25 of its CPU."""
THROTTLED_IOPS = 20
BLKIO = Path("/sys/fs/cgroup/blkio")
AUTOGROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")

READS = """
[workloads.reads]
file_size = "16MiB"
duration = "150ms"
cut_transient = false
"""
SEQUENTIAL = READS + 'pattern = "sequential"\n'
OF_TIMES = READS.replace("150ms", "400ms") + 'engine = "psync"\ndrop_caches = false\n'
PROCESSOR = OF_TIMES + "direct = false\n"


@dataclass(frozen=True)
class Cause:
    """One cause: its name, the mechanism that has to be named, and the way to plant and run it."""

    name: str
    mechanism: str
    changed: str | None
    """The setting that has to be blamed; None: iolab has no record of a changed setting."""
    run: Callable[[Path, Path], list[str]]
    """(place on the filesystem, directory for runs) -> the runs that are explained."""


def measure(quick: bool) -> list[Result]:
    if os.geteuid() != 0 or len(os.sched_getaffinity(0)) < 2:
        raise NotMeasured("it takes root and two CPUs")
    repetitions = 1 if quick else REPETITIONS
    right = dict.fromkeys((one.name for one in CAUSES), 0)
    for repetition in range(repetitions):
        for one in random.Random(repetition).sample(CAUSES, len(CAUSES)):
            right[one.name] += is_named_first(one)
    return [result(one, right[one.name], repetitions) for one in CAUSES]


def is_named_first(cause: Cause) -> bool:
    """Plants it once; reports on standard error what was named instead."""
    began = time.monotonic()
    named, changed = first_named(cause)
    is_right = named == cause.mechanism and (cause.changed in changed if cause.changed else not changed)
    outcome = "right" if is_right else f"WRONG: {named} {changed}"
    print(f"   {cause.name}: {outcome}, {time.monotonic() - began:.0f} s", file=sys.stderr)
    return is_right


def result(cause: Cause, right: int, repetitions: int) -> Result:
    return Result(
        name=f"{cause.name}: {right} of {repetitions}",
        unit="share",
        ours=right / repetitions,
        peer=None,
        peer_name="",
        ratio=right / repetitions,
        ratio_min=None,
        ratio_max=None,
        target="= 1",
        met=right == repetitions,
    )


def first_named(cause: Cause) -> tuple[str | None, list[str]]:
    """The mechanism that `iolab explain` names first, and the changed settings that it blames."""
    options = ("-O", "^has_journal", "-m", "0")
    with (
        loop_device.empty("ext4", size_mib=DEVICE_MIB, options=options) as place,
        tempfile.TemporaryDirectory(prefix="iolab-bench-") as runs,
    ):
        told = json.loads(iolab(Path(runs), "explain", *cause.run(place, Path(runs)), "--json"))
    (found,) = told["causes"]
    return (found["first"] or {}).get("name"), found["by_change"]


def iolab(runs: Path, *arguments: str) -> str:
    program = str(Path(sys.executable).with_name("iolab"))
    environment = {**os.environ, "IOLAB_STATE_DIR": str(runs / "state")}
    done = subprocess.run([program, *arguments], cwd=runs, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"iolab {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def run(
    place: Path,
    runs: Path,
    workload: str,
    settings: str,
    *,
    out: str = "run",
    rounds: int = ROUNDS,
    extents: bool = False,
) -> str:
    """One experiment on the filesystem; the run's directory."""
    probes = "block = true\n" + ("extents = true\n" if extents else "")
    text = (
        f'rounds = {rounds}\ntarget = {{ kind = "directory", path = "{place}" }}\n[probes]\n{probes}\n'
        f"{workload}\n{settings}\n"
    )
    (runs / f"{out}.toml").write_text(text)
    iolab(runs, "run", f"{out}.toml", "--out", out)
    return out


def within_a_run(workload: str, settings: str, rounds: int = ROUNDS) -> Callable[[Path, Path], list[str]]:
    return lambda place, runs: [run(place, runs, workload, settings, rounds=rounds)]


def in_pieces(place: Path, runs: Path) -> list[str]:
    """The second run's file lies in pieces."""
    workload = SEQUENTIAL.replace("16MiB", "2MiB") + 'block_size = "128KiB"\nengine = "psync"\ndrop_caches = false\n'
    whole = run(place, runs, workload, "[settings.only]", out="whole", extents=True)
    leave_holes_only(place)
    return [whole, run(place, runs, workload, "[settings.only]", out="pieces", extents=True)]


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


def below_a_limit(place: Path, runs: Path) -> list[str]:
    """The second run's group may do a few reads per second."""
    free = run(place, runs, OF_TIMES, "[settings.only]", out="free", rounds=ROUNDS_OF_TIMES)
    with throttled(place):
        return [free, run(place, runs, OF_TIMES, "[settings.only]", out="throttled", rounds=ROUNDS_OF_TIMES)]


@contextmanager
def throttled(place: Path) -> Iterator[None]:
    """Few reads per second of this filesystem's device, for the control group that this process is in."""
    file = own_blkio_group() / "blkio.throttle.read_iops_device"
    number = place.stat().st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    if not file.exists():
        raise NotMeasured("no blkio controller of control groups version 1 with throttling here")
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


def on_a_busy_cpu(place: Path, runs: Path) -> list[str]:
    """One setting's CPU has other work."""
    quiet, busy = sorted(os.sched_getaffinity(0))[:2]
    settings = f"[settings.quiet]\ncpus = [{quiet}]\n[settings.busy]\ncpus = [{busy}]"
    with burners(busy):
        return [run(place, runs, PROCESSOR, settings, rounds=ROUNDS_OF_TIMES)]


def beside_others(place: Path, runs: Path) -> list[str]:
    """The second run's CPU has other work."""
    cpu = sorted(os.sched_getaffinity(0))[1]
    workload = f"{PROCESSOR}cpus = [{cpu}]\n"
    alone = run(place, runs, workload, "[settings.only]", out="alone", rounds=ROUNDS_OF_TIMES)
    with burners(cpu):
        return [alone, run(place, runs, workload, "[settings.only]", out="beside", rounds=ROUNDS_OF_TIMES)]


@contextmanager
def burners(cpu: int) -> Iterator[None]:
    """Processes that do nothing but use this CPU, each in a session of its own: with automatic groups, all of one
    session together get what a single one would. They end with this process, however it ends."""
    libc, parent = ctypes.CDLL(None), os.getpid()

    def place() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        os.sched_setaffinity(0, {cpu})
        os.setpriority(os.PRIO_PROCESS, 0, BURNERS_NICE)

    own = [
        subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=place, start_new_session=True)
        for _ in range(BURNERS)
    ]
    try:
        if AUTOGROUPS.exists() and AUTOGROUPS.read_text().strip() == "1":
            for one in own:
                Path(f"/proc/{one.pid}/autogroup").write_text(str(BURNERS_NICE))
        yield
    finally:
        for one in own:
            one.send_signal(signal.SIGKILL)
        for one in own:
            one.wait()


CAUSES = [
    Cause(
        "read-ahead off",
        "gathering",
        "read_ahead_kb",
        within_a_run(
            SEQUENTIAL + 'engine = "psync"\ndirect = false\n', "[settings.plain]\n[settings.off]\nread_ahead_kb = 0"
        ),
    ),
    Cause(
        "merges off",
        "merging",
        "nomerges",
        within_a_run(
            SEQUENTIAL + "queue_depth = 32\nbatch = 32\ndrop_caches = false\n",
            "[settings.plain]\n[settings.off]\nnomerges = 2",
        ),
    ),
    Cause("wrong CPU", "placement", "cpus", on_a_busy_cpu),
    Cause("fragmentation", "layout", None, in_pieces),
    Cause(
        "context switches",
        "switching",
        "workload.engine",
        within_a_run(
            READS + "queue_depth = 16\ndrop_caches = false\n",
            "[settings.batches]\nworkload = { batch = 16 }\n"
            '[settings.singly]\nworkload = { engine = "psync", queue_depth = 1 }',
            ROUNDS_OF_TIMES,
        ),
    ),
    Cause("throttled device", "above", None, below_a_limit),
    Cause(
        "small requests",
        "request_size",
        "max_sectors_kb",
        within_a_run(
            SEQUENTIAL + 'block_size = "128KiB"\nengine = "psync"\ndrop_caches = false\n',
            "[settings.plain]\n[settings.small]\nmax_sectors_kb = 4",
        ),
    ),
    Cause("competition for CPUs", "contention", None, beside_others),
]
