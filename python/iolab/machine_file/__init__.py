"""Modelled machines as files describe them (docs/machines.md): found, read with their devices, changed by settings."""

from __future__ import annotations

from iolab.machine_file.change import Change, Changed, ImpossibleChange, changed
from iolab.machine_file.check import check, in_memory, with_groups
from iolab.machine_file.impossible import Impossible
from iolab.machine_file.machine_file import MachineFile, as_filed, read
from iolab.machine_file.mechanism import Refusal, probe_refused, refused
from iolab.machine_file.processors import cpu_count, is_detailed
from iolab.machine_file.shelf import PREFIX, is_model, names

__all__ = [
    "PREFIX",
    "Change",
    "Changed",
    "Impossible",
    "ImpossibleChange",
    "MachineFile",
    "Refusal",
    "as_filed",
    "changed",
    "check",
    "cpu_count",
    "in_memory",
    "is_detailed",
    "is_model",
    "names",
    "probe_refused",
    "read",
    "refused",
    "with_groups",
]
