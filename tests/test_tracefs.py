"""Tracing instances: ours are gone when a run was killed, those of others stay."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from iolab.machines.system import tracefs
from iolab.machines.system.action import RemoveTraceInstance
from iolab.machines.system.undo import UndoJournal, journals, restore_abandoned

pytestmark = [pytest.mark.root, pytest.mark.machine]


@pytest.fixture
def instances() -> Iterator[tuple[Path, Path]]:
    """Where ours would be, and somebody else's with an event switched on."""
    root = tracefs.root()
    if root is None:
        pytest.skip("tracefs is not mounted")
    ours, theirs = (root / "instances" / f"{name}-{os.getpid()}" for name in ("iolab-test", "theirs"))
    theirs.mkdir()
    (theirs / "events/sched/sched_switch/enable").write_text("1")
    yield ours, theirs
    for path in (ours, theirs):
        if path.is_dir():
            tracefs.remove(path)


def test_what_a_killed_run_traced_is_removed_and_nothing_else(instances: tuple[Path, Path], state_dir: Path) -> None:
    ours, theirs = instances
    journal = UndoJournal.open()
    journal.before(RemoveTraceInstance(ours.name))
    ours.mkdir()
    (ours / "events/sched/sched_switch/enable").write_text("1")
    journal._file.close()  # as kill -9 does: the lock goes, the file stays
    assert restore_abandoned() == [f"removed the tracing instance {ours}"]
    assert not ours.exists()
    assert (theirs / "events/sched/sched_switch/enable").read_text().strip() == "1"
    assert restore_abandoned() == []


def test_an_instance_that_was_never_made_is_nothing_to_undo(instances: tuple[Path, Path], state_dir: Path) -> None:
    ours, _ = instances
    with UndoJournal.open() as journal:
        journal.before(RemoveTraceInstance(ours.name))
        assert journal.restore() == ([], [])


def test_one_that_is_still_read_stays_in_the_journal(
    instances: tuple[Path, Path], state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, _ = instances
    monkeypatch.setattr(tracefs, "REMOVE_PATIENCE_S", 0.05)
    journal = UndoJournal.open()
    journal.before(RemoveTraceInstance(ours.name))
    ours.mkdir()
    with (ours / "trace_pipe").open("rb"):
        _, problems = journal.restore()
        assert len(problems) == 1 and ours.name in problems[0]
        assert (ours / "tracing_on").read_text().strip() == "0"
    journal.close()
    assert len(journals().dead) == 1
    restore_abandoned()
    assert not ours.exists()
