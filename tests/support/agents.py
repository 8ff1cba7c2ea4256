"""What a guest's agent would say, without one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iolab.adapters.guest.steps import Plan
from iolab.domain.phase_record import PhaseRecord

UP: dict[str, Any] = {"up": "6.1.0-tiny"}
END: dict[str, Any] = {"end": True}


def answers(plan: Plan, records: Sequence[PhaseRecord]) -> list[dict[str, Any]]:
    """Of a guest in which all went well; its phases come to `records`."""
    left = iter(records)
    found = [UP]
    for number, step in enumerate(plan.steps):
        told: Any = {"before": "0", "after": str(step["value"])} if step["do"] == "write" else None
        if number in plan.phases:
            told = {"record": next(left), "ops": 1000}
        found += [{"bytes": 0}] if step["do"] == "symbols" else []
        found.append({"step": number, "told": told})
    return [*found, END]


def lines(messages: Sequence[Any]) -> bytes:
    """As they come."""
    return "".join(f"{json.dumps(message)}\n" for message in messages).encode()


def emulator(path: Path, commands: str) -> Path:
    """A program in QEMU's place: its standard output is what the agent says."""
    path.write_text(f"#!/bin/sh\n{commands}\n")
    path.chmod(0o755)
    return path


def emulator_that_says(path: Path, said: bytes) -> Path:
    """The same, of an agent that says so much and no more, where it is asked to: on standard output or in a file."""
    text = path.with_name(f"{path.name}.said")
    text.write_bytes(said)
    where = 'for word; do case "$word" in file,id=agent,path=*) exec > "${word##*=}";; esac; done'
    return emulator(path, f"{where}\nexec cat {shlex.quote(str(text))}")
