"""Machines and devices that are like others: a table with `like = "NAME"` has all keys of that name's file, but for
those that it gives itself."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from iolab.base.errors import InputError
from iolab.base.toml import Document, KeyPath, TomlTable

LIKE = "like"


def completed(document: Document, named: Callable[[str], Document]) -> Document:
    """The document with what its tables take over; a key that is taken over stands on the line of `like`.

    Args:
        named: the completed file of that name.

    Raises:
        InputError: there is no file of that name.
    """
    lines = dict(document.lines)

    def whole(table: TomlTable, path: KeyPath) -> TomlTable:
        own = {key: whole(value, (*path, key)) if isinstance(value, dict) else value for key, value in table.items()}
        if LIKE not in own:
            return own
        line = document.line((*path, LIKE))
        other = _named(own.pop(LIKE), named, f"{document.name}:{line}")
        for key in other.lines:
            lines.setdefault((*path, *key), line)
        taken = deepcopy(other.values)
        if path:
            taken.pop("kind", None)  # A part of a device says by its place what it is.
        return merged(taken, own)

    return replace(document, values=whole(document.values, ()), lines=lines)


def merged(taken: TomlTable, own: TomlTable) -> TomlTable:
    """Tables key by key; any other value is the own one."""
    for key, value in own.items():
        inner = taken.get(key)
        taken[key] = merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return taken


def _named(name: Any, named: Callable[[str], Document], where: str) -> Document:
    if not isinstance(name, str):
        raise InputError(f"{LIKE}: expected a name", where=where)
    try:
        return named(name)
    except InputError as error:
        if error.where is not None:
            raise
        raise InputError(f"{LIKE}: {error.what}", where=where) from None
