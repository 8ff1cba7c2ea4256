"""A file target: what iolab made is removed or emptied again, what somebody else put under its name never is."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from iolab.base import checked_lines
from iolab.base.errors import InputError
from iolab.machines.system import own_file, state
from iolab.machines.system.action import RemoveFile, TruncateFile
from iolab.machines.system.identity import identity_at
from iolab.machines.system.undo import UndoJournal, restore_abandoned
from support.command_line import CommandLine, wait_until
from support.experiments import DEFAULT_WORKLOAD, TWO_DEPTHS, experiment
from support.runs import events, notes

SIZE_BYTES = 1 << 20
PRECIOUS = b"what somebody keeps here"
WRITES = DEFAULT_WORKLOAD + "read_percent = 50\n"


def in_a_child(do: Callable[[], None]) -> int:
    """Does it in a process that then dies as by kill -9, and returns the signal that it died by."""
    child = os.fork()
    if child == 0:
        try:
            do()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def take(path: Path) -> None:
    """As a trial does, up to its first I/O."""
    journal = UndoJournal.open()
    own_file.take(path, journal, ExitStack()).grow(SIZE_BYTES, journal)
    path.open("r+b").write(b"measured")


def replace(path: Path) -> None:
    path.unlink()
    path.write_bytes(PRECIOUS)


def move_over(path: Path) -> None:
    replaced = path.with_name("new")
    replaced.write_bytes(PRECIOUS)
    replaced.rename(path)


def write_into(path: Path) -> None:
    path.write_bytes(PRECIOUS)


def link_to_another(path: Path) -> None:
    path.unlink()
    path.with_name("another").write_bytes(PRECIOUS)
    path.symlink_to("another")


def remember_another_boot() -> None:
    """The journal's entries are of a kernel that ran before this one."""
    for path in (state.state_directory() / "undo").glob("*.jsonl"):
        entries = checked_lines.read(path.read_bytes()).entries
        path.write_bytes(b"".join(checked_lines.encode({**entry, "boot_id": "another"}) for entry in entries))


@pytest.mark.parametrize("rebooted", [False, True], ids=["same-boot", "rebooted"])
@pytest.mark.parametrize("meanwhile", [replace, move_over, write_into, link_to_another])
@pytest.mark.parametrize("existed", [False, True], ids=["made", "empty"])
def test_a_file_that_somebody_put_there_after_a_kill_is_left_alone(
    tmp_path: Path, state_dir: Path, existed: bool, meanwhile: Callable[[Path], None], rebooted: bool
) -> None:
    path = tmp_path / "target"
    if existed:
        path.touch()
    in_a_child(lambda: take(path))
    assert path.stat().st_size == SIZE_BYTES
    meanwhile(path)
    if rebooted:
        remember_another_boot()
    assert any(line.startswith(f"{path} ") and "is left alone" in line for line in restore_abandoned())
    assert path.read_bytes() == PRECIOUS
    assert restore_abandoned() == []


@pytest.mark.parametrize("existed", [False, True], ids=["made", "empty"])
def test_the_next_run_leaves_it_alone_too(iolab: CommandLine, tmp_path: Path, existed: bool) -> None:
    path = tmp_path / "target"
    if existed:
        path.touch()
    in_a_child(lambda: take(path))
    replace(path)
    iolab.write("experiment.toml", experiment(f'kind = "file"\npath = "{path}"', workload=WRITES))
    iolab("run", "experiment.toml", status=None).assert_one_clear_line(2, "holds 24 bytes")
    assert path.read_bytes() == PRECIOUS
    assert "Nothing to restore" in iolab("restore").stdout


@pytest.mark.parametrize("existed", [False, True], ids=["made", "empty"])
def test_what_iolab_made_is_taken_back_after_a_kill(iolab: CommandLine, tmp_path: Path, existed: bool) -> None:
    path = tmp_path / "target"
    if existed:
        path.touch()
    in_a_child(lambda: take(path))
    remember_another_boot()
    assert f"truncated {path} to 0 bytes" in iolab("restore").stdout
    assert path.exists() == existed
    assert not existed or path.read_bytes() == b""


CALLS = ("mkdir", "open", "link", "unlink", "rmdir", "truncate", "write", "fsync")


