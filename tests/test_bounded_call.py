"""Calls that may never return: their answers, their errors, and what becomes of one that gives no sign of life."""

import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.machines.system import bounded_call, life
from iolab.machines.system.action import CannotUndo
from iolab.machines.system.bounded_call import NoAnswer


@pytest.fixture
def short_patience() -> Iterator[None]:
    bounded_call.set_patience(0.6)
    yield
    bounded_call.set_patience(bounded_call.PATIENCE_S)


def test_an_answer_comes_back() -> None:
    assert bounded_call.call(lambda: os.getppid(), doing="ask") == os.getpid()
    assert bounded_call.call(lambda: "x" * 10_000_000, doing="say much") == "x" * 10_000_000


def test_errors_come_back_as_they_were() -> None:
    def refuse() -> None:
        raise InputError("no such thing", where="here", remedy="look there")

    with pytest.raises(InputError, match="here: no such thing; look there") as refused:
        bounded_call.call(refuse, doing="try")
    assert refused.value.where == "here"

    def cannot() -> None:
        raise CannotUndo("never", for_good=True)

    with pytest.raises(CannotUndo, match="never") as problem:
        bounded_call.call(cannot, doing="try")
    assert problem.value.for_good


def test_a_child_that_is_killed_is_an_error() -> None:
    with pytest.raises(Exception, match="cannot die here: the process that did it was killed"):
        bounded_call.call(lambda: os.kill(os.getpid(), signal.SIGKILL), doing="die here")


def test_without_a_sign_of_life_it_is_given_up(short_patience: None) -> None:
    said: list[str] = []
    began = time.monotonic()
    with pytest.raises(NoAnswer, match=r"/dev/x: cannot wait for ever: no answer since \d\d:\d\d:\d\d") as given_up:
        bounded_call.call(lambda: time.sleep(60), doing="wait for ever", where="/dev/x", on_wait=said.append)
    assert 0.5 < time.monotonic() - began < 30
    assert "iolab restore" in str(given_up.value)
    assert len(said) == 1
    assert re.match(r"wait for ever: no answer for \d+ s", said[0]), "a busy machine looks late"


def test_whoever_moves_is_waited_for(short_patience: None) -> None:
    def slow() -> str:
        for _ in range(15):
            time.sleep(0.1)
        return "done"

    assert bounded_call.call(slow, doing="take long") == "done"
    slow_child = [sys.executable, "-c", "import time\nfor _ in range(15): time.sleep(0.1)"]
    assert bounded_call.call(lambda: subprocess.run(slow_child, check=False).returncode, doing="take long") == 0


def test_a_child_holds_no_lock_and_no_pipe_of_its_parent(tmp_path: Path, short_patience: None) -> None:
    locked = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(locked, fcntl.LOCK_EX)
    reading, writing = os.pipe()

    def look() -> list[str]:
        return [str(link.readlink()) for fd in range(64) if (link := Path(f"/proc/self/fd/{fd}")).is_symlink()]

    opened = bounded_call.call(look, doing="look")
    assert opened[:3] == ["/dev/null"] * 3
    assert len(opened) == 4
    os.close(locked)
    os.close(reading)
    os.close(writing)


def test_calls_from_a_thread_beside_others() -> None:
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(bounded_call.call(lambda: 1, doing="count"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [1] * 8


def test_life_is_seen_in_processes_that_a_process_started() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & wait"]) as process:
        watch = life.Watch()
        for _ in range(3):
            watch.look([process.pid])
            time.sleep(0.3)
        assert watch.quiet_s > 0.2
        assert {task.name for task in watch.tasks} == {"sh", "sleep"}
        assert watch.stuck() == []
        for task in watch.tasks:
            os.kill(task.process, signal.SIGKILL)
    assert not life.is_alive(process.pid)
