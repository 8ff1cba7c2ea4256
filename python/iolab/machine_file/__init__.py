"""Modelled machines as files describe them (docs/machines.md): found, read with their devices, changed by settings."""

from __future__ import annotations

from iolab.machine_file.change import Change, Changed, ImpossibleChange, changed
from iolab.machine_file.check import check, with_groups
from iolab.machine_file.impossible import Impossible
from iolab.machine_file.machine_file import MachineFile, as_filed, read
from iolab.machine_file.mechanism import PROBES, Refusal, refused
from iolab.machine_file.shelf import PREFIX, is_model, names

__all__ = [
    "PREFIX",
    "PROBES",
    "Change",
    "Changed",
    "Impossible",
    "ImpossibleChange",
    "MachineFile",
    "Refusal",
    "as_filed",
    "changed",
    "check",
    "is_model",
    "names",
    "read",
    "refused",
    "with_groups",
]
