"""What a killed iolab left changed on this machine is put back before another run begins."""

from __future__ import annotations

from collections.abc import Callable

from iolab.base.errors import MachineError
from iolab.machines.system.undo import restore_dead


def put_back(report_line: Callable[[str], None], *, needed: bool) -> None:
    """`needed`: whether the run is of this machine itself; what can't be put back is then a MachineError."""
    try:
        restored = restore_dead()
    except MachineError as error:
        if needed:
            raise
        report_line(str(error))
        return
    for line in restored.done:
        report_line(f"restored, after a run that was killed: {line}")
    for line in restored.problems:
        report_line(f"not restored, after a run that was killed: {line}")
