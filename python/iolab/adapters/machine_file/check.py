"""Whether the model can be such a machine, asked before anything runs, and what is wrong with one that it cannot be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from iolab import _native

if TYPE_CHECKING:
    from iolab.domain.trial import Phase

Table = dict[str, Any]
"""A machine's file, whole or in part."""


class InvalidMachine(Exception):
    """`key` is the dotted path in the machine's file, such as `drives.0.device.zones.3.cylinders`."""

    def __init__(self, key: str, what: str) -> None:
        self.key = key
        self.what = what
        super().__init__(f"{key}: {what}" if key else what)

    @classmethod
    def told_by(cls, error: ValueError) -> InvalidMachine:
        """Of the model's own error, (key, what)."""
        key, what = error.args if len(error.args) == 2 else ("", str(error))
        return cls(str(key), str(what))

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(self.key.split(".")) if self.key else ()

    @property
    def is_of_cell(self) -> bool:
        """Whether it is about where a drive's application runs and its requests are queued and completed."""
        return self.path[:1] == ("drives",) and self.path[2:3] == ("affinity",)


def check(table: Table) -> None:
    """Raises InvalidMachine with the key and the reason."""
    try:
        _native.Model(json.dumps(table))
    except ValueError as error:
        raise InvalidMachine.told_by(error) from None


def with_groups(table: Table, phases: Sequence[Phase]) -> Table:
    """The machine with a control group for each weighted group of the phases."""
    groups = [group for phase in phases for group in phase.weighted_groups]
    if not groups:
        return table
    weights = {group.name: group.weight for group in groups}
    return {**table, "cgroups": [{"name": name, "weight": weight} for name, weight in weights.items()]}


def in_memory(phases: Sequence[Phase], table: Table) -> list[Phase]:
    """The phases with the machine's memory for those that said no limit of their own."""
    memory = table.get("memory")
    return list(phases) if memory is None else [phase.in_memory(memory["bytes"]) for phase in phases]


def is_detailed(machine: Table) -> bool:
    """Whether its CPUs have places, contexts and interrupts of their own (docs/model/processors.md)."""
    cpus = machine.get("cpus")
    return isinstance(cpus, dict) and "topology" in cpus


def cpu_count(machine: Table) -> int:
    """Of a machine that the model has checked."""
    cpus = machine["cpus"]
    return int(prod(cpus["topology"].values()) if is_detailed(machine) else cpus["count"])
