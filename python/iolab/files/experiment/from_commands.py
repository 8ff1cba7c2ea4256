"""An experiment of shell commands: each a setting, timed in one directory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from iolab.base.errors import InputError
from iolab.base.toml import write

ROUNDS = 10
NAME_LETTERS_MAX = 40
NOT_IN_A_NAME = re.compile(r"[\[\]]|[^ -~]")


def text_of(commands: Sequence[str], prepare: str | None, directory: Path) -> str:
    """The experiment's text. InputError if two commands are the same."""
    if len(set(commands)) < len(commands):
        raise InputError("the same command twice", where="--command", remedy="leave one out: rounds repeat each")
    shortened = [NOT_IN_A_NAME.sub("_", " ".join(command.split()))[:NAME_LETTERS_MAX].strip() for command in commands]
    names = shortened if len(set(shortened)) == len(commands) else [f"command {n + 1}" for n in range(len(commands))]
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
