"""JSON lines with a checksum each: a journal's line is what was written, or is recognised as damaged.

A line is one JSON object whose last key is `sum`: 16 hexadecimal digits of BLAKE2b over the line's bytes before that. A
changed bit is found, whichever it is; the lines around a damaged one are read nevertheless.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from iolab.base import strict_json
from iolab.base.durable import write_all
from iolab.base.errors import MachineError
from iolab.base.strict_json import JsonObject

Entry = JsonObject

SUM_KEY = "sum"
LINE_BYTES_MAX = 64 * 1024 * 1024
"""The longest line that is written or read. Names of 100,000 settings fit."""

_SUM = re.compile(rb',?"sum":"([0-9a-f]{16})"\}')
_SUM_BYTES_MAX = len(b',"sum":"0123456789abcdef"}')


class DamagedLine(NamedTuple):
    """A line that is left out for its damage, and the reason."""

    number: int
    """From 1."""
    reason: str


@dataclass
class Lines:
    """The entries of a file of checked lines."""

    entries: list[Entry] = field(default_factory=list)
    """In order, without their sums."""
    numbers: list[int] = field(default_factory=list)
    """The line that each entry stands on, from 1."""
    damaged: list[DamagedLine] = field(default_factory=list)
    torn_end: bool = False
    """The last line was not written to its end: a kill, a power cut or a full disk came between."""
    torn_bytes: int = 0
    whole_bytes: int = 0
    """Where the last whole line ends: where the next one belongs."""


def append(fd: int, entry: Entry, *, where: str, remedy: str | None = None, synced: bool = True) -> None:
    """Writes one entry as a line at the end (`O_APPEND`) or at the descriptor's position. On return it survives a power
    cut, unless it is not to be `synced`; after an error nothing of it is left in the file, as far as the disk still
    obeys.

    Raises:
        MachineError: the disk refuses; it names `where` and `remedy`.
        ValueError: the entry has a key `sum`, no JSON form, or more than LINE_BYTES_MAX bytes.
    """
    line = encode(entry)
    start = os.fstat(fd).st_size if _appends(fd) else os.lseek(fd, 0, os.SEEK_CUR)
    try:
        write_all(fd, line)
        if synced:
            os.fsync(fd)
    except OSError as error:
        with suppress(OSError):
            _take_back(fd, start, len(line))
        raise MachineError(f"can't be written: {error.strerror}", where=where, remedy=remedy) from error


def encode(entry: Entry) -> bytes:
    """The entry's line, with its sum and line end. ValueError: see `append`."""
    if SUM_KEY in entry:
        raise ValueError(f"an entry has no key {SUM_KEY} of its own")
    try:
        body = _dumps(entry, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # names that are no UTF-8 travel as lone surrogates
        body = _dumps(entry, ensure_ascii=True).encode()
    separator = b"," if entry else b""
    line = b'%b%b"%b":"%b"}\n' % (body[:-1], separator, SUM_KEY.encode(), _sum_of(body[:-1]))
    if len(line) > LINE_BYTES_MAX:
        raise ValueError(f"a line of {len(line)} bytes; {LINE_BYTES_MAX} are the most")
    return line


def read(content: bytes, *, is_earlier: Callable[[Entry], bool] = lambda header: False) -> Lines:
    """Every line that is as it was written; the others are named.

    `is_earlier` determines whether the first line's entry is the header of an earlier format, from before lines had
    sums: then those without are taken as well. Zero bytes at the end are room that was reserved, not damage.
    """
    lines = Lines()
    *whole, rest = content.rstrip(b"\0").split(b"\n")
    lines.torn_end, lines.torn_bytes = bool(rest), len(rest)
    lines.whole_bytes = sum(len(line) + 1 for line in whole)
    sums_optional = False
    for number, line in enumerate(whole, start=1):
        try:
            entry, has_sum = _decode(line)
            if number == 1 and not has_sum:
                sums_optional = is_earlier(entry)
            if not has_sum and not sums_optional:
                raise ValueError("not a journal entry: it has no checksum")
        except ValueError as error:
            lines.damaged.append(DamagedLine(number, str(error)))
        else:
            lines.entries.append(entry)
            lines.numbers.append(number)
    return lines


def _decode(line: bytes) -> tuple[Entry, bool]:
    """The entry, and whether it had a sum, which then is right. ValueError states what is wrong."""
    if len(line) >= LINE_BYTES_MAX:
        raise ValueError(f"{len(line)} bytes long; {LINE_BYTES_MAX} are the most")
    found = _SUM.search(line, max(0, len(line) - _SUM_BYTES_MAX))
    if found and found.end() == len(line) and _sum_of(line[: found.start()]) != found[1]:
        raise ValueError("damaged: its checksum does not match")
    try:
        entry = strict_json.loads(line)
    except ValueError:
        raise ValueError("not a journal entry") from None
    if not isinstance(entry, dict):
        raise ValueError("not a journal entry")
    has_sum = found is not None and found.end() == len(line)
    if has_sum:
        del entry[SUM_KEY]
    elif SUM_KEY in entry:
        raise ValueError("damaged: its checksum is not where it was written")
    return entry, has_sum


def _sum_of(body: bytes) -> bytes:
    return blake2b(body, digest_size=8).hexdigest().encode()


def _dumps(entry: Entry, *, ensure_ascii: bool) -> str:
    return json.dumps(entry, ensure_ascii=ensure_ascii, allow_nan=False, separators=(",", ":"))


def _appends(fd: int) -> bool:
    return bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND)


def _take_back(fd: int, start: int, length: int) -> None:
    """What arrived of a line must not stand before the next one. Reserved room stays reserved, as zeros."""
    written = os.fstat(fd).st_size - start
    if _appends(fd):
        os.ftruncate(fd, start)
    elif written > 0:
        os.pwrite(fd, b"\0" * min(written, length), start)
        os.lseek(fd, start, os.SEEK_SET)
