"""Simulated machines as files describe them (docs/reference/machines.md): found, read with their devices, changed by
settings."""

from __future__ import annotations

from iolab.files.machine_file.catalogue import devices, names
from iolab.files.machine_file.change import Change, ChangedMachine, InvalidChange, changed
from iolab.files.machine_file.machine_file import MachineFile, as_filed, device_at, read
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
    "ChangedMachine",
    "InvalidChange",
    "MachineFile",
    "Refusal",
    "as_filed",
    "as_read",
    "caches_files",
    "changed",
    "device_at",
    "devices",
    "holes",
    "names",
    "probe_refused",
    "read",
    "refused",
    "unread",
    "used",
]
