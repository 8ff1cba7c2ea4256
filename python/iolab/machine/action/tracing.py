"""Tracing."""

from __future__ import annotations

from dataclasses import dataclass

from iolab.machine import tracefs
from iolab.machine.action.base import Action, CannotUndo, Outcome


@dataclass(frozen=True)
class RemoveTraceInstance(Action):
    """A tracing instance was made, under a name that is nobody else's. Idempotent by that name."""

    name: str

    def undo(self) -> Outcome | None:
        for instance in tracefs.instances(self.name):
            try:
                if tracefs.remove(instance):
                    return Outcome(f"removed the tracing instance {instance}")
            except OSError as error:
                raise CannotUndo(f"cannot remove the tracing instance {instance}: {error.strerror}") from error
        return None
