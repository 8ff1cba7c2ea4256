"""The undo journal: what is taken back, when, and what never is."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from iolab.base import checked_lines
from iolab.base.errors import MachineError
from iolab.machines.system import command, loop, scratch, state, undo
from iolab.machines.system.action import (
    MARKER,
    Action,
    CannotUndo,
    DetachLoop,
    RemoveFile,
    RemoveTree,
    TruncateFile,
    WriteFile,
    kernel_setting,
    mount,
)
from iolab.machines.system.identity import identity_at
from iolab.machines.system.own_directory import make_own_directory
from iolab.machines.system.undo import UndoJournal, restore_abandoned
from support.devices import fill, loops_backed_under, tmpfs
from support.trials import scratch_target


@pytest.fixture(autouse=True)
def knobs_are_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of a test are settings too, beside the kernel's."""
    is_kernel_s = kernel_setting.is_setting
    monkeypatch.setattr(kernel_setting, "is_setting", lambda path: path.is_relative_to(tmp_path) or is_kernel_s(path))


def change(journal: UndoJournal, path: Path, value: str) -> None:
    journal.before(WriteFile(str(path), path.read_text()))
    path.write_text(value)


def die(journal: UndoJournal) -> None:
    """As kill -9 does: the lock goes, the file stays."""
    journal._file.close()


def journals() -> list[Path]:
    return sorted((state.state_directory() / "undo").glob("*.jsonl"))


def test_leaving_the_journal_restores_in_reverse_and_removes_it(tmp_path: Path, state_dir: Path) -> None:
    knob = tmp_path / "knob"
    knob.write_text("first")
    with UndoJournal.open() as journal:
        change(journal, knob, "second")
        change(journal, knob, "third")
        assert len(journals()) == 1
    assert knob.read_text() == "first"
    assert journals() == []


def test_an_exception_restores_too(tmp_path: Path, state_dir: Path) -> None:
    knob = tmp_path / "knob"
    knob.write_text("first")
    with pytest.raises(KeyboardInterrupt), UndoJournal.open() as journal:
        change(journal, knob, "second")
        raise KeyboardInterrupt
    assert knob.read_text() == "first"


def test_the_entry_is_on_disk_before_the_change(state_dir: Path) -> None:
    journal = UndoJournal.open()
    journal.before(RemoveTree("/nonexistent/directory", "token"))
    entries = checked_lines.read(journal._file.path.read_bytes()).entries
    known = {"path": "/nonexistent/directory", "token": "token", "mount_point": None, "mounted": None}
    expected = {"number": 0, "boot_id": state.boot_id(), "action": "RemoveTree", **known}
    assert entries[-1] == expected
    journal.restore()
    journal.close()


def test_a_living_owner_is_left_alone(tmp_path: Path, state_dir: Path) -> None:
    knob = tmp_path / "knob"
    knob.write_text("first")
    with UndoJournal.open() as journal:
        change(journal, knob, "second")
        assert undo.journals().dead == []
        assert restore_abandoned() == []
        assert knob.read_text() == "second"


def test_a_dead_owner_s_changes_are_undone_once(tmp_path: Path, state_dir: Path) -> None:
    knob = tmp_path / "knob"
    knob.write_text("first")
    journal = UndoJournal.open()
    change(journal, knob, "second")
    die(journal)
    assert undo.journals().dead == [journal._file.path]
    assert restore_abandoned() == [f"set {knob} back to first"]
    knob.write_text("somebody else's")
    assert restore_abandoned() == []
    assert knob.read_text() == "somebody else's"


@contextmanager
def killed_and_not_ended(knob: Path) -> Iterator[int]:
    """A process that has changed the knob and was killed, whose files the kernel still holds open: its entry stays, as
    nobody takes its exit status, and a child of its own stands for the kernel. Yields that child."""
    reading, writing = os.pipe()
    owner = os.fork()
    if owner == 0:
        with suppress(BaseException):
            change(UndoJournal.open(), knob, "second")
            holder = os.fork()
            if holder:
                os.write(writing, f"{holder}\n".encode())
            time.sleep(60)
        os._exit(0)
    with os.fdopen(reading) as file:
        holder = int(file.readline())
    os.close(writing)
    os.kill(owner, signal.SIGKILL)
    try:
        yield holder
    finally:
        with suppress(ProcessLookupError):
            os.kill(holder, signal.SIGKILL)
        os.waitpid(owner, 0)


def test_a_tool_holds_the_journal_as_long_as_it_runs(state_dir: Path) -> None:
    """Killed with its owner in the middle of a system call, it ends later: what it changes is undone after that."""

    def files_of_a_tool() -> str:
        return command.run(["ls", "-l", "/proc/self/fd"], package="coreutils", where="/proc")

    with UndoJournal.open() as journal:
        assert str(journal._file.path) in files_of_a_tool()
    assert str(journal._file.path) not in files_of_a_tool()


