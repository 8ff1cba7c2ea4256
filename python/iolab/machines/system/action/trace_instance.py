"""Tracing."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from iolab.machines.system import tracefs
from iolab.machines.system.action.base import Action, CannotUndo, Outcome
from iolab.machines.system.action.path import TRACE_INSTANCE


@dataclass(frozen=True)
class RemoveTraceInstance(Action):
    """A tracing instance was made, under a name that is nobody else's. Idempotent by that name."""

    name: str

    @property
    @override
    def to_do(self) -> str:
        return f"remove the tracing instance {self.name}"

    @property
    @override
    def is_iolabs_own(self) -> bool:
        return TRACE_INSTANCE.fullmatch(self.name) is not None

    @override
    def undo(self) -> Outcome | None:
        if tracefs.root() is None and tracefs.is_in_kernel():
            raise CannotUndo(
                f"cannot determine whether the tracing instance {self.name} is still there, as tracefs is not mounted "
                f"here: sudo mount -t tracefs nodev {tracefs.ROOTS[0]}; then: iolab restore"
            )
        for instance in tracefs.instances(self.name):
            try:
                if tracefs.remove(instance):
                    return Outcome(f"removed the tracing instance {instance}")
            except OSError as error:
                raise CannotUndo(f"cannot remove the tracing instance {instance}: {error.strerror}") from error
        return None
