"""The make-sequence kind: its steps on real devices, what failures say, and that kills leave nothing."""

import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from iolab.base.errors import InputError
from iolab.domain import metric
from iolab.domain.phase_record import jobs_of
from iolab.domain.record import Record
from iolab.domain.trial import CommandsPhase, Trial
from iolab.files.experiment import loads
from iolab.machines.host import host, source_tree
from iolab.machines.system import safety
from iolab.machines.system.action import EraseFilesystem
from iolab.machines.system.filesystem import make as make_filesystem
from iolab.machines.system.mounts import mounts
from iolab.machines.system.safety import signatures
from iolab.machines.system.undo import restore_abandoned
from iolab.studies.run import plan
from support.command_line import CommandLine, wait_until
from support.devices import MIB, attach, detach, sparse_file
from support.runs import events, statuses, times_finished

SMALL = "source_files = 3\nsource_functions = 2\n"
SCRATCH = "[target]\nkind = 'scratch'\nsize = '64MiB'\ndevices = 2\nfilesystem = 'ext2'\n"


def trial(options: str = SMALL, *, target: str = SCRATCH, setting: str = "") -> Trial:
    text = f"{target}[workloads.build]\nkind = 'make-sequence'\n{options}\n[settings.s]\n{setting}"
    return plan.trials(loads(text, "x.toml"), 1, seed=1)[0]


def run(trial: Trial, seen: list[Any] | None = None) -> Record:
    collect = (lambda _: None) if seen is None else seen.append
    return host.execute(trial, on_progress=collect, should_stop=lambda: False)


def steps(trial: Trial) -> dict[str, CommandsPhase]:
    return {phase.name: phase for phase in trial.phases if isinstance(phase, CommandsPhase)}


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Path]:
    found = attach(sparse_file(tmp_path / "image", 64 * MIB))
    yield found
    detach(found)


def test_the_steps_are_those_of_the_seed() -> None:
    assert [(name, step.measured, step.makes_filesystem) for name, step in steps(trial()).items()] == [
        ("mkfs", True, True),
        ("untar", True, False),
        ("make", True, False),
        ("clean", True, False),
    ]
    assert steps(trial("jobs = 7"))["make"].environment["JOBS"] == "7"