def test_the_end_of_a_killed_owner_is_waited_for(tmp_path: Path, state_dir: Path) -> None:
    knob = tmp_path / "knob"
    knob.write_text("first")
    said: list[str] = []

    def end(line: str) -> None:
        said.append(line)
        os.kill(holder, signal.SIGKILL)

    with killed_and_not_ended(knob) as holder:
        restored = undo.restore_dead(end, dying_patience_s=60.0)
    assert (restored.done, restored.lines) == ([f"set {knob} back to first"], restored.done)
    assert len(said) == 1 and "was killed and has not ended" in said[0]
    assert knob.read_text() == "first"


def test_a_killed_owner_that_does_not_end_is_told_and_left_alone(tmp_path: Path, state_dir: Path) -> None:
    knob = tmp_path / "knob"
    knob.write_text("first")
    with killed_and_not_ended(knob):
        restored = undo.restore_dead(dying_patience_s=0.1)
        assert (restored.done, restored.living) == ([], [])
        assert len(restored.problems) == 1
        assert "was killed, but has not ended" in restored.problems[0]
        assert undo.journals().problems == restored.problems
        assert knob.read_text() == "second"
    assert restore_abandoned() == [f"set {knob} back to first"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(st.tuples(st.integers(0, 2), st.text("abcxyz", min_size=1)), max_size=6),
    torn=st.integers(0, 200),
)
def test_a_crash_at_any_point_restores_everything(
    tmp_path: Path, state_dir: Path, changes: list[tuple[int, str]], torn: int
) -> None:
    """Each change is made after its entry; the crash tears the entry of a change that was not made."""
    knobs = [tmp_path / f"knob{number}" for number in range(3)]
    for knob in knobs:
        knob.write_text(f"original of {knob.name}")
    journal = UndoJournal.open()
    for number, value in changes:
        change(journal, knobs[number], value)
    entry = json.dumps({"number": len(changes), "action": "WriteFile", "path": str(knobs[0]), "previous": "wrong"})
    os.write(journal._file.fd, entry[: min(torn, len(entry) - 1)].encode())
    die(journal)
    restore_abandoned()
    assert [knob.read_text() for knob in knobs] == [f"original of {knob.name}" for knob in knobs]
    assert journals() == []


