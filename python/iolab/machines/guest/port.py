"""Guests as a `Port`: see iolab.domain.machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from iolab.base.strict_json import JsonObject
from iolab.domain.machine import Guest, Settings
from iolab.domain.trial import Target
from iolab.machines.guest import describe as description
from iolab.machines.system import recovery


def describe(machine: Guest, target: Target) -> JsonObject:
    """Its kernels and emulator."""
    return description.describe(machine.name, machine.under)


def preflight(target: Target, settings: Settings, probes: Iterable[str], report_line: Callable[[str], None]) -> None:
    """Nothing of this machine is needed."""
    recovery.put_back(report_line, needed=False)


def announcement(machine: Guest, seed: int) -> str | None:
    """Nothing."""
    return None
