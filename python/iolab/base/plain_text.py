"""Text that came from elsewhere, as it may be shown and handed on: no character of it does anything but stand there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_BREAKING = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029]")
"""Ends of lines of all readers, NUL, and other characters that are not printed; a tab is a space."""

_COMMANDS = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # what terminals obey, in seven bits and in eight
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what turns the direction of writing
    r"\u2028\u2029\ud800-\udfff"  # ends of lines to some; halves of characters, which no stream takes
)
_OBEYED = re.compile(f"[{_COMMANDS}]")
WHOLE_DIGITS_MAX = 15
LINE_MAX = 1000
"""Characters of an error's text, and of its place."""


def whole_number(word: str) -> int | None:
    """Up to 15 digits as a number; None for anything else. Python refuses to read thousands, with an exception."""
    return int(word) if len(word) <= WHOLE_DIGITS_MAX and word.isascii() and word.isdigit() else None


def is_one_line(text: str) -> bool:
    """Whether a text is a line of its own wherever it is written: no end of a line, no NUL, no control character."""
    return _BREAKING.search(text) is None


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 run`, `2 runs`, `1,200 runs`; `plural`: if it is more than the noun with an s, as of `run is`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def listed(names: Sequence[str], most: int | None = None) -> str:
    """`a, b and c`; `most`: of more names the first ones, and how many are left: `a, b and 3 more`."""
    if most is not None and len(names) > most:
        names = [*names[:most], f"{len(names) - most:,} more"]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def visible(text: str) -> str:
    r"""With what a terminal would obey written out: ESC as `\x1b`. Ends of lines and tabs stay."""
    return _OBEYED.sub(_written_out, text)


def escaped_for_json(document: str) -> str:
    r"""A JSON document with the same written as JSON has it: ESC as `\u001b`."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def one_line(text: str, most: int = LINE_MAX) -> str:
    """`visible`, on one line, and `clipped`."""
    if len(text) > 2 * most:  # looked at only if it will be shown
        text = f"{text[: most * 3 // 4]}\n...\n{text[-most // 4 :]}"
    return clipped(visible(" ".join(text.split())), most)


def clipped(text: str, most: int = LINE_MAX) -> str:
    """The text; its beginning and end if it has more than `most` characters."""
    return text if len(text) <= most else f"{text[: most * 3 // 4]} ... {text[len(text) - most // 4 :]}"


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def markdown_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table; bars in cells are escaped."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def no_formula(cell: str) -> str:
    """A text that a spreadsheet would take for a formula gets an apostrophe, with which it takes it as it is."""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


_FORMULA = re.compile(r"\s*[=+\-@]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
