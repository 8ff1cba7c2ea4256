"""Starts `sh -c TEXT` so that nothing which it starts outlives it or this process.

As root it is the first process of a PID namespace, whose end takes all others with it, also those that left its session
or process group. Others may make no such namespace on every machine, and sudo does not work in those that they may:
their orphans come to this process, which ends them (`nothing_left`), unless it is killed itself.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from iolab.base import child_process
from iolab.base.errors import MachineError
from iolab.machines.system import command

SHELL = "/bin/sh"
ALONE = ("unshare", "--pid", "--fork", "--kill-child", "--")
BEGINS = 'echo >/proc/self/fd/{fd}; exec /bin/sh -c "$1"'
"""Reports when the command itself begins: making the namespace takes milliseconds."""
PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37
libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class RunningCommand:
    """A command in progress."""

    process: subprocess.Popen[bytes]
    """In a session of its own."""
    began_ns: int
    """The monotonic time at which its shell began."""
    spent_ns: int
    """CPU time that went before that into the process and the namespace; 0 if the kernel does not count it."""


def start(text: str, *, directory: Path, variables: Mapping[str, str], output: IO[bytes]) -> RunningCommand:
    """Starts it, and returns when its shell begins.

    Args:
        variables: what the command finds besides the little that every program does (`child_process.environment`).
        output: for its standard output and error.

    Raises:
        MachineError: root's, and unshare is not installed.
    """
    begins, says = os.pipe()
    with os.fdopen(begins, "rb", buffering=0) as begun:
        try:
            process = subprocess.Popen(
                [*_alone(), SHELL, "-c", BEGINS.format(fd=says), "sh", text],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env={**child_process.environment(), **variables},
                start_new_session=True,
                preexec_fn=command.dying_with_parent(),
                pass_fds=(says,),
            )
        finally:
            os.close(says)
        begun.read(1)
        began_ns = time.monotonic_ns()
        return RunningCommand(process, began_ns, sum(map(_cpu_ns, (process.pid, *_children_of(process.pid)))))


def kill(process: subprocess.Popen[bytes]) -> None:
    """Its process group, and the namespace that it may have. Not to be called once it was waited for: its number may be
    another's then."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def nothing_left() -> Iterator[None]:
    """Ends what became a child of this process inside: a process whose parent has ended, as daemons have it, is this
    one's child then instead of init's."""
    others = set(_children())
    was = ctypes.c_int()
    libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(was))
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        while left := set(_children()) - others:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        libc.prctl(PR_SET_CHILD_SUBREAPER, was.value)


def _children() -> list[int]:
    return _children_of(os.getpid())


def _children_of(process: int) -> list[int]:
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for path in Path(f"/proc/{process}/task").glob("*/children"):
            found += map(int, path.read_text().split())
    return found


def _cpu_ns(process: int) -> int:
    with suppress(FileNotFoundError, ProcessLookupError):
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[0])
    return 0


def _alone() -> list[str]:
    if os.geteuid() != 0:
        return []
    unshare = command.find(ALONE[0])
    if unshare is None:
        raise MachineError(f"{ALONE[0]} is not installed", remedy="install it: sudo apt-get install util-linux")
    return [str(unshare), *ALONE[1:]]
