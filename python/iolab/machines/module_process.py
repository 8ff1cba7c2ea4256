"""A child process that runs one of iolab's modules: a fork of this process, which has imported most of it, or a new
Python.

A new Python takes a quarter of a second of CPU time before the module runs. A fork is as good if nothing runs beside
the thread that forks, and if the environment had no other say in how this Python started than it would have in a new
one.
"""

from __future__ import annotations

import ctypes
import gc
import os
import runpy
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from iolab.base import child_process

AT_START = ("PYTHON", "LD_", "MALLOC_", "GLIBC_")
"""Variables that an interpreter and its loader read when they start begin so."""
WITHOUT_EFFECT = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
"""The child has standard streams of its own, and has compiled what it runs."""
ARGUMENTS_FIELDS = slice(45, 47)
ENVIRONMENT_FIELDS = slice(47, 49)
"""The first and last address of command line and environment in /proc/PID/stat, behind the name: fields 48 to 51 of
proc(5)."""
FDS_END = 1 << 20


class Fork:
    """A forked child, with what `ForkServer` uses of a `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._has_ended = False

    def poll(self) -> int | None:
        """None while it runs."""
        return self._wait(os.WNOHANG)

    def wait(self) -> None:
        """Returns when it has ended."""
        self._wait(0)

    def kill(self) -> None:
        """Sends SIGKILL, unless it has ended."""
        if not self._has_ended:
            os.kill(self.pid, signal.SIGKILL)

    def _wait(self, options: int) -> int | None:
        if not self._has_ended:
            with suppress(ChildProcessError):
                if os.waitpid(self.pid, options)[0] == 0:
                    return None
            self._has_ended = True
        return 0


def start(module: str, arguments: Sequence[str], fd: int) -> Fork | subprocess.Popen[bytes]:
    """Runs `python -P -m MODULE ARGUMENTS...`, in a new Python if a fork would not be as good. Its standard input and
    output are /dev/null; of all other descriptors the child has `fd` and standard error."""
    if _may_fork():
        pid = os.fork()
        if pid == 0:
            become(module, arguments, fd)
        return Fork(pid)
    return subprocess.Popen(
        [*child_process.python(module), *arguments],
        env=child_process.python_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(fd,),
    )


def _may_fork() -> bool:
    dropped = os.environ.keys() - child_process.python_environment().keys() - WITHOUT_EFFECT
    return len(list(Path("/proc/self/task").iterdir())) == 1 and not any(name.startswith(AT_START) for name in dropped)


def become(module: str, arguments: Sequence[str], fd: int) -> NoReturn:
    """Turns a fork into the process that `start` describes, and does not return: what this process was doing is its
    parent's."""
    try:
        _leave_the_parents(fd)
        environment = child_process.python_environment()
        if not sys.flags.safe_path:
            del sys.path[:1]
        os.environ.clear()
        os.environ.update(environment)
        write_over(ARGUMENTS_FIELDS, [module, *arguments])
        sys.argv[:] = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def _leave_the_parents(fd: int) -> None:
    """Descriptors, buffered output and signal handlers: none of them is the child's."""
    gc.collect()  # while the descriptors of what is to be collected are still its own
    with Path(os.devnull).open("r+b", buffering=0) as devnull:
        for stream in (0, 1):
            os.dup2(devnull.fileno(), stream)
    os.closerange(3, fd)
    os.closerange(fd + 1, FDS_END)
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        stream_of_its_own = open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream_of_its_own)
    signal.set_wakeup_fd(-1)
    for each in signal.valid_signals():
        if callable(signal.getsignal(each)):
            signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)


def write_over(addresses: slice, texts: Sequence[str]) -> None:
    """The kernel shows these texts, as far as there is room, in place of those that this process was started with."""
    fields = Path("/proc/self/stat").read_text().rpartition(") ")[2].split()
    first, end = map(int, fields[addresses])
    room = end - first
    text = "\0".join([*texts, ""]).encode(errors="surrogateescape")[: room - 1]
    ctypes.memset(first, 0, room)
    ctypes.memmove(first, text, len(text))
