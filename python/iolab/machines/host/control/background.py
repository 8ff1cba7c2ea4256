"""Runs a command beside the load.

It starts before the trial's first phase, before any limit or priority of the load, and is killed with all that it
started before anything is restored. It is the first process of a PID namespace that dies with the trial's process, so
that a kill -9 of iolab ends it too, and it has nothing to be journaled.
"""

from __future__ import annotations

from pathlib import Path

from iolab.base.plain_text import clipped
from iolab.machines.host.control.applier import AppliedValue, Applier, Context
from iolab.machines.system import shell

SAID_MAX = 200
"""Characters of its last line that a note quotes."""


class Background(Applier):
    """Starts the shell command, and kills it."""

    def apply(self, context: Context, value: str) -> AppliedValue:
        """Starts it; it is killed before the journal is undone. MachineError without root or unshare."""
        directory = context.path if context.path.is_dir() else Path("/")
        environment = {"TARGET": str(context.path)}
        if context.device is not None:
            environment["DEVICE"] = f"/dev/{context.device.name}"
        beside = shell.BackgroundCommand.start(value, directory=directory, environment=environment)
        context.before_undo.callback(_end, beside, context.notes)
        return AppliedValue(None, value)


def _end(beside: shell.BackgroundCommand, notes: list[str]) -> None:
    """Kills it; reports it if it had ended already, since the rest of the trial then ran without it."""
    ended = beside.end()
    if ended is None:
        return
    status = ended.exit_status
    how = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
    lines = [line.strip() for line in ended.output.splitlines() if line.strip()]
    last_line = f": {clipped(lines[-1], SAID_MAX)}" if lines else ""
    notes.append(f"background: the command {how} before the trial was over{last_line}")


APPLIERS: tuple[Applier, ...] = (Background("background"),)
