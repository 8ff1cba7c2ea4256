"""Simulated machines as files describe them (docs/reference/machines.md): found, read with their devices, changed by
settings."""

from __future__ import annotations

from iolab.files.machine_file.catalogue import names
from iolab.files.machine_file.change import Change, Changed, InvalidChange, changed
from iolab.files.machine_file.check import (
    InvalidMachine,
    check,
    cpu_count,
    is_detailed,
    scheduler_of,
    with_groups,
)
from iolab.files.machine_file.machine_file import MachineFile, as_filed, read
from iolab.files.machine_file.mechanism import (
    Refusal,
    as_read,
    caches_files,
    holes,
    probe_refused,
    refused,
    unread,
    used,
)

__all__ = [
    "Change",
    "Changed",
    "InvalidChange",
    "InvalidMachine",
    "MachineFile",
    "Refusal",
    "as_filed",
    "as_read",
    "caches_files",
    "changed",
    "check",
    "cpu_count",
    "holes",
    "is_detailed",
    "names",
    "probe_refused",
    "read",
    "refused",
    "scheduler_of",
    "unread",
    "used",
    "with_groups",
]
