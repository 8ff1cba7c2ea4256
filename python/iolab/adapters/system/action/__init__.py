"""What iolab may have to take back, each with what it needs to know and how it is undone.

Undoing is idempotent: an action whose change never happened, or is undone already, has nothing to do.
"""

from __future__ import annotations

from iolab.adapters.system.action.base import Action, CannotUndo, Outcome
from iolab.adapters.system.action.cgroup import DisableController, RemoveCgroup
from iolab.adapters.system.action.device import DetachLoop, EraseFilesystem, EraseSwap, SwapOff
from iolab.adapters.system.action.entry import from_json, to_json
from iolab.adapters.system.action.file import MARKER, RemoveFile, RemoveTree, TruncateFile
from iolab.adapters.system.action.mount import Unmount
from iolab.adapters.system.action.setting import WriteFile, WriteLine, WriteOneOfTwo
from iolab.adapters.system.action.tracing import RemoveTraceInstance

__all__ = [
    "MARKER",
    "Action",
    "CannotUndo",
    "DetachLoop",
    "DisableController",
    "EraseFilesystem",
    "EraseSwap",
    "Outcome",
    "RemoveCgroup",
    "RemoveFile",
    "RemoveTraceInstance",
    "RemoveTree",
    "SwapOff",
    "TruncateFile",
    "Unmount",
    "WriteFile",
    "WriteLine",
    "WriteOneOfTwo",
    "from_json",
    "to_json",
]
