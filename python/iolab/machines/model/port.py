"""Simulated machines as a `Port`: see iolab.domain.machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from iolab.base.strict_json import JsonObject
from iolab.domain.machine import Model, Settings
from iolab.domain.trial import Target
from iolab.machines.model import describe as description
from iolab.machines.system import recovery


def describe(machine: Model, target: Target) -> JsonObject:
    """The machine as filed."""
    return description.describe(machine.name, machine.as_filed, list(machine.files))


def preflight(target: Target, settings: Settings, probes: Iterable[str], report_line: Callable[[str], None]) -> None:
    """Nothing of this machine is needed."""
    recovery.put_back(report_line, needed=False)


def announcement(machine: Model, seed: int) -> str | None:
    """All that it takes to have the same numbers again."""
    return f"simulating {machine.name} with seed {seed}"
