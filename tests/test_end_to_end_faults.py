"""What goes wrong below: full filesystems, I/O errors, devices that vanish. The trial is marked, nothing hangs."""

import errno
import os
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.command_line import CommandLine, wait_until
from support.devices import MIB, attach, command, detach, have_device_mapper, mounted, sparse_file
from support.experiments import DEFAULT_WORKLOAD, experiment, reads_for
from support.runs import events, faults, statuses

pytestmark = pytest.mark.root
ONE_SETTING = "[settings.as_is]\n"


@pytest.fixture
def small_filesystem(tmp_path: Path, stack: ExitStack) -> Path:
    """A directory with room for 16 MiB or so."""
    device = attach(sparse_file(tmp_path / "small.img", 24 * MIB))
    stack.callback(detach, device)
    command("mkfs.ext4", "-q", device)
    return stack.enter_context(mounted(device, tmp_path / "small"))


@pytest.fixture
def tight_filesystem(tmp_path: Path, stack: ExitStack) -> Path:
    """A directory on ext2, where a file needs more blocks than its size: one for each 256 that it has."""
    device = attach(sparse_file(tmp_path / "tight.img", 24 * MIB))
    stack.callback(detach, device)
    command("mkfs.ext2", "-q", "-b", "1024", "-m", "0", device)
    return stack.enter_context(mounted(device, tmp_path / "tight"))


def size_that_seems_to_fit(directory: Path) -> str:
    """Less than is free, by less than the blocks that such a file needs besides."""
    found = os.statvfs(directory)
    return f"{(found.f_bfree * found.f_frsize - 24 * 1024) // 4096 * 4}KiB"


def names_errno(texts: list[str], number: int) -> bool:
    return any(errno.errorcode[number] in text or os.strerror(number) in text for text in texts)


def marked_not_hanging(iolab: CommandLine, text: str, number: int) -> None:
    """The run ends by itself, its trials are marked, and the errno is told."""
    iolab.write("fault.toml", text)
    outcome = iolab("run", "fault.toml", "--out", "run", "--fail-on", "faulty", status=None)
    assert outcome.status == 1, outcome.text
    assert "Traceback" not in outcome.text
    assert set(statuses(iolab.cwd / "run")) <= {"faulty", "failed"}
    assert names_errno(faults(iolab.cwd / "run"), number), faults(iolab.cwd / "run")
    iolab("show", "run")


def test_a_filesystem_that_fills_up_while_writing_marks_the_trial(iolab: CommandLine, tight_filesystem: Path) -> None:
    size = size_that_seems_to_fit(tight_filesystem)
    workload = f'[workloads.fill]\npattern = "sequential"\nread_percent = 0\nfile_size = "{size}"\namount = "{size}"\n'
    target = f'kind = "directory"\npath = "{tight_filesystem}"'
    marked_not_hanging(iolab, experiment(target, workload=workload, settings=ONE_SETTING, rounds=1), errno.ENOSPC)
    assert [path.name for path in tight_filesystem.iterdir()] == ["lost+found"]


def test_a_filesystem_that_fills_up_while_laying_out_marks_the_trial(
    iolab: CommandLine, tight_filesystem: Path
) -> None:
    workload = DEFAULT_WORKLOAD.replace("8MiB", size_that_seems_to_fit(tight_filesystem))
    target = f'kind = "directory"\npath = "{tight_filesystem}"'
    marked_not_hanging(iolab, experiment(target, workload=workload, settings=ONE_SETTING, rounds=1), errno.ENOSPC)
    assert [path.name for path in tight_filesystem.iterdir()] == ["lost+found"]


@pytest.mark.parametrize("engine", ["io_uring", "libaio", "psync"])
def test_io_errors_are_counted_by_errno(iolab: CommandLine, loop_device: Path, tmp_path: Path, engine: str) -> None:
    """A loop device whose file lost its end answers reads there with EIO."""
    (tmp_path / "loop.img").open("r+b").truncate(4096)
    workload = DEFAULT_WORKLOAD.replace("queue_depth = 4", f'engine = "{engine}"') + "layout = false\n"
    target = f'kind = "device"\npath = "{loop_device}"'
    marked_not_hanging(iolab, experiment(target, workload=workload, settings=ONE_SETTING, rounds=1), errno.EIO)


def test_a_device_that_vanishes_under_a_filesystem_marks_the_trial(
    iolab: CommandLine, small_filesystem: Path, tmp_path: Path
) -> None:
    run = iolab.cwd / "run"

    def vanish() -> None:
        wait_until(lambda: len(events(run, "trial_started")) > 0, "the trial to start")
        wait_until(lambda: any(path.is_file() for path in small_filesystem.glob("iolab-*/*")), "its file")
        time.sleep(1.0)
        os.truncate(tmp_path / "small.img", MIB)

    thief = threading.Thread(target=vanish)
    thief.start()
    target = f'kind = "directory"\npath = "{small_filesystem}"'
    workload = reads_for("3s")
    marked_not_hanging(iolab, experiment(target, workload=workload, settings=ONE_SETTING, rounds=1), errno.EIO)
    thief.join()
    os.truncate(tmp_path / "small.img", 24 * MIB)


@pytest.mark.skipif(not have_device_mapper(), reason="this kernel has no device mapper")
def test_a_device_mapper_target_that_fails_marks_the_trial(iolab: CommandLine, stack: ExitStack) -> None:
    command("dmsetup", "create", "iolab-test", "--table", f"0 {64 * MIB // 512} error")
    stack.callback(command, "dmsetup", "remove", "iolab-test")
    workload = DEFAULT_WORKLOAD + "layout = false\n"
    target = 'kind = "device"\npath = "/dev/mapper/iolab-test"'
    marked_not_hanging(iolab, experiment(target, workload=workload, settings=ONE_SETTING, rounds=1), errno.EIO)


def test_one_faulty_trial_does_not_stop_the_run(iolab: CommandLine, tight_filesystem: Path) -> None:
    size = size_that_seems_to_fit(tight_filesystem)
    workload = f"""
[workloads.fits]
pattern = "random"
file_size = "4MiB"
duration = "100ms"
[workloads.fill]
pattern = "sequential"
read_percent = 0
file_size = "{size}"
amount = "{size}"
"""
    target = f'kind = "directory"\npath = "{tight_filesystem}"'
    iolab.write("mixed.toml", experiment(target, workload=workload, settings=ONE_SETTING, rounds=2))
    iolab("run", "mixed.toml", "--out", "run")
    found = statuses(iolab.cwd / "run")
    assert len(found) == 4
    assert found.count("ok") == 2
