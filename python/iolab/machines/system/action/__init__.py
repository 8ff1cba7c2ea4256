"""What iolab may have to take back, each with what it needs to know and how it is undone.

Undoing is idempotent: an action whose change never happened, or is undone already, has nothing to do.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from pydantic import TypeAdapter, ValidationError

from iolab.base.strict_json import JsonObject
from iolab.machines.system.action.base import Action, CannotUndo, Outcome
from iolab.machines.system.action.cgroup import DisableController, LeaveCgroup, RemoveCgroup
from iolab.machines.system.action.device import (
    DetachLoop,
    EraseFilesystem,
    EraseSwap,
    RemoveMapping,
    StopArray,
    SwapOff,
)
from iolab.machines.system.action.file import MARKER, RemoveFile, RemoveTree, TruncateFile
from iolab.machines.system.action.kernel_setting import WriteFile, WriteLine, WriteOneOfTwo
from iolab.machines.system.action.mount import Unmount
from iolab.machines.system.action.trace_instance import RemoveTraceInstance

__all__ = [
    "MARKER",
    "Action",
    "CannotUndo",
    "DetachLoop",
    "DisableController",
    "EraseFilesystem",
    "EraseSwap",
    "LeaveCgroup",
    "Outcome",
    "RemoveCgroup",
    "RemoveFile",
    "RemoveMapping",
    "RemoveTraceInstance",
    "RemoveTree",
    "StopArray",
    "SwapOff",
    "TruncateFile",
    "Unmount",
    "WriteFile",
    "WriteLine",
    "WriteOneOfTwo",
    "from_json",
    "to_json",
]


KINDS: dict[str, type[Action]] = {
    kind.__name__: kind
    for kind in (
        EraseFilesystem,
        EraseSwap,
        WriteFile,
        WriteLine,
        WriteOneOfTwo,
        Unmount,
        DetachLoop,
        RemoveMapping,
        StopArray,
        TruncateFile,
        RemoveFile,
        RemoveTree,
        RemoveCgroup,
        LeaveCgroup,
        DisableController,
        SwapOff,
        RemoveTraceInstance,
    )
}


def to_json(action: Action) -> JsonObject:
    """The action as an entry of the journal: its class's name under `action`, and its fields."""
    return {"action": type(action).__name__, **asdict(action)}


def from_json(entry: JsonObject) -> Action:
    """Raises CannotUndo for an entry that this version does not know, has other fields, or is none that iolab makes."""
    fields = dict(entry)
    name = fields.pop("action", None)
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise CannotUndo(f"unknown undo entry: {json.dumps(entry)}")
    try:
        change = TypeAdapter(kind).validate_json(json.dumps(fields))
    except ValidationError as wrong:
        what = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in wrong.errors())
        raise CannotUndo(f"no undo entry as iolab makes them ({what}): {json.dumps(entry)}") from wrong
    if not change.is_iolabs_own:
        raise CannotUndo(f"iolab itself never changes this: {json.dumps(entry)}")
    return change
