"""Large files piece by piece: read and counted on all CPUs, in memory that does not grow with the file."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, Self, TypeVar

from iolab.base.errors import InputError
from iolab.files.importer.results import Results

PIECE_BYTES = 1 << 21
"""Always the same, so that sums are added up in the same order on every machine."""
LINE_BYTES_MAX = 1 << 24
LINE_BYTES_USUAL = 1 << 12


class Sums(Protocol):
    """What a piece comes to. `add` takes whole lines, bytes `begin` to `end` of `text`, the first of which starts at
    `offset` of the file, and releases the interpreter's lock; ValueError(offset) names a line that it can't read."""

    def add(self, text: bytes, begin: int, end: int, offset: int) -> None:
        """Takes lines in; see the class."""

    def merge(self, later: Self, /) -> None:
        """Takes in what a later piece of the file came to."""


T = TypeVar("T", bound=Sums)


def added_up(path: Path, begin: int, end: int, new: Callable[[], T]) -> T:
    """What the lines come to that start at `begin` or after it, and before `end`. `new` makes empty sums.

    ValueError as `Sums.add` says, of the first such line.
    """

    def of_piece(start: int) -> T:
        sums = new()
        text, first, last, offset = _lines_from(descriptor, start, begin, end, path)
        sums.add(text, first, last, offset)
        return sums

    whole = new()
    with path.open("rb") as file:
        descriptor = file.fileno()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for sums in pool.map(of_piece, range(begin, end, PIECE_BYTES)):
                whole.merge(sums)
    return whole


def _lines_from(descriptor: int, start: int, begin: int, end: int, path: Path) -> tuple[bytes, int, int, int]:
    """The lines that start within the piece at `start`: a text, from where to where in it, the place in the file."""
    at = start - 1 if start > begin else start
    last_byte = min(start + PIECE_BYTES, end) - 1 - at
    more = LINE_BYTES_USUAL
    while True:
        text = os.pread(descriptor, min(last_byte + more, end - at), at)
        last = text.find(b"\n", last_byte) + 1
        if last or at + len(text) >= end or not text:
            break
        if more > LINE_BYTES_MAX:
            raise line_too_long(path)
        more *= 16
    last = last or len(text)
    first = 0 if start == begin else text.find(b"\n", 0, last) + 1 or last
    return text, first, last, at + first


def line_too_long(path: Path | str) -> InputError:
    """The error for a line longer than a piece may be. Raised by the caller."""
    return InputError(f"a line longer than {LINE_BYTES_MAX >> 20} MiB", where=str(path))


def end_of_whole_lines(path: Path, fields: int, separator: str, results: Results) -> int:
    """The file's size, less a last line that was cut off: it has no end and fewer fields than the others."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - (1 << 16)))
        last = file.read().rpartition(b"\n")[2]
    found = last.count(separator.encode()) + 1
    if not last or found >= fields:
        return size
    results.problem(f"the last line is cut off, {found} of {fields} fields, and left out")
    return size - len(last)


def line_at(path: Path, offset: int) -> tuple[int, str]:
    """The line that starts at `offset`: its number, from 1, and its text."""
    number = 1
    with path.open("rb") as file:
        while (left := offset - file.tell()) > 0:
            number += file.read(min(PIECE_BYTES, left)).count(b"\n")
        return number, file.readline(LINE_BYTES_MAX).decode(errors="replace").rstrip("\r\n")
