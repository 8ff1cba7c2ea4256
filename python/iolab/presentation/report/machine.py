"""The machine's description as rows for a reader."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

MAIN_FACTS = (
    "model.name",
    "model.title",
    "kernel.release",
    "kernel.distribution",
    "cpu.model",
    "cpu.count_online",
    "memory.total",
    "virtualization.machine",
    "target.asked_for.kind",
    "target.place",
    "target.filesystem.type",
    "target.device.name",
    "target.device.model",
)
"""What a reader asks first."""


def main_facts(machine: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = dict(all_facts(machine))
    return [(name, rows[name]) for name in MAIN_FACTS if name in rows]


def all_facts(machine: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested tables as rows `cpu.model`; what could not be read, `{"absent": why}`, is left out."""
    for key, item in machine.items():
        name = f"{prefix}{key}"
        if isinstance(item, Mapping):
            if set(item) != {"absent"}:
                yield from all_facts(item, f"{name}.")
        elif isinstance(item, list):
            if item:
                yield name, "; ".join(part if isinstance(part, str) else json.dumps(part) for part in item)
        elif item is not None and item != "":
            yield name, str(item)
