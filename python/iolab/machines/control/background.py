"""A command that runs beside the load: a noisy neighbour, a backup, a monitor.

It starts before the trial's first phase, before any limit or priority of the load, and is killed with all that it
started before anything is restored. It is the first process of a PID namespace that dies with the trial's process, so
that a kill -9 of iolab ends it too, and it has nothing to be journaled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from iolab.base.plain_text import clipped, is_one_line
from iolab.machines.control.control import Applied, Context, Control
from iolab.machines.system import shell

SAID_MAX = 200
"""Characters of its last line that a note quotes."""


class Background(Control):
    """A shell command, as text."""

    def validate(self, value: Any) -> str:
        """The command without spaces around it. InputError for what is no text on one line."""
        if not isinstance(value, str) or not value.strip() or not is_one_line(value):
            raise self.expected(value)
        return value.strip()

    def apply(self, context: Context, value: str) -> Applied:
        """Starts it; it is killed before the journal is undone. MachineError without root or unshare."""
        directory = context.path if context.path.is_dir() else Path("/")
        environment = {"TARGET": str(context.path)}
        if context.device is not None:
            environment["DEVICE"] = f"/dev/{context.device.name}"
        beside = shell.Beside.start(value, directory=directory, environment=environment)
        context.before_undo.callback(_end, beside, context.notes)
        return Applied(None, value)


def _end(beside: shell.Beside, notes: list[str]) -> None:
    """Kills it; reports it if it had ended already, since the rest of the trial then ran without it."""
    ended = beside.end()
    if ended is None:
        return
    status = ended.exit_status
    how = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
    lines = [line.strip() for line in ended.output.splitlines() if line.strip()]
    said = f": {clipped(lines[-1], SAID_MAX)}" if lines else ""
    notes.append(f"background: the command {how} before the trial was over{said}")


CONTROLS: tuple[Control, ...] = (
    Background(
        "background",
        "A shell command that runs beside the load, from before the first phase to the trial's end, when it is killed "
        "with all that it started; needs root. It finds TARGET and DEVICE, and starts in the target's directory.",
        values="a shell command on one line",
        example='"while :; do dd if=/dev/zero of=other bs=1M count=64 conv=fsync; done"',
    ),
)
