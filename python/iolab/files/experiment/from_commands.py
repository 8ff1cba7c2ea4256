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
DIFFERENCE_LETTERS = 24
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
    """The commands, if they are short enough for a table; else how each begins and what it has that not all have, in
    whole words where there is room for one; else their numbers and beginnings."""
    words = [command.split(" ") for command in commands]
    shared = set.intersection(*map(set, words)) if len(commands) > 1 else set()
    ends = [" ".join(word for word in one[1:] if word not in shared) for one in words]
    parted = [
        f"{_cut(command, BEGINNING_LETTERS)} ... {_cut(end, DIFFERENCE_LETTERS)}" if end else _cut(command)
        for command, end in zip(commands, ends, strict=True)
    ]
    begun = [_cut(command) for command in commands]
    are_whole = begun == list(commands) or len(commands) == 1
    numbered = [f"{number}: {one}" for number, one in enumerate(begun, 1)]
    return next(names for names in ([begun] if are_whole else [parted, numbered]) if len(set(names)) == len(commands))


def _cut(text: str, most: int = NAME_LETTERS_MAX) -> str:
    """Its beginning, up to the end of a word if one ends in its second half."""
    if len(text) <= most:
        return text
    end = text.rfind(" ", 0, most + 1)
    return text[: end if end > most // 2 else most].rstrip()
