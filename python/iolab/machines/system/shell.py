"""Runs a shell command, with everything that it starts, so that nothing of it outlives this process."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from iolab.base.errors import MachineError
from iolab.domain.executor import ShouldStop
from iolab.machines.system import rights, shell_process
from iolab.machines.system.shell_process import RunningCommand

POLL_S = 0.1
OUTPUT_KEPT_BYTES = 256 * 1024
LINES_SHOWN_MAX = 5


@dataclass(frozen=True)
class ShellResult:
    """How a command ended."""

    exit_status: int
    """Negative: the signal that killed it."""
    output: str
    """Standard output and error as they came; of long output, the end."""
    stopped: bool
    elapsed_ns: int = 0
    """From the shell's start to its end."""
    spent_ns: int = 0
    """CPU time before the shell's start, which is in the usage of children."""

    def failure(self, command: str) -> str | None:
        """What went wrong, with its last lines; None of one that succeeded."""
        if self.exit_status == 0:
            return None
        status = self.exit_status
        how = f"was killed by signal {-status}" if status < 0 else f"failed with exit status {status}"
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        shown = " / ".join(lines[-LINES_SHOWN_MAX:]) or "it printed nothing"
        rest = "" if len(lines) <= LINES_SHOWN_MAX else " (all of it: iolab show RUN --as output)"
        return f"{command} {how}: {shown}{rest}"


class BackgroundCommand:
    """A shell command that runs until it is ended, with everything that it starts."""

    def __init__(self, process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        self._process = process
        self._output = output

    @classmethod
    def start(cls, text: str, *, directory: Path, environment: Mapping[str, str]) -> BackgroundCommand:
        """Starts `sh -c TEXT` in the directory. It dies with this process. MachineError as `run`, and without root."""
        if os.geteuid() != 0:
            raise MachineError(
                "a command in the background needs root: what it starts is kept in a PID namespace",
                remedy=rights.AS_ROOT,
            )
        output = tempfile.TemporaryFile()  # noqa: SIM115 closed by `end`
        return cls(_start(text, directory, environment, output).process, output)

    def end(self) -> ShellResult | None:
        """Kills it; None unless it had ended already."""
        status = self._process.poll()
        if status is None:
            self._process.kill()
            self._process.wait()
        with self._output:
            return None if status is None else ShellResult(status, _end_of(self._output), stopped=False)


def run(text: str, *, directory: Path, environment: Mapping[str, str], should_stop: ShouldStop) -> ShellResult:
    """Runs `sh -c TEXT` in the directory. On return no process of it is left, also when `should_stop` became true.

    Args:
        environment: what the command finds besides the little that every program does (`child_process.environment`).

    Raises:
        MachineError: see `shell_process.start`.
    """
    everything = nullcontext() if os.geteuid() == 0 else shell_process.nothing_left()
    with tempfile.TemporaryFile() as output, everything:
        started = _start(text, directory, environment, output)
        stopped = _wait(started.process, should_stop)
        elapsed_ns = time.monotonic_ns() - started.began_ns
        shown = _end_of(output)
    return ShellResult(started.process.returncode, shown, stopped, elapsed_ns, started.spent_ns)


def _start(text: str, directory: Path, environment: Mapping[str, str], output: IO[bytes]) -> RunningCommand:
    return shell_process.start(text, directory=directory, variables={"LC_ALL": "C", **environment}, output=output)


def _end_of(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - OUTPUT_KEPT_BYTES))
    return output.read().decode(errors="replace")


def _wait(process: subprocess.Popen[bytes], should_stop: ShouldStop) -> bool:
    """Until it has ended; True if it was killed because `should_stop` became true."""
    fd = os.pidfd_open(process.pid)
    try:
        while not select.select([fd], [], [], POLL_S)[0]:
            if should_stop():
                shell_process.kill(process)
                process.wait()
                return True
        process.wait()
        return False
    finally:
        os.close(fd)
