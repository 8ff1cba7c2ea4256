"""TOML with the line of each key.

Values and syntax errors come from the standard library's parser. It keeps no positions, so the lines come from the
native one (crates/measure/rows/src/toml_lines.rs).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from iolab import _native
from iolab.base.errors import InputError

NESTED_MAX = 32
DIGITS_MAX = 4300
"""The digits of a whole number that Python reads and shows."""
_TOO_LARGE = 10**DIGITS_MAX
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"""(?<![A-Za-z0-9_."'-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{NESTED_MAX}}}""")
"""The standard library's parser takes time and memory by the square of a key's parts."""

TomlTable = dict[str, Any]
"""A table as its author wrote it, its values of any type that TOML has: nothing is known of them before a model of
options, or the machine's own checks, have read them."""

KeyPath = tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """A parsed file: its values, and the line on which each key stands."""

    name: str
    text: str
    values: TomlTable
    lines: dict[KeyPath, int]
    """A key inside an array has two paths, with and without the element's number; without it, the first element's."""

    def line(self, path: Sequence[str | int]) -> int:
        """Line of the key at `path`, or of the nearest table around it. `a.b` is found as one key and as a table's."""
        parts = ".".join(map(str, path)).split(".")
        prefixes = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
        return next((self._dotted[prefix] for prefix in prefixes if prefix in self._dotted), 1)

    @cached_property
    def _dotted(self) -> dict[str, int]:
        return {".".join(key): line for key, line in reversed(self.lines.items())}


def parse(text: str, name: str) -> Document:
    """Parse `text`; `name` is what errors call it. InputError carries the line and column of a syntax error; what no
    experiment has is refused: keys of many parts, deep nesting, numbers of thousands of digits."""
    if long_key := _LONG_KEY.search(text):
        line = text.count("\n", 0, long_key.start()) + 1
        raise InputError(f"a key of more than {NESTED_MAX} parts", where=f"{name}:{line}")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(str(error), text, name) from None
    except RecursionError:
        raise _nested(name) from None
    except ValueError:  # of a whole number, and of nothing else
        raise _long_number(name) from None
    _check_within_limits(values, name)
    return Document(name, text, values, _lines(text, name))


def write(table: Mapping[str, Any]) -> str:
    """A table as a file's text, which `parse` reads back: plain values first, then the tables, each under its name."""
    return "\n".join(_written(table, ())).lstrip("\n") + "\n"


def written(value: Any) -> str:
    """A value as a file has it; a table in a line."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(name)} = {written(one)}" for name, one in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def value_of(word: str) -> Any:
    """What a command line gives behind `KEY=`: a value of TOML that JSON has too, else the word itself."""
    try:
        table = tomllib.loads(f"value = {word}")
        json.dumps(table, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return word
    return table["value"] if len(table) == 1 else word


def _written(table: Mapping[str, Any], path: KeyPath) -> Iterator[str]:
    inner = {name: value for name, value in table.items() if isinstance(value, Mapping)}
    if path and (len(inner) < len(table) or not table):
        yield from ("", f"[{'.'.join(map(_key, path))}]")
    for name, value in table.items():
        if name not in inner:
            yield f"{_key(name)} = {written(value)}"
    for name, value in inner.items():
        yield from _written(value, (*path, name))


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(text: str) -> str:
    """TOML's strings are JSON's, but that it escapes one control character more."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _lines(text: str, name: str) -> dict[KeyPath, int]:
    try:
        nodes = _native.toml_lines(text)
    except ValueError as error:  # the two parsers disagree
        raise InputError(f"not valid TOML: {error}", where=name) from None
    lines: dict[KeyPath, int] = {}
    paths: list[tuple[KeyPath, KeyPath]] = []  # of each node, without and with the numbers of array elements
    for parent, part, line in nodes:
        plain, numbered = ((), ()) if parent is None else paths[parent]
        numbered = (*numbered, str(part))
        if isinstance(part, str):
            plain = (*plain, part)
            lines.setdefault(plain, line)
        lines.setdefault(numbered, line)
        paths.append((plain, numbered))
    return lines


def _nested(name: str) -> InputError:
    return InputError(f"tables and arrays nested more than {NESTED_MAX} deep", where=name)


def _long_number(name: str) -> InputError:
    return InputError(f"a number of more than {DIGITS_MAX} digits", where=name, remedy="write one that is meant")


def _check_within_limits(values: Any, name: str) -> None:
    """A level at a time: whatever the depth, no recursion. In bases other than ten the parser reads any number, which
    could not be shown."""
    level = [values]
    for _ in range(NESTED_MAX + 1):
        inside = [inner for value in level for inner in _inside(value)]
        if any(isinstance(value, int) and abs(value) >= _TOO_LARGE for value in inside):
            raise _long_number(name)
        level = [inner for inner in inside if isinstance(inner, dict | list)]
        if not level:
            return
    raise _nested(name)


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _syntax_error(message: str, text: str, name: str) -> InputError:
    found = re.fullmatch(r"(?s)(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message)
    what, line, column = found.groups() if found else (message, None, None)
    if line is None:
        last = text.rstrip("\n").split("\n")
        line, column = str(len(last)), str(len(last[-1]) + 1)
    return InputError(f"not valid TOML: {what[:1].lower()}{what[1:]}", where=f"{name}:{line}:{column}")
