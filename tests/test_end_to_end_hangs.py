"""Targets that stop answering: the run says what hangs, ends when it is told to, and everything else is put back.

What hangs is a filesystem of the test's own, frozen for seconds (fsfreeze): another process thaws it in any case.
"""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from iolab.machines.system import life
from support import workers
from support.command_line import CommandLine, Started, wait_until
from support.devices import MIB, attach, command, detach, mounted, sparse_file
from support.experiments import experiment, reads_for
from support.runs import events, faults, statuses

pytestmark = pytest.mark.root

FROZEN_AT_MOST_S = 300
THREAD_OF_THE_ENGINE = "iolab-0"
TARGETS = {
    "directory": 'kind = "directory"\npath = "{place}"',
    "device": 'kind = "device"\npath = "{device}"',
    "scratch": 'kind = "scratch"\nsize = "64MiB"\nfilesystem = "ext4"\nbacking = "{place}"',
}
WRITES = reads_for("60s").replace('pattern = "random"', 'pattern = "random"\nread_percent = 0')
ONE_SETTING = '[settings.only]\nscheduler = "mq-deadline"\n'


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A filesystem that nothing else lives on."""
    with ExitStack() as stack:
        device = attach(sparse_file(tmp_path / "place.img", 256 * MIB))
        stack.callback(let_go, device)
        command("mkfs.ext4", "-q", device)
        yield stack.enter_context(mounted(device, tmp_path / "place"))


@pytest.fixture
def device(place: Path) -> Iterator[Path]:
    found = attach(sparse_file(place / "device.img", 64 * MIB), "--direct-io=on")
    yield found
    let_go(found)


def let_go(device: Path) -> None:
    """What was stuck lets go of it a moment after it has ended."""
    detach(device)
    wait_until(lambda: not (Path("/sys/block") / device.name / "loop").exists(), f"{device} to be free")


@contextmanager
def frozen(directory: Path) -> Iterator[None]:
    """Fails if what is done in it had to wait for the thaw."""
    thaw = subprocess.Popen(
        ["sh", "-c", f"sleep {FROZEN_AT_MOST_S}; exec fsfreeze --unfreeze {directory}"], start_new_session=True
    )
    try:
        command("fsfreeze", "--freeze", directory)
        yield
        assert thaw.poll() is None
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", directory], check=False, capture_output=True)
        os.killpg(thaw.pid, signal.SIGKILL)
        thaw.wait()


def start(iolab: CommandLine, target: str, *options: str, writes: bool = True) -> Started:
    """Until it writes, or has begun."""
    settings = ONE_SETTING if "directory" not in target else "[settings.only]\n"
    iolab.write("experiment.toml", experiment(target, workload=WRITES, settings=settings, rounds=1))
    process = iolab.start("run", "experiment.toml", "--out", "run", *options)

    def at_work() -> bool:
        assert process.poll() is None, process.communicate()
        names = {task.name for task in life.tasks_of(workers.of(iolab.state_dir))}
        return THREAD_OF_THE_ENGINE in names if writes else bool(events(iolab.cwd / "run", "trial_started"))

    wait_until(at_work, "the trial to start")
    time.sleep(0.5 if writes else 2.0)
    return process


def check_all_is_put_back(iolab: CommandLine) -> None:
    """Once the target answers again: by the trial's own process, and what that could not, by restore."""
    wait_until(lambda: not workers.of(iolab.state_dir), "the trial's process to end")
    iolab("restore")
    assert iolab("restore").stdout == "Nothing to restore.\n"


@pytest.mark.parametrize("kind", [pytest.param("directory", marks=pytest.mark.long), "device", "scratch"])
def test_ctrl_c_ends_a_run_whose_target_hangs(kind: str, iolab: CommandLine, place: Path, device: Path) -> None:
    with start(iolab, TARGETS[kind].format(place=place, device=device)) as process, frozen(place):
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.ended()
        left = iolab("restore", "--patience", "1s", status=None).stdout
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert "will put back what it changed itself" in left
    last = stderr.splitlines()[-1]
    assert "interrupted with 0 trials finished" in last
    assert "iolab run --resume" in last
    check_all_is_put_back(iolab)
    assert statuses(iolab.cwd / "run") == []


