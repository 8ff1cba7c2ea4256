"""Actions as entries of the journal."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from iolab.machine.action.base import Action, CannotUndo
from iolab.machine.action.cgroup import DisableController, RemoveCgroup
from iolab.machine.action.device import DetachLoop, EraseFilesystem, SwapOff
from iolab.machine.action.file import RemoveFile, RemoveTree, TruncateFile
from iolab.machine.action.mount import Unmount
from iolab.machine.action.setting import WriteFile
from iolab.machine.action.tracing import RemoveTraceInstance

KINDS: dict[str, type[Action]] = {
    kind.__name__: kind
    for kind in (
        EraseFilesystem,
        WriteFile,
        Unmount,
        DetachLoop,
        TruncateFile,
        RemoveFile,
        RemoveTree,
        RemoveCgroup,
        DisableController,
        SwapOff,
        RemoveTraceInstance,
    )
}


def to_json(action: Action) -> dict[str, Any]:
    return {"action": type(action).__name__, **asdict(action)}


def from_json(entry: dict[str, Any]) -> Action:
    """Raises CannotUndo for an entry that this version does not know."""
    fields = dict(entry)
    kind = KINDS.get(fields.pop("action", ""))
    try:
        if kind is not None:
            return kind(**fields)
    except TypeError:
        pass
    raise CannotUndo(f"unknown undo entry: {json.dumps(entry)}")
