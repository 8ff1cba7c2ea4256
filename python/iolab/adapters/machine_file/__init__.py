"""Modelled machines as files describe them (docs/reference/machines.md): found, read with their devices, changed by
settings."""

from __future__ import annotations

from iolab.adapters.machine_file.change import Change, Changed, ImpossibleChange, changed
from iolab.adapters.machine_file.check import check, in_memory, with_groups
from iolab.adapters.machine_file.impossible import Impossible
from iolab.adapters.machine_file.machine_file import MachineFile, as_filed, read
from iolab.adapters.machine_file.mechanism import Refusal, probe_refused, refused
from iolab.adapters.machine_file.processors import cpu_count, is_detailed
from iolab.adapters.machine_file.shelf import PREFIX, is_model, names

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