def test_ctrl_c_ends_a_run_whose_target_hung_before(iolab: CommandLine, place: Path) -> None:
    """The trial waits in the kernel itself, not one of its I/Os."""
    with frozen(place), start(iolab, TARGETS["directory"].format(place=place), writes=False) as process:
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.ended()
    assert process.returncode == 130, stderr
    assert f"{place}: " in stderr
    assert "waits in the kernel" in stderr
    check_all_is_put_back(iolab)
    assert not list(place.glob("iolab-*"))


@contextmanager
def fuse_without_a_server(directory: Path) -> Iterator[None]:
    """A filesystem that answers no more than NFS does whose server is gone; it ends with the descriptor."""
    directory.mkdir()
    channel = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={channel},rootmode=40000,user_id=0,group_id=0".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mount(b"none", os.fsencode(directory), b"fuse", 0, options) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        os.close(channel)
        libc.umount2(os.fsencode(directory), 0)


def test_a_target_that_does_not_even_answer_a_look_is_named(iolab: CommandLine, tmp_path: Path) -> None:
    if "\tfuse\n" not in Path("/proc/filesystems").read_text():
        pytest.skip("this kernel has no FUSE to stand for a network filesystem whose server is gone")
    target = TARGETS["directory"].format(place=tmp_path / "gone")
    iolab.write("experiment.toml", experiment(target, settings="[settings.only]\n"))
    with fuse_without_a_server(tmp_path / "gone"):
        outcome = iolab("run", "experiment.toml", "--out", "run", "--patience", "1s", status=3)
        outcome.assert_one_clear_line(3, f"{tmp_path}/gone: cannot look at it: no answer since")
        assert not (iolab.cwd / "run").exists()
        with iolab.start("run", "experiment.toml", "--out", "run") as process:
            time.sleep(2)
            os.killpg(process.pid, signal.SIGINT)
            _, stderr = process.ended()
        assert process.returncode == 130, stderr


@pytest.mark.parametrize("kind", ["directory", "device"])
def test_a_trial_that_gets_nowhere_fails_and_ends_the_run(
    kind: str, iolab: CommandLine, place: Path, device: Path
) -> None:
    target = TARGETS[kind].format(place=place, device=device)
    with start(iolab, target, "--patience", "2s", "--rounds", "3") as process, frozen(place):
        _, stderr = process.ended()
    assert process.returncode == 3, stderr
    assert "Traceback" not in stderr
    (line,) = [line for line in stderr.splitlines() if line.startswith("iolab:")]
    assert f"{place if kind == 'directory' else device}: a trial was given up: it does not answer" in line
    assert "0.0 s left" not in stderr
    assert statuses(iolab.cwd / "run") == ["failed"]
    assert "it does not answer: no I/O has completed for" in faults(iolab.cwd / "run")[0]
    check_all_is_put_back(iolab)


def test_restore_goes_on_behind_what_hangs(iolab: CommandLine, place: Path, loop_device: Path) -> None:
    """A dead run had its directory on a filesystem that hangs, and changed settings before and after."""
    from iolab.machines.system.action import WriteFile
    from iolab.machines.system.own_directory import make_own_directory
    from iolab.machines.system.undo import UndoJournal

    settings = [Path("/sys/block") / loop_device.name / "queue" / name for name in ("nomerges", "read_ahead_kb")]
    before = [setting.read_text().strip() for setting in settings]
    undo = UndoJournal.open()
    undo.before(WriteFile(str(settings[0]), before[0]))
    settings[0].write_text("2")
    own = make_own_directory(place, undo).path
    (own / "data").write_bytes(b"x" * MIB)
    undo.before(WriteFile(str(settings[1]), before[1]))
    settings[1].write_text("64")
    undo._file.close()  # as kill -9 does: the lock goes, the file stays
    with frozen(place):
        outcome = iolab("restore", "--patience", "1s", status=3)
    assert [setting.read_text().strip() for setting in settings] == before
    assert f"cannot remove {own}: no answer since" in outcome.stdout
    assert f"remove {own}: no answer for" in outcome.stderr
    assert own.exists()
    wait_until(lambda: not own.exists() or f"removed {own}" in iolab("restore").stdout, "the directory to go")
    iolab("restore")
    assert not own.exists()
    assert iolab("restore").stdout == "Nothing to restore.\n"
