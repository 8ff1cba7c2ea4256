"""A machine's [cpus] table: the simple one, whose CPUs are all alike, or the detailed one, told by its `topology`."""

from __future__ import annotations

from math import prod
from typing import Any

Table = dict[str, Any]


def is_detailed(machine: Table) -> bool:
    """Whether its CPUs have places, contexts and interrupts of their own (docs/model/processors.md)."""
    cpus = machine.get("cpus")
    return isinstance(cpus, dict) and "topology" in cpus


def cpu_count(machine: Table) -> int:
    """Of a machine that the model has checked."""
    cpus = machine["cpus"]
    return int(prod(cpus["topology"].values()) if is_detailed(machine) else cpus["count"])
