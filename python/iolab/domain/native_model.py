"""The simulated machine itself: the part of the extension that one built for hosts alone leaves out (cargo's feature
`model` of crates/bindings)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from iolab import _native
from iolab.base.errors import MachineError

if TYPE_CHECKING:
    from iolab.domain import native_types as native

_MISSING = "simulated machines are not in this build of iolab: its extension was compiled without the feature `model`"
_REMEDY = "compile it with cargo's default features, as `make` does, or install iolab's wheel"


def required() -> None:
    """Raises MachineError if this build simulates nothing."""
    if not hasattr(_native, "Model"):
        raise MachineError(_MISSING, remedy=_REMEDY)


def switched_on(machine: native.MachineFile) -> _native.Model:
    """Raises ValueError(key, what) for a machine that can't be."""
    required()
    return _native.Model(json.dumps(machine))


def drive_sizes(machine: native.MachineFile) -> list[int]:
    """In bytes."""
    required()
    return _native.drive_sizes(json.dumps(machine))


def check_load(machine: native.MachineFile, load: native.Phase) -> None:
    """Raises ValueError(key of the load, what) if the machine has no mechanism for something that the load asks."""
    required()
    _native.check_simulated_load(json.dumps(machine), json.dumps(load))


def unread_keys(
    machine: native.MachineFile | Mapping[str, object], phases: Sequence[Mapping[str, object]], keys: Sequence[str]
) -> dict[str, str | None]:
    """The `keys` (dotted paths) that nothing reads while any of the phases runs, each with the condition under which it
    would be read; None: never."""
    required()
    return dict(_native.unread_keys(json.dumps(machine), json.dumps(phases), list(keys)))
