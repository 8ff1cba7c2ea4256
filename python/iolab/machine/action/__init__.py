"""What iolab may have to take back, each with what it needs to know and how it is undone.

Undoing is idempotent: an action whose change never happened, or is undone already, has nothing to do.
"""

from __future__ import annotations

from iolab.machine.action.base import Action, CannotUndo, Outcome
from iolab.machine.action.cgroup import DisableController, RemoveCgroup
from iolab.machine.action.device import DetachLoop, EraseFilesystem, SwapOff
from iolab.machine.action.entry import from_json, to_json
from iolab.machine.action.file import MARKER, RemoveFile, RemoveTree, TruncateFile
from iolab.machine.action.mount import Unmount
from iolab.machine.action.setting import WriteFile
from iolab.machine.action.tracing import RemoveTraceInstance

__all__ = [
    "MARKER",
    "Action",
    "CannotUndo",
    "DetachLoop",
    "DisableController",
    "EraseFilesystem",
    "Outcome",
    "RemoveCgroup",
    "RemoveFile",
    "RemoveTraceInstance",
    "RemoveTree",
    "SwapOff",
    "TruncateFile",
    "Unmount",
    "WriteFile",
    "from_json",
    "to_json",
]
