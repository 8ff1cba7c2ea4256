"""Runs the system's own tools (mkfs, mount, losetup, wipefs) and turns their failures into one line."""

from __future__ import annotations

import ctypes
import shutil
import signal
import subprocess
from collections.abc import Sequence

from iolab.base import child_process
from iolab.base.errors import MachineError

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class CommandFailed(MachineError):
    """The tool ran and ended with an error; the text has its last words."""


def find(tool: str) -> str | None:
    """The tool's full path, None when it is not installed."""
    return shutil.which(tool, path=child_process.search_path())


def run(arguments: Sequence[str], *, package: str, where: str) -> str:
    """Runs the tool and returns what it printed.

    Args:
        package: the Debian package that has the tool, for the remedy when it is missing.
        where: the device, path or key that an error line names.

    Raises:
        MachineError: the tool is missing.
        CommandFailed: it failed; the error has its own words.
    """
    tool = find(arguments[0])
    if tool is None:
        raise MachineError(
            f"{arguments[0]} is not installed", where=where, remedy=f"install it: sudo apt-get install {package}"
        )
    # A session of its own: Ctrl-C in the terminal must not kill a mkfs half-way, the trial stops after it.
    done = subprocess.run(
        [tool, *arguments[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={**child_process.environment(), "LC_ALL": "C"},
        start_new_session=True,
        preexec_fn=die_with_parent,
        check=False,
    )
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(arguments)} failed: {_said(done)}", where=where)
    return done.stdout


def die_with_parent() -> None:
    """For a child to call before it executes: a mount that outlives a killed trial would come after everything was
    restored."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _said(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    return " / ".join(lines[:3]) or f"exit status {done.returncode}"
