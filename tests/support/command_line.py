"""Drives `iolab` as a user does: a process, its output, its exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from support import patience, prepared
from support.patience import SLOWER

PROGRAM = Path(sys.executable).parent / "iolab"
NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")


@dataclass(frozen=True)
class Outcome:
    status: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout + self.stderr

    def json(self) -> Any:
        return json.loads(self.stdout)

    def assert_one_clear_line(self, status: int, *words: str) -> None:
        """An error as a user should see it: the exit status, one line that has `words`, no traceback."""
        assert self.status == status, self.text
        assert "Traceback" not in self.text, self.text
        lines = [line for line in self.stderr.splitlines() if line.startswith("iolab:")]
        assert len(lines) == 1, self.text
        for word in words:
            assert word in lines[0], f"{word!r} is missing from {lines[0]!r}"


@dataclass(frozen=True)
class CommandLine:
    cwd: Path
    state_dir: Path
    prefix: tuple[str, ...] = field(default=())

    def __call__(
        self, *arguments: str | Path, status: int | None = 0, cpu_limit_s: float = patience.CPU_LIMIT_S
    ) -> Outcome:
        """Runs to the end; `status` None accepts any exit status."""
        with self.start(*arguments) as process:
            stdout, stderr = process.ended(cpu_limit_s)
        assert process.returncode is not None
        outcome = Outcome(process.returncode, stdout, stderr)
        assert status is None or outcome.status == status, f"exit status {outcome.status}: {outcome.text}"
        return outcome

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "IOLAB_STATE_DIR": str(self.state_dir), "NO_COLOR": "1"}

    def start(self, *arguments: str | Path) -> Started:
        """The running process, leader of a process group of its own."""
        if not self.prefix and prepared.fits(self._environment):
            return prepared.Forked([*map(str, arguments)], self.cwd, self._environment)
        return self.start_program(*arguments)

    def start_program(self, *arguments: str | Path) -> Program:
        """The same, as a new process of the program."""
        return Program(
            [*self.prefix, PROGRAM, *map(str, arguments)],
            cwd=self.cwd,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="surrogateescape",
            start_new_session=True,
        )

    def write(self, name: str, text: str) -> Path:
        path = self.cwd / name
        path.write_text(text)
        return path


class Program(subprocess.Popen[str]):
    """What fails while it runs is reported, not waited for."""

    def ended(self, cpu_limit_s: float = patience.CPU_LIMIT_S) -> tuple[str, str]:
        """What it wrote to stdout and stderr until its end; see `patience.wait`."""

        def communicate(time_s: float) -> tuple[str, str] | None:
            try:
                return self.communicate(timeout=time_s)
            except subprocess.TimeoutExpired:
                return None

        return patience.wait(communicate, self.pid, cpu_limit_s)

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        super().__exit__(kind, *rest)


Started = Program | prepared.Forked


def as_nobody(command_line: CommandLine) -> CommandLine:
    """Where only root may enter the directory of the Python that runs the tests, the ordinary user gets the capability
    to read it all; writing and root's other powers stay out of reach."""
    reading = (f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient"))
    # Through a shell: what setpriv itself starts still profits from the capabilities that it gives up.
    plainly_works = subprocess.run([*NOBODY, "sh", "-c", f"{PROGRAM} --help"], capture_output=True, check=False)
    return replace(command_line, prefix=NOBODY if plainly_works.returncode == 0 else (*NOBODY, *reading))


def wait_until(condition: Callable[[], bool], what: str, time_limit_s: float = 90.0) -> None:
    give_up = time.monotonic() + time_limit_s * SLOWER
    while not condition():
        assert time.monotonic() < give_up, f"waited {time_limit_s * SLOWER:g} s for {what}"
        time.sleep(0.01)
