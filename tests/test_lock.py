"""One run per target."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from iolab.base.errors import MachineError
from iolab.domain.trial import DeviceTarget, DirectoryTarget, FileTarget
from iolab.machines.system import lock
from support.trials import scratch_target

# Processes of their own take the locks too, where all of the machine's runs take them.
pytestmark = pytest.mark.machine

HELD_BY_THE_CHILD_OF_A_DEAD_RUN = """
import subprocess, sys
from iolab.machines.system import lock
from iolab.domain.trial import DirectoryTarget
held = lock.of_target(DirectoryTarget(path=sys.argv[1]))
restoring = "for turn in $(seq 400); do [ -e waited-for ] && break; sleep 0.05; done; touch restored"
subprocess.Popen(["sh", "-c", restoring], cwd=sys.argv[1], pass_fds=held.fds, stdout=subprocess.DEVNULL)
"""


def test_the_second_is_told_who_has_the_directory(tmp_path: Path, state_dir: Path) -> None:
    target = DirectoryTarget(path=str(tmp_path))
    with lock.of_target(target), pytest.raises(MachineError, match=f"process {os.getpid()}"):
        lock.of_target(target)
    lock.of_target(target).release()


def test_a_file_is_the_same_by_another_name(tmp_path: Path, state_dir: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    with lock.of_target(FileTarget(path=str(tmp_path / "file"))), pytest.raises(MachineError):
        lock.of_target(FileTarget(path=str(tmp_path / "link")))


def test_scratch_targets_do_not_exclude_each_other(state_dir: Path) -> None:
    target = scratch_target(size_bytes=1, filesystem=None)
    with lock.of_target(target), lock.of_target(target):
        pass


def test_queue_settings_are_locked_by_disk(state_dir: Path) -> None:
    with lock.of_queue("sdx"):
        lock.of_queue("sdy").release()
        with pytest.raises(MachineError, match="queue settings of sdx"):
            lock.of_queue("sdx")


def test_the_child_of_a_dead_run_is_waited_for(
    tmp_path: Path, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the lock until it has restored everything, which here it only does once somebody waits for it."""
    subprocess.run([sys.executable, "-c", HELD_BY_THE_CHILD_OF_A_DEAD_RUN, str(tmp_path)], check=True)
    sleep = time.sleep

    def wait(duration_s: float) -> None:
        (tmp_path / "waited-for").touch()
        sleep(duration_s)

    monkeypatch.setattr(time, "sleep", wait)
    lock.of_target(DirectoryTarget(path=str(tmp_path))).release()
    assert (tmp_path / "restored").exists()


@pytest.mark.root
def test_a_device_s_node_is_locked_for_others_as_well(loop_device: Path, state_dir: Path) -> None:
    target = DeviceTarget(path=str(loop_device), destroy=False)
    with loop_device.open("rb") as node:
        with lock.of_target(target), pytest.raises(BlockingIOError):
            fcntl.flock(node, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(node, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(MachineError, match="another program"):
            lock.of_target(target)