def die_before(call: int) -> None:
    """Before that many calls that change something, in this process."""
    count = 0

    def counting(real: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object, **named: object) -> object:
            nonlocal count
            if real is not os_open or int(str(arguments[1])) & os.O_CREAT:
                if count == call:
                    os.kill(os.getpid(), signal.SIGKILL)
                count += 1
            return real(*arguments, **named)

        return counted

    os_open: Callable[..., object] = os.open
    for name in CALLS:
        setattr(os, name, counting(getattr(os, name)))


@pytest.mark.parametrize("existed", [False, True], ids=["made", "empty"])
def test_a_kill_at_any_call_leaves_nothing_that_restore_does_not_take_back(
    tmp_path: Path, state_dir: Path, existed: bool
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    path = place / "target"
    for call in range(100):
        finished = place / "finished"
        if existed:
            path.touch()

        def trial(call: int = call, finished: Path = finished) -> None:
            die_before(call)
            take(path)
            os.close(os.open(finished, os.O_WRONLY | os.O_CREAT))

        assert in_a_child(trial) == -signal.SIGKILL
        done = finished.exists()
        finished.unlink(missing_ok=True)
        restore_abandoned()
        assert [entry.name for entry in place.iterdir()] == (["target"] if existed else []), call
        assert not existed or path.read_bytes() == b""
        if done:
            break
    assert done
    assert call >= (3 if existed else 10)


def test_a_file_made_between_the_check_and_the_making_is_left_alone(
    tmp_path: Path, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "target"
    link = os.link

    def late(*arguments: object, **named: object) -> None:
        path.write_bytes(PRECIOUS)
        link(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", late)
    with ExitStack() as stack, UndoJournal.open() as journal:
        with pytest.raises(InputError, match="just made a file of this name"):
            own_file.take(path, journal, stack)
        outcomes, problems = journal.restore()
    assert path.read_bytes() == PRECIOUS
    assert problems == []
    assert any(outcome.unusual and str(path) in outcome.line for outcome in outcomes)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["state", "target"]


def test_a_file_moved_over_the_target_mid_run_is_left_alone(iolab: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "target"
    workload = WRITES.replace("150ms", "1s")
    target, one = f'kind = "file"\npath = "{path}"', "[settings.one]\n"
    iolab.write("experiment.toml", experiment(target, workload=workload, settings=one, rounds=1))
    with iolab.start("run", "experiment.toml", "--out", "run") as process:
        wait_until(lambda: path.exists() and path.stat().st_blocks * 512 >= 8 << 20, "the file to be laid out")
        time.sleep(0.3)
        move_over(path)
        _, stderr = process.ended()
    assert "Traceback" not in stderr
    assert path.read_bytes() == PRECIOUS
    assert events(tmp_path / "run", "trial_finished")
    assert any("is left alone" in note for note in notes(tmp_path / "run"))
    assert "Nothing to restore" in iolab("restore").stdout


def test_a_link_that_leads_nowhere_is_refused_and_stays(iolab: CommandLine, tmp_path: Path) -> None:
    link = tmp_path / "target"
    link.symlink_to(tmp_path / "nowhere")
    iolab.write("experiment.toml", experiment(f'kind = "file"\npath = "{link}"', workload=WRITES, settings=TWO_DEPTHS))
    outcome = iolab("run", "experiment.toml", status=None)
    outcome.assert_one_clear_line(2, "a symbolic link that leads nowhere", str(link))
    assert link.is_symlink()
    assert not (tmp_path / "nowhere").exists()


def test_what_is_no_regular_file_is_refused(iolab: CommandLine, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    iolab.write("experiment.toml", experiment(f'kind = "file"\npath = "{fifo}"', workload=WRITES))
    iolab("run", "experiment.toml", status=None).assert_one_clear_line(2, "expected a regular file", str(fifo))
    assert fifo.is_fifo()


def test_an_entry_without_an_identity_removes_nothing(tmp_path: Path, state_dir: Path) -> None:
    """Journals of a version that knew files by their names."""
    path = tmp_path / "target"
    path.touch()
    with UndoJournal.open() as journal:
        journal.before(RemoveFile(str(path)))
        journal.before(TruncateFile(str(path), 0))
    assert path.exists()


def test_a_file_is_known_by_more_than_its_name_and_its_inode_s_number(tmp_path: Path) -> None:
    path = tmp_path / "file"
    seen = set()
    for _ in range(20):
        path.touch()
        seen.add(identity_at(path))
        path.unlink()
    assert len(seen) == 20
    assert None not in seen
