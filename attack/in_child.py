"""Cases that run inside a long-lived child, thousands a minute: within limits of time and memory, as an ordinary user.

The parent's half: a child that dies, or says nothing for too long, is the case's fault, and a new one goes on.
"""

import json
import os
import selectors
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from family import Attack, Lane, Outcome
from support.command_line import CommandLine, as_nobody

CHILD = Path(__file__).parent / "child.py"
SILENCE_S = 120.0
"""Wall time after which a case hangs in something that no signal reaches."""


class InChild:
    def __init__(self, family: str, lane: Lane) -> None:
        self.family = family
        self.lane = lane
        self.prefix: tuple[str, ...] = ()
        if os.geteuid() == 0:
            self.prefix = as_nobody(CommandLine(cwd=lane.directory, state_dir=lane.directory)).prefix
            shutil.chown(lane.directory, "nobody", "nogroup")
        self.process = self._started()

    def __call__(self, case: int) -> Outcome:
        answer = self._ask(case)
        if answer is not None:
            return Outcome(1, answer)
        status = self._status()
        self.end()
        said = (self.lane.directory / "stderr").read_text(errors="replace")[-300:]
        self.process = self._started()
        what = f"silent for {SILENCE_S:g} s" if status is None else f"died with status {status}"
        return Outcome(1, [f"the process {what}: {said!r}"])

    def _status(self) -> int | None:
        """None of one that lives: one that has closed its pipe may take a moment to be gone."""
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(timeout=5.0)
        return None

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _ask(self, case: int) -> list[str] | None:
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(f"{case}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(SILENCE_S):
                return None
        line = self.process.stdout.readline()
        return list(json.loads(line)) if line else None

    def _started(self) -> subprocess.Popen[bytes]:
        with (self.lane.directory / "stderr").open("wb") as stderr:
            return subprocess.Popen(
                [*self.prefix, sys.executable, CHILD, self.family, str(self.lane.seed), self.lane.directory],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={
                    **os.environ,
                    "HOME": str(self.lane.directory),
                    "IOLAB_STATE_DIR": f"{self.lane.directory}/state",
                    "NO_COLOR": "1",
                    "POLARS_MAX_THREADS": "1",
                },
                cwd=self.lane.directory,
                start_new_session=True,
                bufsize=0,
            )


@contextmanager
def lane_of(family: str, lane: Lane) -> Iterator[Attack]:
    child = InChild(family, lane)
    try:
        yield child
    finally:
        child.end()
