"""A program is given up by what it does: it idles, or computes without end."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from support import patience


@contextmanager
def shell(script: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait(process: subprocess.Popen[bytes], cpu_limit_s: float = patience.CPU_LIMIT_S) -> int:
    def ended(time_s: float) -> int | None:
        try:
            return process.wait(time_s)
        except subprocess.TimeoutExpired:
            return None

    return patience.wait(ended, process.pid, cpu_limit_s)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LOOK_EVERY_S", 0.1)
    monkeypatch.setattr(patience, "IDLE_LIMIT_S", 0.5)


def test_one_that_idles_is_given_up() -> None:
    with shell("sleep 60; :") as process, pytest.raises(subprocess.TimeoutExpired, match="idle"):
        wait(process)


def test_one_that_computes_without_end_is_given_up() -> None:
    with shell("while :; do :; done") as process, pytest.raises(subprocess.TimeoutExpired, match="CPU time"):
        wait(process, cpu_limit_s=0.3)


def test_one_whose_child_computes_is_waited_for() -> None:
    work = "i=0; while [ $i -lt 2000000 ]; do i=$((i + 1)); done"
    with shell(f"({work}); exit 7") as process:
        assert wait(process) == 7
