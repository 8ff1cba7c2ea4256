"""The undo journal: what is taken back, when, and what never is."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from iolab.machine import state, undo
from iolab.machine.action import MARKER, RemoveFile, RemoveTree, TruncateFile, WriteFile
from iolab.machine.own_directory import make_own_directory
from iolab.machine.undo import UndoJournal, restore_abandoned
from support.devices import loops_backed_under


def change(journal: UndoJournal, path: Path, value: str) -> None:
    journal.before(WriteFile(str(path), path.read_text()))
    path.write_text(value)


def die(journal: UndoJournal) -> None:
    """As kill -9 does: the lock goes, the file stays."""
    os.close(journal._fd)


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
    journal.before(RemoveFile("/nonexistent/file"))
    entries = [json.loads(line) for line in journal.path.read_text().splitlines()]
    assert entries[-1] == {"number": 0, "action": "RemoveFile", "path": "/nonexistent/file"}
    journal.restore()
    journal.close()


def test_a_living_owner_is_left_alone(tmp_path: Path, state_dir: Path) -> None:
    knob = tmp_path / "knob"
    knob.write_text("first")
    with UndoJournal.open() as journal:
        change(journal, knob, "second")
        assert undo.abandoned() == []
        assert restore_abandoned() == []
        assert knob.read_text() == "second"


def test_a_dead_owner_s_changes_are_undone_once(tmp_path: Path, state_dir: Path) -> None:
    knob = tmp_path / "knob"
    knob.write_text("first")
    journal = UndoJournal.open()
    change(journal, knob, "second")
    die(journal)
    assert undo.abandoned() == [journal.path]
    assert restore_abandoned() == [f"set {knob} back to first"]
    knob.write_text("somebody else's")
    assert restore_abandoned() == []
    assert knob.read_text() == "somebody else's"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    os.write(journal._fd, entry[: min(torn, len(entry) - 1)].encode())
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
        {"number": 1, "action": "RemoveFile", "path": str(made)},
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
    journal.before(RemoveFile(str(other)))
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
        own = make_own_directory(tmp_path, journal)
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
        own = make_own_directory(tmp_path, journal)
        (own / "link").symlink_to(precious)
    assert not own.exists()
    assert (precious / "file").read_text() == "kept"


def test_a_truncated_file_gets_its_length_back(tmp_path: Path, state_dir: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    with UndoJournal.open() as journal:
        journal.before(TruncateFile(str(file), 0))
        file.write_bytes(b"data")
    assert file.read_bytes() == b""


MAKE_A_SCRATCH_DEVICE = """
import sys, time
from iolab.machine import scheduler, scratch
from iolab.machine.undo import UndoJournal
from iolab.trial import ScratchTarget
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
    from iolab.machine import loop
    from iolab.machine.action import DetachLoop

    journal = UndoJournal.open()
    own = make_own_directory(tmp_path, journal)
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
    from iolab.machine import scratch
    from iolab.machine.action import mount
    from iolab.trial import ScratchTarget

    monkeypatch.setattr(mount, "UNMOUNT_PATIENCE_S", 0.2)
    target = ScratchTarget(
        size_bytes=64 << 20,
        filesystem="ext4",
        mkfs_options="",
        mount_options="",
        backing_directory=str(tmp_path),
        sector_bytes=None,
    )
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
