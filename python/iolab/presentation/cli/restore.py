"""`iolab restore`: put back what an iolab that was killed could not."""

from __future__ import annotations

import sys

import typer

from iolab.base.errors import EXIT_MACHINE, MachineError
from iolab.base.plain_text import counted
from iolab.presentation.cli.options import Json, Patience, seconds
from iolab.presentation.cli.output import print_json, print_lines


def restore(patience: Patience = None, json: Json = False) -> None:
    """Restore tunables, mounts and scratch devices that a killed iolab left behind.

    Every change is journaled before it is made. Changes of an iolab that still runs are left alone; iolab waits for the
    end of a killed one. `iolab run` does the same before it starts. iolab gives up what does not answer after
    --patience (a minute by default), and restores the rest. The exit status is 3 until everything is restored.
    """
    from iolab.machines.system import bounded_call
    from iolab.machines.system.undo import restore_dead

    bounded_call.set_patience(seconds(patience) or bounded_call.PATIENCE_S)
    restored = restore_dead(_print_wait, dying_patience_s=bounded_call.patience_s())
    if json:
        print_json({"restored": restored.done, "problems": restored.problems})
    elif restored.lines:
        print_lines(restored.lines)
    elif restored.living:
        print(f"Nothing to restore; {', '.join(restored.living)} will put back what it changed itself.")
    else:
        print("Nothing to restore.")
    if restored.problems and json:
        raise typer.Exit(EXIT_MACHINE)
    if restored.problems:
        count = len(restored.problems)
        raise MachineError(
            f"{counted(count, 'thing is', 'things are')} not put back and kept for the next time",
            remedy="the lines above state what each needs",
        )


def _print_wait(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