def test_configure_is_a_step_that_nobody_measures() -> None:
    found = steps(trial("configure = 'make -C source defconfig'"))
    assert list(found) == ["mkfs", "untar", "configure", "make", "clean"]
    assert not found["configure"].measured


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("tarball = 'x.tar'\nsource_files = 3", "x.toml:9: workloads.build.source_files: only for the tree that iolab"),
        ("cpus = []", "expected a list of CPU numbers"),
        ("filesystem = 'ext5'", "did you mean ext"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        trial(options)


def test_a_source_tree_is_the_same_for_the_same_size(state_dir: Path) -> None:
    first = source_tree.tarball(files=60, functions=1)
    content = first.read_bytes()
    assert source_tree.tarball(files=60, functions=1) == first
    first.unlink()
    assert source_tree.tarball(files=60, functions=1).read_bytes() == content
    with tarfile.open(first) as archive:
        names = archive.getnames()
    assert sum(name.endswith(".c") for name in names) == 61  # and main.c
    assert {"tree/Makefile", "tree/src/01/unit_00059.c"} <= set(names)


@pytest.mark.root
def test_every_step_is_timed_on_every_device(state_dir: Path, leftovers: None) -> None:
    record = run(trial(setting="scheduler = 'bfq'\ncpus = [0]"))
    assert record.status == "ok", record.faults
    assert [phase["phase"] for phase in record.phases] == ["mkfs", "untar", "make", "clean"]
    found = metric.rows(record)
    of_devices = {(row.phase, row.job): row.value for row in found if row.metric == "elapsed_s" and row.job != "all"}
    assert set(of_devices) == {(step, f"device.{n}") for step in ("mkfs", "untar", "make", "clean") for n in (0, 1)}
    assert all(value and value > 0 for value in of_devices.values())
    whole = {row.phase: row.value for row in found if row.metric == "elapsed_s" and row.job == "all"}
    assert all((whole[step] or 0) >= value for (step, _), value in of_devices.items() if value is not None)
    cpu = {row.phase: row.value for row in found if row.metric == "cpu_user_s"}
    assert (cpu["make"] or 0) > (cpu["clean"] or 0), "compilers are children of children"
    assert not {row.metric for row in found} & {"rate_bytes_per_s", "cpu_ns_per_io"}


@pytest.mark.root
@pytest.mark.parametrize(
    ("setting", "expected"),
    [("", "ext2"), pytest.param("filesystem = 'xfs'", "xfs", marks=pytest.mark.long)],
)
def test_the_filesystem_is_the_targets_or_the_settings(
    setting: str, expected: str, state_dir: Path, leftovers: None
) -> None:
    size = SCRATCH.replace("64MiB", "400MiB")
    looks = "untar = '''test \"$(stat -f -c %T .)\" = EXPECTED'''\nmake = 'true'\nclean = 'true'\ndrop_caches = true"
    shown = {"ext2": "ext2/ext3", "xfs": "xfs"}[expected]
    record = run(trial(looks.replace("EXPECTED", shown), target=size, setting=setting))
    assert record.status == "ok", record.faults


@pytest.mark.root
def test_a_named_device_carries_nothing_afterwards(device: Path, state_dir: Path, leftovers: None) -> None:
    """Else the second trial would be refused for the first one's filesystem."""
    target = f"[target]\nkind = 'device'\npath = '{device}'\n"
    made = trial("untar = 'touch made'\nmake = 'test -e made'\nclean = 'rm made'", target=target)
    assert made.target.kind == "device"
    of_a_run = made.on_devices(safety.admit(made.target))
    for _ in range(2):
        record = run(of_a_run)
        assert record.status == "ok", record.faults
        assert signatures(device) == []


@pytest.mark.root
@pytest.mark.parametrize("filesystem", ["ext2", "xfs", "btrfs"])
def test_only_the_filesystem_that_was_made_is_erased(
    filesystem: str, tmp_path: Path, state_dir: Path, leftovers: None
) -> None:
    """Between a kill and `iolab restore` somebody may have made one."""
    device = attach(sparse_file(tmp_path / "large", 400 * MIB))
    try:
        made, later = str(uuid4()), str(uuid4())
        make_filesystem(filesystem, device, "", uuid=later)
        assert EraseFilesystem(str(device), made).undo() is None
        assert later in {signature.uuid for signature in signatures(device)}
        make_filesystem(filesystem, device, "", uuid=made)
        assert EraseFilesystem(str(device), made).undo() is not None
        assert signatures(device) == []
    finally:
        detach(device)


@pytest.mark.root
@pytest.mark.parametrize("destroy", [False, True])
def test_data_stays_until_the_first_mkfs(destroy: bool, device: Path, state_dir: Path, leftovers: None) -> None:
    make_filesystem("ext4", device, "")
    before = signatures(device)
    target = f"[target]\nkind = 'device'\npath = '{device}'\ndestroy = {str(destroy).lower()}\n"
    reason = "no such tunable|unknown tunable|slice_idl" if destroy else "it carries data .ext4 signature"
    with pytest.raises(InputError, match=reason):
        run(trial("untar = 'true'", target=target, setting="scheduler = { name = 'bfq', slice_idl = 0 }"))
    assert signatures(device) == before


@pytest.mark.root
def test_a_make_that_fails_keeps_its_output_and_fails_the_trial(state_dir: Path, leftovers: None) -> None:
    make = "make = 'i=0; while [ $i -lt 50 ]; do echo line $i; i=$((i+1)); done; echo no rule >&2; exit 2'"
    record = run(trial(SMALL + make))
    assert record.status == "failed"
    assert {fault.phase for fault in record.faults} == {"make"}
    assert {fault.job for fault in record.faults} == {"device.0", "device.1"}
    told = record.faults[0].what
    assert "failed with exit status 2" in told
    assert told.endswith("line 49 / no rule (all of it: iolab show RUN --as output)")
    assert "line 3 " not in told
    (failed,) = (phase for phase in record.phases if phase["phase"] == "make")
    assert "line 0\nline 1\n" in jobs_of(failed)["device.0"]["output"]
    assert [phase["phase"] for phase in record.phases] == ["mkfs", "untar", "make"], "nothing after the failure"
    times = {row.phase: row for row in metric.rows(record) if (row.job, row.metric) == ("all", "elapsed_s")}
    assert times["mkfs"].value
    assert times["untar"].value
    assert [times[step].value for step in ("make", "clean")] == [None, None]
    assert "exit status 2" in str(times["clean"].reason)


@pytest.mark.root
def test_show_prints_all_that_a_failed_command_said_and_the_steps_before_it(iolab: CommandLine) -> None:
    make = "make = 'seq -f line.%g 40; exit 1'"
    iolab.write(
        "x.toml", f"rounds = 1\n{SCRATCH}[workloads.build]\nkind = 'make-sequence'\n{SMALL}{make}\n[settings.s]\n"
    )
    iolab("run", "x.toml", "--out", "run", status=1)
    lines = iolab("show", "run", "--as", "output").stdout.splitlines()
    heads = [line for line in lines if line.startswith("***")]
    assert heads == [f"*** trial 0: build under s, make on device.{number}" for number in range(2)]
    assert lines.count("line.1") == lines.count("line.40") == 2
    table = iolab("show", "run", "--as", "make").stdout
    cells = {block.split()[0]: block.splitlines()[2].split()[1:] for block in table.split("\n\n")}
    assert "-" not in cells["mkfs"] + cells["untar"]
    assert cells["make"] == cells["clean"] == ["-"] * 4


@pytest.mark.root
def test_a_configure_that_fails_fails_the_trial(state_dir: Path, leftovers: None) -> None:
    record = run(trial(SMALL + "configure = 'echo no config; false'"))
    assert record.status == "failed"
    assert "no config" in record.faults[0].what


@pytest.mark.root
def test_a_tarball_that_does_not_unpack_says_what_tar_says(tmp_path: Path, state_dir: Path, leftovers: None) -> None:
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(source_tree.tarball(files=3, functions=2).read_bytes()[:600])
    record = run(trial(f"tarball = '{broken}'"))
    assert record.status == "failed"
    assert "tar" in record.faults[0].what
    assert "exit status 2" in record.faults[0].what


@pytest.mark.root
@pytest.mark.parametrize(
    ("options", "message"),
    [("tarball = '/nowhere.tar'", "/nowhere.tar: no such tarball"), ("mkfs_options = '-b 77'", "mkfs_options")],
)
def test_what_cannot_begin_is_one_clear_error(options: str, message: str, state_dir: Path, leftovers: None) -> None:
    with pytest.raises(InputError, match=message):
        run(trial(options))


@pytest.mark.root
def test_a_stopped_make_takes_its_children_along(state_dir: Path, leftovers: None) -> None:
    """Also those that left its session."""
    seen: list[Any] = []
    make = "make = 'setsid sleep 1000 & sleep 1000'"
    started = time.monotonic()

    def making() -> bool:
        return any(progress.phase == "make" and progress.elapsed_ns > 3 * 10**8 for progress in seen)

    record = host.execute(trial(SMALL + make), on_progress=seen.append, should_stop=making)
    assert record.status == "interrupted"
    assert time.monotonic() - started < 60


@pytest.mark.root
def test_a_kill_in_the_middle_of_make_leaves_nothing(state_dir: Path, leftovers: None) -> None:
    spec = trial(SMALL + "make = 'setsid sleep 1000 & dd if=/dev/zero of=big bs=1M count=8; sleep 1000'")
    worker = subprocess.Popen(
        [sys.executable, "-m", "iolab.machines.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(spec.model_dump_json() + "\n")
    worker.stdin.flush()
    for line in worker.stdout:
        if '"phase": "make"' in line:
            break
    wait_until(lambda: len(_mounts_below(state_dir)) == 2, "both filesystems")
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    worker.stdin.close()
    worker.stdout.close()
    lines = restore_abandoned()
    assert not _mounts_below(state_dir), lines
    assert not any("lazily" in line for line in lines), "its commands died with it"


def _mounts_below(directory: Path) -> list[str]:
    return [mount.mount_point for mount in mounts() if mount.mount_point.startswith(str(directory))]


@pytest.mark.root
def test_a_killed_run_resumes_where_it_was(iolab: CommandLine) -> None:
    text = f"rounds = 2\nseed = 1\n{SCRATCH}[workloads.build]\nkind = 'make-sequence'\n{SMALL}make = 'sleep 1'\n"
    iolab.write("experiment.toml", text)
    run = iolab.cwd / "run"
    with iolab.start("run", "experiment.toml", "--out", "run") as process:
        wait_until(lambda: len(events(run, "trial_started")) == 2, "the second trial")
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGKILL)
    iolab("run", "--resume", "run")
    assert times_finished(run) == {0: 1, 1: 1}
    assert set(statuses(run)) == {"ok"}
    shown = iolab("show", "run", "--as", "make").stdout.splitlines()
    assert [line.split()[0] for line in shown if line.endswith("Std Dev")] == ["mkfs", "untar", "make", "clean"]
    make = shown[next(place for place, line in enumerate(shown) if line.startswith("make ")) + 2].split()
    assert make[0] == "default"
    assert 1.0 <= float(make[1]) <= float(make[2]) <= float(make[3])
