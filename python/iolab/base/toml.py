"""TOML with the line of each key.

Values come from the standard library's parser. It keeps no positions, so a scanner walks the same text again; it may
assume that the text is valid, which keeps it small.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from iolab.base.errors import InputError

NESTED_MAX = 32
DIGITS_MAX = 4300
"""Of a whole number: what Python reads and shows."""
_TOO_LARGE = 10**DIGITS_MAX
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"""(?<![A-Za-z0-9_."'-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{NESTED_MAX}}}""")
"""The standard library's parser takes time and memory by the square of a key's parts."""

TomlTable = dict[str, Any]
"""A table as its author wrote it, its values of any type that TOML has: nothing is known of them before a model of
options, or the machine's own checks, have read them."""

KeyPath = tuple[str, ...]
_Place = tuple[KeyPath, KeyPath]
"""A place's path without and with the numbers of array elements."""


@dataclass(frozen=True)
class Document:
    """A parsed file: its values, and the line on which each key stands."""

    name: str
    text: str
    values: TomlTable
    lines: dict[KeyPath, int]
    """A key inside an array has two paths, with and without the element's number; without it, the first element's."""

    def line(self, path: Sequence[str | int]) -> int:
        """Line of the key at `path`, or of the nearest table around it."""
        keys = tuple(str(part) for part in path)
        return next((self.lines[keys[:n]] for n in range(len(keys), 0, -1) if keys[:n] in self.lines), 1)


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
    lines: dict[KeyPath, int] = {}
    for path, line in _Scanner(text).positions():
        for length in range(1, len(path) + 1):
            lines.setdefault(path[:length], line)
    return Document(name, text, values, lines)


def _nested(name: str) -> InputError:
    return InputError(f"tables and arrays nested more than {NESTED_MAX} deep", where=name)


def _long_number(name: str) -> InputError:
    return InputError(f"a number of more than {DIGITS_MAX} digits", where=name, remedy="write one that is meant")


def _check_within_limits(values: Any, name: str) -> None:
    """A level at a time: whatever the depth, no recursion. In bases other than ten the parser reads any number, which
    nobody could show."""
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


class _Scanner:
    """Yields (path, line) of every table header and key of a valid document, in file order; elements of arrays also by
    number: `drives.0.device`."""

    _SPACE = re.compile(r"[ \t]*")
    _BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
    _BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
    _STRING = re.compile(
        r'"""(?:[^\\]|\\.)*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:[^"\\]|\\.)*"' r"|'[^']*'",
        re.DOTALL,
    )
    _SCALAR = re.compile(r"[^,\]}\n#]+")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line_starts = [0, *(newline.end() for newline in re.finditer("\n", text))]
        self._tables_in: dict[KeyPath, int] = {}
        """By the numbered path of an array of tables: how many there have been."""

    def positions(self) -> Iterator[tuple[KeyPath, int]]:
        table: _Place = ((), ())
        while self._skip(self._BLANK):
            if self._text[self._at] == "[":
                line = self._line()
                table = self._header()
                yield from ((path, line) for path in table)
            else:
                yield from self._pair(table)

    def _header(self) -> _Place:
        opening = self._at
        while self._text[self._at] == "[":
            self._at += 1
        is_element = self._at - opening == 2
        plain = self._key()
        while self._text[self._at : self._at + 1] == "]":
            self._at += 1
        return plain, self._numbered(plain, is_element)

    def _numbered(self, plain: KeyPath, is_element: bool) -> KeyPath:
        """A header's path with the numbers of the arrays of tables that it is inside of, or begins an element of."""
        path: KeyPath = ()
        for key in plain[:-1]:
            path += (key,)
            if path in self._tables_in:
                path += (str(self._tables_in[path] - 1),)
        path += plain[-1:]
        if is_element:
            number = self._tables_in.get(path, 0)
            self._tables_in[path] = number + 1
            path += (str(number),)
        return path

    def _pair(self, table: _Place) -> Iterator[tuple[KeyPath, int]]:
        line = self._line()
        key = self._key()
        place = (table[0] + key, table[1] + key)
        yield from ((path, line) for path in place)
        self._at += 1  # the equals sign
        self._skip(self._SPACE)
        yield from self._value(place)

    def _value(self, place: _Place) -> Iterator[tuple[KeyPath, int]]:
        opening = self._text[self._at]
        if opening in "[{":
            closing = "]" if opening == "[" else "}"
            self._at += 1
            number = 0
            while self._skip(self._BLANK) and self._text[self._at] != closing:
                if self._text[self._at] == ",":
                    self._at += 1
                elif opening == "[":
                    element = (*place[1], str(number))
                    yield element, self._line()
                    yield from self._value((place[0], element))
                    number += 1
                else:
                    yield from self._pair(place)
            self._at += 1
        elif opening in "\"'":
            self._take(self._STRING)
        else:
            self._take(self._SCALAR)

    def _key(self) -> KeyPath:
        """A dotted key, and the space after it."""
        parts = []
        while True:
            self._skip(self._SPACE)
            quoted = self._text[self._at] in "\"'"
            part = self._take(self._STRING if quoted else self._BARE_KEY)
            parts.append(tomllib.loads(f"key = {part}")["key"] if quoted else part)
            self._skip(self._SPACE)
            if self._text[self._at] != ".":
                return tuple(parts)
            self._at += 1

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        assert found, f"scanner and parser disagree at character {self._at}"
        self._at = found.end()
        return found.group()

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        """False at the end of the text."""
        self._take(pattern)
        return self._at < len(self._text)

    def _line(self) -> int:
        return bisect_right(self._line_starts, self._at)
