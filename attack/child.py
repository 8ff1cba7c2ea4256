"""The child's half of `in_child`: a case number in, a list of what is wrong out, a line each.

    child.py FAMILY SEED DIRECTORY

The commands run in this process (`iolab.presentation.cli.invoke`). A case that takes more processor time than its
limit, or more memory, is wrong; so is one that ends in anything but an exit status and clear lines.
"""

import importlib
import io
import json
import os
import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from ground import control_characters
from iolab.presentation.cli import invoke as cli
from support.command_line import Outcome

PROCESSOR_S = 6.0
"""For a case: an input of a quarter of a megabyte at most."""
WALL_S = 60.0
MEMORY_BYTES = 2 << 30
"""Beyond what the process has when all is loaded."""
ERROR_LINE_MAX = 1200
SAID = (0, 1, 2, 3)


class TooLong(BaseException):
    """Past every `except Exception`."""


def call(*arguments: str, statuses: Sequence[int] = SAID) -> tuple[Outcome, list[str]]:
    """A command line's outcome, and what is wrong with the way it told it."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with redirect_stdout(stdout), redirect_stderr(stderr):
        try:
            status = cli.invoke(arguments)
        except TooLong as error:
            return Outcome(124, "", ""), [f"{' '.join(arguments)}: {error}"]
    outcome = Outcome(status, stdout.getvalue(), stderr.getvalue())
    return outcome, [f"{' '.join(arguments)}: {line}" for line in _ill_told(outcome, statuses)]


def _ill_told(outcome: Outcome, statuses: Sequence[int]) -> list[str]:
    wrong = []
    lines = outcome.stderr.splitlines()
    if outcome.status not in statuses:
        wrong.append(f"exit status {outcome.status}: {outcome.stderr[-400:]!r}")
    if "Traceback" in outcome.stderr:
        wrong.append(f"a traceback: {outcome.stderr[-400:]!r}")
    if outcome.status in (2, 3) and not any(line.startswith("iolab: ") for line in lines):
        wrong.append(f"exit status {outcome.status} without a line that says why")
    if long := [line for line in lines if len(line) > ERROR_LINE_MAX]:
        wrong.append(f"a message of {len(long[0])} characters: {long[0][:120]!r}")
    if found := control_characters(outcome.text):
        wrong.append(f"control characters reach the terminal: {found!r}")
    return wrong


def main() -> int:
    family, seed, directory = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    (directory / "state").mkdir(mode=0o700, exist_ok=True)
    attack = importlib.import_module(family).Cases(seed, directory)
    limit_memory()
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, stop)
    for line in sys.stdin:
        try:
            signal.setitimer(signal.ITIMER_PROF, PROCESSOR_S)
            signal.setitimer(signal.ITIMER_REAL, WALL_S)
            wrong = attack(int(line))
        except TooLong as error:
            wrong = [str(error)]
        except MemoryError:
            wrong = [f"more than {MEMORY_BYTES >> 20} MiB of memory"]
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(wrong), file=answers, flush=True)
    return 0


def limit_memory() -> None:
    now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY_BYTES, now + MEMORY_BYTES))


def stop(number: int, frame: FrameType | None) -> None:
    limit = f"{PROCESSOR_S:g} s of processor time" if number == signal.SIGPROF else f"{WALL_S:g} s"
    place = f" in {Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame else ""
    raise TooLong(f"more than {limit}{place}")


if __name__ == "__main__":
    # Its modules are asked for by that name, too.
    sys.modules["child"] = sys.modules["__main__"]
    sys.exit(main())
