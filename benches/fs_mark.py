"""Files created, written and closed per second on a filesystem on a loop device on tmpfs. The cases
are XFS and ext4, empty files and files of 4096 bytes, one thread and four threads, each with its
own directory. The peer is fs_mark, with as many directories and names of the same length. Nothing
is synced, and files are kept.

Each round has a new filesystem, on which both create 16,000 files in turn, four times each, in new directories. The
rate is the harmonic mean, the CPU time the mean. Both time each system call. Rates are the sum of the threads' own, as
fs_mark prints them. iolab makes no mkdir for each file and writes nothing into an empty file; fs_mark calls write with
zero bytes. CPU is user and system time of iolab's threads, and of fs_mark's processes.
"""

from __future__ import annotations

import json
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import loop_device
import ours
from alternate import cpu_of_children_s
from fio import TIME_LIMIT_S
from result import NotMeasured, Result, Target, at_least, paired

if TYPE_CHECKING:
    from iolab.domain import native_types

FILES = 16_000
"""The files of all threads in one turn."""
TURNS = 4
SIZE_MIB = 4096
WANTED = at_least(1.1)

RUN_PHASE = """
import sys
from iolab import _native
load = _native.MetadataLoad.start(sys.stdin.read())
while (record := load.wait(60.0)) is None:
    pass
print(record)
"""


@dataclass(frozen=True)
class Sample:
    """One arm in one turn or one round."""

    files_per_s: float
    cpu_ns_per_file: float


@dataclass(frozen=True)
class Case:
    filesystem: str
    threads: int
    file_bytes: int

    def __str__(self) -> str:
        return f"{self.filesystem}, {self.file_bytes} bytes, {self.threads} thread{'s' if self.threads > 1 else ''}"


def measure(quick: bool) -> list[Result]:
    if shutil.which("fs_mark") is None:
        raise NotMeasured("fs_mark is not on PATH; get fs_mark 3.3 (Debian's fsmark)")
    files, rounds = (FILES // 20, 1) if quick else (FILES, 5)
    return [
        result
        for filesystem in ("xfs", "ext4")
        for threads in (1, 4)
        for file_bytes in (0, 4096)
        for result in measure_case(Case(filesystem, threads, file_bytes), files, rounds)
    ]


def measure_case(case: Case, files: int, rounds: int) -> list[Result]:
    options = {"threads": case.threads, "directories": case.threads, "files": files // case.threads}
    options |= {"file_size": case.file_bytes}
    pairs = [one_round(case, options, files) for _ in range(rounds)]
    commands = [
        ours.describe({"kind": "fs_mark", **options, "sync": "none", "keep": True}),
        shlex.join(peer_command(case, files, loop_device.HOME / "mnt")),
    ]
    figures: list[tuple[str, str, Callable[[Sample], float], Target | None]] = [
        ("files/s", "1/s", lambda one: one.files_per_s, WANTED),
        ("CPU per file", "ns", lambda one: one.cpu_ns_per_file, None),
    ]
    rows = []
    for name, unit, of, target in figures:
        own, other = [of(pair[0]) for pair in pairs], [of(pair[1]) for pair in pairs]
        rows.append(paired(f"{case}: {name}", unit, own, other, "fs_mark", target=target, commands=commands))
    return rows


def one_round(case: Case, options: dict[str, int], files: int) -> tuple[Sample, Sample]:
    """Ours and the peer's. The turns are short, so that other work on the machine affects both."""
    own, other = [], []
    with loop_device.empty(case.filesystem, size_mib=SIZE_MIB) as mount_point:
        for turn in range(TURNS):
            arms = [
                lambda root: own.append(run_ours(options, root)),
                lambda root: other.append(run_peer(peer_command(case, files, root), files)),
            ]
            for arm in arms if turn % 2 else reversed(arms):
                root = mount_point / str(len(own) + len(other))
                root.mkdir()
                arm(root)
    pair = together(own), together(other)
    print(f"   {case}: {pair[0].files_per_s:.0f} and {pair[1].files_per_s:.0f} files/s", file=sys.stderr)
    return pair


def together(turns: list[Sample]) -> Sample:
    return Sample(
        files_per_s=statistics.harmonic_mean([one.files_per_s for one in turns]),
        cpu_ns_per_file=statistics.fmean(one.cpu_ns_per_file for one in turns),
    )


def run_ours(options: dict[str, int], root: Path) -> Sample:
    record = json.loads(output([sys.executable, "-c", RUN_PHASE], given=json.dumps(phase(options, root))))
    errors = [error for group in record["groups"] for job in group["jobs"] for error in job["errors"]]
    if errors:
        raise RuntimeError(f"errors while measuring: {errors}")
    cpu_ns = sum(group["cpu_user_ns"] + group["cpu_system_ns"] for group in record["groups"])
    return Sample(record["measures"]["files_per_s"], cpu_ns / (options["files"] * options["threads"]))


def phase(options: dict[str, int], root: Path) -> native_types.MetadataPhase:
    """The engine's metadata phase (crates/measure/engine/src/metadata/mod.rs) for a workload of kind `fs_mark`."""
    from iolab.domain import workload
    from iolab.domain.trial import MetadataPhase
    from iolab.machines.host.metadata import placed

    kind = workload.KINDS["fs_mark"]
    (loop,) = kind.phases(kind.options.model_validate({**options, "sync": "none", "keep": True}), ours.SEED)
    assert isinstance(loop, MetadataPhase)
    return placed(loop, [root])


def peer_command(case: Case, files: int, root: Path) -> list[str]:
    places = [word for thread in range(case.threads) for word in ("-d", f"{root}/directory.{thread}")]
    amount = ["-n", f"{files // case.threads}", "-s", f"{case.file_bytes}", "-t", f"{case.threads}"]
    return ["fs_mark", "-k", "-S", "0", *amount, *places, "-l", f"{loop_device.HOME}/log"]


def run_peer(command: list[str], files: int) -> Sample:
    """The last line of its table: FSUse%, Count, Size, Files/sec, App Overhead."""
    before_s = cpu_of_children_s()
    *_, files_per_s, _overhead = output(command, given="").splitlines()[-1].split()
    return Sample(float(files_per_s), (cpu_of_children_s() - before_s) * 1e9 / files)


def output(command: list[str], *, given: str) -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)}: {done.stderr or done.stdout}")
    return done.stdout
