"""Whether a trial gets anywhere: told by its progress, and by what the kernel says of its processes."""

import os
from pathlib import Path

import pytest
from iolab.domain.executor import Progress
from iolab.machines.system import life, stall
from iolab.machines.system.stall import Stall
from iolab.presentation.progress import words
from support.trials import io_trial

PATIENCE_S = 60.0


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stalls(clock: Clock, tmp_path: Path) -> Stall:
    return Stall(io_trial({"kind": "directory", "path": str(tmp_path)}), os.getpid(), PATIENCE_S, clock)


def running(ops: int, fraction: float | None = None) -> Progress:
    return Progress(phase="main", doing="running", ops=ops, bytes=ops * 4096, fraction=fraction)


def test_who_does_io_gets_on(stalls: Stall, clock: Clock) -> None:
    for ops in range(200):
        clock.now_s += 2
        stalls.progress(running(ops))
        assert stalls.verdict() is None
        assert stalls.text == ""


def test_io_that_does_not_complete_is_told_and_past_its_end_given_up(
    stalls: Stall, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stall, "_in_flight", lambda disk: False)
    for second in range(100):
        clock.now_s += 1
        stalls.progress(running(7, fraction=min(1.0, second / 20)))
        verdict = stalls.verdict()
        assert (verdict is not None) == (second >= 20 + PATIENCE_S), second
        if 5 < second <= 80:
            assert stalls.text.startswith(f"{tmp_path}: no I/O has completed for {second} s")
    assert verdict is not None
    assert verdict.startswith("it does not answer: no I/O has completed for 99 s")


def test_io_in_flight_on_the_target_s_device_need_not_be_waited_out(
    stalls: Stall, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stalls._disks = ["sdz"]
    monkeypatch.setattr(stall, "_in_flight", lambda disk: disk == "sdz")
    verdict = None
    for second in range(100):
        clock.now_s += 1
        stalls.progress(running(7, fraction=second / 3600))
        verdict = stalls.verdict()
        assert (verdict is not None) == (second >= PATIENCE_S), second
    assert "/dev/sdz has I/O in flight" in str(verdict)


def test_a_task_that_waits_in_the_kernel_all_the_time_is_named(
    stalls: Stall, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a phase that says nothing of I/O; one that moves may take as long as it likes."""
    task = life.Task(5, 5, "mkfs.ext4", "D", 1, "io_schedule")
    waits_s = 0.0
    monkeypatch.setattr(life.Watch, "look", lambda *_: None)
    monkeypatch.setattr(life.Watch, "stuck", lambda _: [(task, waits_s)])
    stalls.progress(Progress(phase="commands", doing="running", fraction=0.5))
    clock.now_s += 10_000
    assert stalls.verdict() is None
    clock.now_s += 2
    waits_s = PATIENCE_S
    assert "mkfs.ext4 (process 5) waits in the kernel, in io_schedule since" in str(stalls.verdict())


def test_the_display_says_what_is_waited_for_and_no_time_left() -> None:
    waiting = Progress(phase="main", doing="running", elapsed_ns=10**10, ops=3, fraction=1.0, waiting="/dev/x: no I/O")
    assert words.activity(waiting, None) == "main, /dev/x: no I/O"
    assert "left" not in words.activity(running(3, fraction=1.0), None)