def test_after_a_reboot_only_files_are_undone(tmp_path: Path, state_dir: Path) -> None:
    knob = tmp_path / "knob"
    knob.write_text("second")
    made = tmp_path / "made"
    made.write_text("")
    entries = [
        {"boot_id": "another", "pid": 1},
        {"number": 0, "action": "WriteFile", "path": str(knob), "previous": "first"},
        {"number": 1, "action": "RemoveFile", "path": str(made), "identity": identity_at(made)},
    ]
    directory = state.state_subdirectory("undo")
    (directory / "1-old.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert restore_abandoned() == [f"removed {made}"]
    assert knob.read_text() == "second"
    assert journals() == []


def test_what_cannot_be_undone_now_is_told_and_kept(tmp_path: Path, state_dir: Path) -> None:
    directory = tmp_path / "directory"
    directory.mkdir()
    (directory / "somebody's").write_text("kept")
    other = tmp_path / "other"
    other.write_text("")
    journal = UndoJournal.open()
    journal.before(RemoveFile(str(other), identity_at(other)))
    journal.before(RemoveTree(str(directory), "token"))
    die(journal)
    lines = restore_abandoned()
    assert any(f"cannot remove {directory}" in line for line in lines)
    assert f"removed {other}" in lines
    assert len(journals()) == 1
    (directory / "somebody's").unlink()
    assert restore_abandoned() == [f"removed {directory}"]
    assert journals() == []


def test_an_entry_of_a_newer_version_is_told_and_kept(state_dir: Path) -> None:
    directory = state.state_subdirectory("undo")
    entry = {"number": 0, "action": "Terraform", "planet": "Mars"}
    (directory / "1-new.jsonl").write_text(json.dumps({"boot_id": state.boot_id()}) + "\n" + json.dumps(entry) + "\n")
    assert any("Terraform" in line for line in restore_abandoned())
    assert len(journals()) == 1


def test_a_directory_is_removed_only_with_its_own_token(tmp_path: Path, state_dir: Path) -> None:
    with UndoJournal.open() as journal:
        own = make_own_directory(tmp_path, journal).path
        (own / "data").write_text("x")
        (own / "below").mkdir()
    assert not own.exists()
    impostor = tmp_path / "impostor"
    impostor.mkdir()
    (impostor / MARKER).write_text("another token")
    with UndoJournal.open() as journal:
        journal.before(RemoveTree(str(impostor), "token"))
    assert impostor.exists()
    assert journals() == []


def test_a_symbolic_link_in_the_own_directory_is_not_followed(tmp_path: Path, state_dir: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    with UndoJournal.open() as journal:
        own = make_own_directory(tmp_path, journal).path
        (own / "link").symlink_to(precious)
    assert not own.exists()
    assert (precious / "file").read_text() == "kept"


def test_a_truncated_file_gets_its_length_back(tmp_path: Path, state_dir: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    with UndoJournal.open() as journal:
        journal.before(TruncateFile(str(file), 0, identity_at(file), 4))
        file.write_bytes(b"data")
    assert file.read_bytes() == b""


MAKE_A_SCRATCH_DEVICE = """
import sys, time
from iolab.machines.system import scheduler, scratch
from iolab.machines.system.undo import UndoJournal
from iolab.domain.trial import ScratchTarget
target = ScratchTarget(size_bytes=64 << 20, filesystem="ext4", mkfs_options="", mount_options="",
                       backing_directory=sys.argv[1], sector_bytes=None)
undo = UndoJournal.open()
made = scratch.make(target, undo)
scheduler.switch(made.device, "bfq", undo)
(made.mount_point / "file").write_bytes(bytes(1 << 20))
print(made.node, flush=True)
time.sleep(60)
"""


@pytest.mark.root
def test_kill_9_leaves_nothing_that_restore_does_not_take_back(tmp_path: Path, leftovers: None) -> None:
    backing = tmp_path / "backing"
    backing.mkdir()
    arguments = [sys.executable, "-c", MAKE_A_SCRATCH_DEVICE, str(backing)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        node = process.stdout.readline().strip()
        process.send_signal(signal.SIGKILL)
    assert node in loops_backed_under(tmp_path)
    lines = restore_abandoned()
    assert any(line.startswith("unmounted ") for line in lines)
    assert any(line.startswith(f"detached {node} ") for line in lines)
    assert any("scheduler back to" in line for line in lines)
    assert list(backing.iterdir()) == []
    assert journals() == []


@pytest.mark.root
def test_a_loop_device_that_was_never_written_down_is_found(tmp_path: Path, leftovers: None) -> None:
    """Killed between attaching and anything after: the intent names the backing file."""
    journal = UndoJournal.open()
    own = make_own_directory(tmp_path, journal).path
    image = own / "image"
    journal.before(DetachLoop(str(image)))
    with image.open("wb") as file:
        file.truncate(1 << 20)
    loop.attach(image, sector_bytes=None)
    die(journal)
    assert len(restore_abandoned()) == 2
    assert not own.exists()


@pytest.mark.root
def test_a_busy_mount_is_unmounted_lazily_and_says_who_uses_it(
    tmp_path: Path, leftovers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mount, "UNMOUNT_PATIENCE_S", 0.2)
    target = scratch_target(size_bytes=64 << 20, backing_directory=str(tmp_path))
    with UndoJournal.open() as journal:
        made = scratch.make(target, journal)
        assert made.mount_point is not None
        with (made.mount_point / "held").open("wb"):
            outcomes, problems = journal.restore()
    assert problems == []
    unusual = [outcome.line for outcome in outcomes if outcome.unusual]
    assert len(unusual) == 1
    assert f"({os.getpid()})" in unusual[0]


@pytest.mark.parametrize("number", [errno.ENODEV, errno.ENXIO, errno.ENOENT])
def test_a_setting_of_a_device_that_is_gone_needs_no_undoing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def gone(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    (tmp_path / "knob").write_text("changed")
    monkeypatch.setattr(Path, "write_text", gone)
    assert WriteFile(str(tmp_path / "knob"), "before").undo() is None


def abandon(*changes: Action) -> Path:
    """The journal of an owner that was killed after these changes."""
    journal = UndoJournal.open()
    for each in changes:
        journal.before(each)
    die(journal)
    return journal._file.path


def test_settings_of_a_queue_are_put_back_in_their_order_or_later(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its scheduler back first, the kernel may refuse what another setting was before."""
    queue = "/sys/block/loop0/queue"
    names = ("scheduler", "nr_requests", "iosched/read_expire")
    changes = [WriteFile(f"{queue}/{name}", "x") for name in names]
    other = WriteFile("/sys/block/loop1/queue/scheduler", "none")
    with UndoJournal.open() as journal:
        for change in (changes[0], other, *changes[1:]):
            journal.before(change)
        done: list[Action] = []

        def take_back(change: Action, on_wait: object) -> None:
            if change == changes[1] and len(done) == 1:
                raise CannotUndo("the process that did it was killed")
            done.append(change)

        monkeypatch.setattr(undo, "_take_back", take_back)
        journal.restore()
        assert done == [changes[2], other]
        journal.restore()
        assert done == [changes[2], other, changes[1], changes[0]]


def flip(path: Path, position: int, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << bit
    path.write_bytes(content)


@pytest.mark.parametrize("bit", [0, *(pytest.param(bit, marks=pytest.mark.long) for bit in range(1, 8))])
def test_whichever_bit_of_a_journal_flips_all_is_undone_but_for_one_line_which_is_told(
    tmp_path: Path, state_dir: Path, bit: int
) -> None:
    made = [tmp_path / name for name in ("first", "second", "third")]
    path = abandon(*(RemoveTree(str(directory), "token") for directory in made))
    written = path.read_bytes()
    length = len(written.rstrip(b"\0")) + 2
    line_ends = [position for position in range(length) if written[position] == ord("\n")]
    for position in sorted({*range(4 * bit, length, 32), *line_ends}):
        for directory in made:
            directory.mkdir(exist_ok=True)
        path.write_bytes(written)
        flip(path, position, bit)
        lines = restore_abandoned()
        left = [directory for directory in made if directory.exists()]
        told = [line for line in lines if line.startswith(f"{path}:")]
        assert len(left) <= (2 if position in line_ends else 1), (position, lines)
        assert bool(told) == path.exists(), (position, lines)
        if left:
            assert told, (position, lines)


def test_a_wrong_type_in_one_line_stops_no_other(tmp_path: Path, state_dir: Path) -> None:
    made = tmp_path / "made"
    made.touch()
    journal = UndoJournal.open()
    journal.before(RemoveFile(str(made), identity_at(made)))
    wrong: list[dict[str, Any]] = [
        {"number": 7, "action": "RemoveFile", "path": 5},
        {"number": "8", "action": "RemoveFile", "path": "/nonexistent"},
        {"number": 9, "action": ["RemoveFile"], "path": "/nonexistent"},
        {"number": 10, "action": "RemoveFile", "path": "/nonexistent", "planet": "Mars"},
        {"undone": [0]},
        {"undone": {"a": 1}},
    ]
    for entry in wrong:
        os.write(journal._file.fd, checked_lines.encode(entry))
    die(journal)
    lines = restore_abandoned()
    assert not made.exists()
    for number in range(3, 7):
        assert any(line.startswith(f"{journal._file.path}:{number}:") for line in lines), (number, lines)
    assert journals() == [journal._file.path]


@pytest.mark.root
def test_a_full_state_filesystem_stops_no_undoing(tmp_path: Path, state_dir: Path) -> None:
    """As its user meets it: the filesystem of the state directory fills up while a trial runs."""
    knob, other = tmp_path / "knob", tmp_path / "other"
    knob.write_text("first")
    with tmpfs(state_dir, size_kib=128):
        journal = UndoJournal.open()
        for number in range(100):
            change(journal, knob, f"value {number}")
        journal.before(RemoveTree(str(other), "token"))
        fill(state_dir)
        other.mkdir()
        outcomes, problems = journal.restore()
        assert problems == []
        assert len(outcomes) == 101
        assert checked_lines.read(journal._file.path.read_bytes()).entries[-1] == {"undone": 0}
        journal.close()
        assert journals() == []
    assert (knob.read_text(), other.exists()) == ("first", False)


@pytest.mark.long
@pytest.mark.root
def test_nothing_is_changed_when_the_journal_has_no_room(tmp_path: Path, state_dir: Path) -> None:
    with tmpfs(state_dir, size_kib=64):
        change = RemoveFile(str(tmp_path / "made"))
        journal = UndoJournal.open()
        journal.before(change)
        fill(state_dir)
        with pytest.raises(MachineError, match="nothing is changed"):
            for _ in range(1000):
                journal.before(change)
        with pytest.raises(MachineError, match="nothing is changed"):
            UndoJournal.open().before(change)
        assert journals() == [journal._file.path]
        journal.restore()
        journal.close()
        assert list(journal._file.path.parent.iterdir()) == []


def test_a_disk_that_refuses_to_take_down_what_is_undone_stops_no_undoing(
    tmp_path: Path, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [tmp_path / "first", tmp_path / "second"]
    kept = tmp_path / "kept"
    (kept / "somebody's").mkdir(parents=True)
    path = abandon(RemoveTree(str(kept), "token"), *(RemoveTree(str(directory), "token") for directory in made))
    for directory in made:
        directory.mkdir()

    def refused(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", refused)
    lines = restore_abandoned()
    assert not any(file.exists() for file in made)
    assert any("will be undone again" in line for line in lines)
    assert journals() == [path]
