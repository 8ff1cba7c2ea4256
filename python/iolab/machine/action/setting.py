"""Kernel settings."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path

from iolab.machine import block
from iolab.machine.action.base import Action, CannotUndo, Outcome

GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO)
"""What a setting's file says when the device, or the scheduler with this tunable, is no longer there."""


@dataclass(frozen=True)
class WriteFile(Action):
    """A kernel setting was written."""

    path: str
    previous: str

    def undo(self) -> Outcome | None:
        path = Path(self.path)
        try:
            if block.shown(path) == self.previous:
                return None
            path.write_text(self.previous)
        except OSError as error:
            if error.errno in GONE:
                return None
            why = f"cannot set {path} back to {self.previous}: {error.strerror}"
            raise CannotUndo(why, for_good=error.errno == errno.EINVAL) from error
        return Outcome(f"set {path} back to {self.previous}")
