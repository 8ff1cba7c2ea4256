"""Runs the system's own tools (mkfs, mount, losetup, wipefs) and turns their failures into one line."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from iolab.base import child_process
from iolab.base.errors import MachineError

PR_SET_PDEATHSIG = 1
TIME_LIMIT_S = 600.0
"""No mkfs, mount or losetup of a trial takes so long, unless its device hangs."""
KILLED_AFTER_S = 1.0
_libc = ctypes.CDLL(None)

kept_open: set[int] = set()
"""Descriptors that a tool holds open as long as it runs: the undo journals of this process, whose locks show that
something may still be changed. A tool that is killed with this process ends only when its system call has ended: it may
attach a loop device, or mount a filesystem, after this process is gone. A fork begins with none, since it closes them.
"""
os.register_at_fork(after_in_child=kept_open.clear)


class CommandFailed(MachineError):
    """The tool ran and ended with an error; the text has its last words."""


def find(tool: str) -> str | None:
    """The tool's full path, None when it is not installed."""
    return shutil.which(tool, path=child_process.search_path())


def run(
    arguments: Sequence[str],
    *,
    package: str,
    where: str,
    given: str | None = None,
    variables: Mapping[str, str] | None = None,
    limit_s: float | None = None,
) -> str:
    """Runs the tool and returns what it printed.

    Args:
        package: the Debian package that has the tool, for the remedy when it is missing.
        where: the device, path or key that an error line names.
        given: what the tool reads from its standard input.
        variables: beside what every process is given.
        limit_s: how long it may take; None: `TIME_LIMIT_S`.

    Raises:
        MachineError: the tool is missing, or did not end within `limit_s`.
        CommandFailed: it failed; the error has its own words.
    """
    tool = find(arguments[0])
    if tool is None:
        raise MachineError(
            f"{arguments[0]} is not installed", where=where, remedy=f"install it: sudo apt-get install {package}"
        )
    # A session of its own: Ctrl-C in the terminal must not kill a mkfs half-way, the trial stops after it.
    process = subprocess.Popen(
        [tool, *arguments[1:]],
        stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**child_process.environment(), "LC_ALL": "C", **(variables or {})},
        start_new_session=True,
        pass_fds=tuple(kept_open),
        preexec_fn=dying_with_parent(),
    )
    limit_s = limit_s or TIME_LIMIT_S
    try:
        output, errors = process.communicate(given, timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        with suppress(subprocess.TimeoutExpired):  # in an uninterruptible sleep it does not even die
            process.communicate(timeout=KILLED_AFTER_S)
        raise MachineError(
            f"{' '.join(arguments)} did not end within {limit_s:g} s",
            where=where,
            remedy="see what the device does: dmesg | tail",
        ) from None
    except BaseException:
        process.kill()
        raise
    if process.returncode != 0:
        raise CommandFailed(
            f"{' '.join(arguments)} failed: {_failure(output, errors, process.returncode)}", where=where
        )
    return output


def dying_with_parent() -> Callable[[], None]:
    """For a child to call before it executes: a mount that outlives a killed trial would come after everything was
    restored."""
    parent = os.getpid()

    def die_with_parent() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # One that was killed before the call sends no signal. The first process of a PID namespace sees no parent.
        if os.getppid() not in (parent, 0):
            os._exit(1)

    return die_with_parent


def _failure(output: str, errors: str, status: int) -> str:
    lines = [line.strip() for line in (errors + output).splitlines() if line.strip()]
    return " / ".join(lines[:3]) or f"exit status {status}"
