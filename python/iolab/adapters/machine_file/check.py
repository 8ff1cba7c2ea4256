"""Whether the model can be such a machine: its own word, asked before anything runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab import _native
from iolab.adapters.machine_file.impossible import Impossible
from iolab.adapters.machine_file.machine_file import Table

if TYPE_CHECKING:
    from iolab.domain.trial import Phase


def check(table: Table) -> None:
    """Raises Impossible with the key and the reason."""
    try:
        _native.Model(json.dumps(table))
    except ValueError as error:
        raise Impossible.told_by(error) from None


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
