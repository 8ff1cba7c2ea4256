"""An experiment of shell commands: each a setting, timed in one directory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from iolab.base.errors import InputError
from iolab.base.toml import write

ROUNDS = 10
NAME_LETTERS_MAX = 40
BEGINNING_LETTERS = 14
DIFFERENCE_LETTERS = 22
NOT_IN_A_NAME = re.compile(r"[\[\]]|[^ -~]")


def text_of(commands: Sequence[str], prepare: str | None, directory: Path) -> str:
    """The experiment's text. InputError if two commands are the same."""
    if len(set(commands)) < len(commands):
        raise InputError("the same command twice", where="--command", remedy="leave one out: rounds repeat each")
    names = _names([NOT_IN_A_NAME.sub("_", " ".join(command.split())) for command in commands])
    workload = {"kind": "command", "command": commands[0], "directory": str(directory)}
    return write(
        {
            "title": " | ".join(command[:NAME_LETTERS_MAX].strip() for command in commands)
            if len(names) < 3
            else f"{len(names)} commands",
            "rounds": ROUNDS,
            "target": {"kind": "directory", "path": str(directory)},
            "workloads": {"command": workload | ({} if prepare is None else {"prepare": prepare})},
            "settings": {
                name: {"workload": {"command": command}} for name, command in zip(names, commands, strict=True)
            },
        }
    )


def _names(commands: Sequence[str]) -> list[str]:
    """The commands, short enough for a table: their beginnings, or if these are the same, what differs behind one."""
    begun = [command[:NAME_LETTERS_MAX].strip() for command in commands]
    words = [command.split(" ") for command in commands]
    same = next((place for place, alike in enumerate(zip(*words, strict=False)) if len(set(alike)) > 1), 0)
    ends = [" ".join(one[same:])[:DIFFERENCE_LETTERS] for one in words]
    parted = [f"{command[:BEGINNING_LETTERS].strip()} ... {end}" for command, end in zip(commands, ends, strict=True)]
    numbered = [f"command {number}" for number in range(1, len(commands) + 1)]
    return next(names for names in (begun, parted, numbered) if len(set(names)) == len(commands))
