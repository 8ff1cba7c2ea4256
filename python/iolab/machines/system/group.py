"""A command of the user's: output in a file, a time limit, and nothing left running."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from iolab.base import beneath
from iolab.machines.system import shell_process

TAIL_BYTES = 4096


@dataclass(frozen=True)
class CommandResult:
    """How a command ended. `status`: its exit status, negative for a signal; None if its time was over. `cpu_s`: of
    it and of the children that it waited for."""

    status: int | None
    wall_s: float
    cpu_s: float

    def why(self, limit_s: float) -> str:
        """Why it failed, in words."""
        if self.status is None:
            return f"did not end within {limit_s:g} s"
        return f"signal {-self.status}" if self.status < 0 else f"exit status {self.status}"


def run(command: str, *, cwd: Path, variables: Mapping[str, str], output: Path, limit_s: float) -> CommandResult:
    """Runs the command with a shell, its output to `output`; on return every process that it started is gone, those too
    that left its group. `variables` come beside what every process is given. Raises as `shell_process.start`."""
    with (
        shell_process.nothing_left(),
        os.fdopen(beneath.open_file(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file,
    ):
        started = shell_process.start(command, directory=cwd, variables=variables, output=file)
        process = started.process
        try:
            in_time = _ended(process.pid, limit_s)
            wall_s = (time.monotonic_ns() - started.began_ns) / 1e9
        finally:
            shell_process.kill(process)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    cpu_s = max(0.0, usage.ru_utime + usage.ru_stime - started.spent_ns / 1e9)
    return CommandResult(process.returncode if in_time else None, wall_s, cpu_s)


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
