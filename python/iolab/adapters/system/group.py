"""A command of the user's in a process group of its own: output in a file, a time limit, and nothing left running."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from iolab.adapters.system.command import die_with_parent
from iolab.base import beneath, child_process

SHELL = "/bin/sh"
TAIL_BYTES = 4096
PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37
libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Ended:
    """How a command ended. `status`: its exit status, negative for a signal; None where its time was over. `cpu_s`: of
    it and of the children that it waited for."""

    status: int | None
    wall_s: float
    cpu_s: float

    def why(self, limit_s: float) -> str:
        """Why it failed, in words."""
        if self.status is None:
            return f"did not end within {limit_s:g} s"
        return f"signal {-self.status}" if self.status < 0 else f"exit status {self.status}"


def run(command: str, *, cwd: Path, variables: Mapping[str, str], output: Path, limit_s: float) -> Ended:
    """Runs the command with a shell, its output to `output`; on return every process that it started is gone, those too
    that left its group. `variables` come beside what every process is given."""
    others = set(_children())
    with _orphans_come_here():
        try:
            return _run(command, cwd=cwd, variables=variables, output=output, limit_s=limit_s)
        finally:
            _kill_children(others)


def _run(command: str, *, cwd: Path, variables: Mapping[str, str], output: Path, limit_s: float) -> Ended:
    with os.fdopen(beneath.open_file(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        began = time.monotonic()
        process = subprocess.Popen(
            [SHELL, "-c", command],
            cwd=cwd,
            env={**child_process.environment(), **variables},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        try:
            in_time = _ended(process.pid, limit_s)
            wall_s = time.monotonic() - began
        finally:
            # Before it is waited for, so that its number can't be another's by now.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(process.returncode if in_time else None, wall_s, usage.ru_utime + usage.ru_stime)


@contextmanager
def _orphans_come_here() -> Iterator[None]:
    """A process whose parent has ended, as daemons have it, becomes a child of this one instead of one of init."""
    was = ctypes.c_int()
    libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(was))
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, was.value)


def _kill_children(others: set[int]) -> None:
    """All but `others`, and the children that they leave, until there are no more."""
    while left := set(_children()) - others:
        for pid in left:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _children() -> list[int]:
    lists = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    return [int(pid) for text in lists for pid in text.split()]


def tail(output: Path) -> list[str]:
    """The last lines that a command wrote."""
    with os.fdopen(beneath.open_file(output, os.O_RDONLY), "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
        return [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]


def _ended(pid: int, limit_s: float) -> bool:
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(1000 * limit_s))
    finally:
        os.close(descriptor)
