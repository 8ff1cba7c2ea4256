"""Keys of files that were documented under another name: they work for one more version, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from iolab.base.errors import RenamedKeyWarning

if TYPE_CHECKING:
    from iolab.base.toml import Document, KeyPath

T = TypeVar("T")
Renamed = Mapping[tuple[str, ...], str]
"""The last parts of a key's path, numbers of array elements left out -> what the last one is called now."""
RenamedValues = Mapping[tuple[str, ...], Mapping[str, str]]
"""The last parts of a key's path, by its present name -> its values, old -> new."""


def renewed(document: Document, keys: Renamed, values: RenamedValues | None = None) -> Document:
    """The document under present names; a `RenamedKeyWarning` for each old one that it has. A key that stands under
    both names is left alone, so that the check of the document refuses the old one."""
    lines = dict(document.lines)

    def named(path: KeyPath, name: str, table: Mapping[str, Any]) -> str:
        new = _found(keys, (*path, name))
        if new is None or new in table:
            return name
        _warn(f"{document.name}:{document.line((*path, name))}: {name} is called {new} now")
        for old in [old for old in lines if old[: len(path) + 1] == (*path, name)]:
            lines[(*path, new, *old[len(path) + 1 :])] = lines[old]
        return new

    def walked(value: Any, path: KeyPath) -> Any:
        if isinstance(value, dict):
            present = {}
            for name, inner in value.items():
                key = named(path, name, value)
                present[key] = walked(inner, (*path, key))
            return present
        if isinstance(value, list):
            return [walked(inner, (*path, str(number))) for number, inner in enumerate(value)]
        new = (_found(values or {}, path) or {}).get(value) if isinstance(value, str) else None
        if new is not None:
            _warn(f'{document.name}:{document.line(path)}: {path[-1]}: "{value}" is called "{new}" now')
        return value if new is None else new

    return replace(document, values=walked(document.values, ()), lines=lines)


def renewed_key(key: KeyPath, keys: Renamed, where: str) -> KeyPath:
    """A key by its path under present names; see `renewed`."""
    new = _found(keys, key)
    if new is None:
        return key
    _warn(f"{where}: {'.'.join(key)} is called {'.'.join((*key[:-1], new))} now")
    return (*key[:-1], new)


def renewed_word(word: str, words: Mapping[str, str], where: str) -> str:
    """A word of the command line by its present name."""
    if word in words:
        _warn(f"{where}: {word} is called {words[word]} now")
    return words.get(word, word)


def _found(table: Mapping[KeyPath, T], path: KeyPath) -> T | None:
    plain = tuple(part for part in path if not part.isdecimal())
    return next((new for old, new in table.items() if plain[-len(old) :] == old), None)


def _warn(what: str) -> None:
    warnings.warn(f"{what}; the next version refuses the old name", RenamedKeyWarning, stacklevel=3)
