"""Runs a shell command, with everything that it starts, so that nothing of it outlives this process."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from iolab.adapters.system import command
from iolab.base import child_process
from iolab.base.errors import MachineError
from iolab.domain.executor import ShouldStop

POLL_S = 0.1
OUTPUT_KEPT_BYTES = 256 * 1024

# The first process of a PID namespace takes all others with it, also those that left its session or process group.
ALONE = ("unshare", "--pid", "--fork", "--kill-child", "--")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    exit_status: int
    """Negative: the signal that killed it."""
    output: str
    """Standard output and error as they came; of long output, the end."""
    stopped: bool


def run(text: str, *, directory: Path, environment: Mapping[str, str], should_stop: ShouldStop) -> Ended:
    """Runs `sh -c TEXT` in the directory. On return no process of it is left, also when `should_stop` became true.

    Args:
        environment: what the command finds besides the little that every program does (`child_process.environment`).

    Raises:
        MachineError: no permission to make a PID namespace, or unshare is not installed.
    """
    unshare = command.find(ALONE[0])
    if unshare is None:
        raise MachineError(f"{ALONE[0]} is not installed", remedy="install it: sudo apt-get install util-linux")
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [unshare, *ALONE[1:], "/bin/sh", "-c", text],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env={**child_process.environment(), "LC_ALL": "C", **environment},
            start_new_session=True,
            preexec_fn=command.die_with_parent,
        )
        stopped = _wait(process, should_stop)
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - OUTPUT_KEPT_BYTES))
        said = output.read().decode(errors="replace")
    return Ended(process.returncode, said, stopped)


def _wait(process: subprocess.Popen[bytes], should_stop: ShouldStop) -> bool:
    """Until it has ended; True if it was killed because `should_stop` became true."""
    fd = os.pidfd_open(process.pid)
    try:
        while not select.select([fd], [], [], POLL_S)[0]:
            if should_stop():
                process.kill()
                process.wait()
                return True
        process.wait()
        return False
    finally:
        os.close(fd)
