"""`trace.dat` of version 7, as trace-cmd from 3.0 on and kernelshark read it (trace-cmd.dat.v7(5)).

It is packed with zstd, with which every trace-cmd is built.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from iolab import _native
from iolab.base import output_file

PAGE_BYTES = 4096
CHUNK_PAGES = 64
"""Packed at a time: who reads here and there unpacks no more."""
_DONE, _BUFFER, _CLOCK, _CPUS = 0, 3, 4, 8
_HEADER, _TRACER_FORMATS, _FORMATS, _SYMBOLS, _PRINTS, _NAMES = range(16, 22)
_PACKED = 1
_SECTION = struct.Struct("<HHIQ")
"""Which, whether packed, where its description is, and its length."""
_CLOCKS = b"local global counter uptime perf [mono]\0"


@dataclass(frozen=True)
class TraceDat:
    """All that stands before the buffers."""

    header_page: bytes
    header_event: bytes
    formats: Sequence[bytes]
    """The formats of the events of `block`."""
    command_lines: bytes
    """Lines of a task's number and its name."""

    def write(self, path: Path, cpus: Sequence[Iterable[bytes]]) -> int:
        """Writes the file, with the pages of each CPU from 0 on, and returns its bytes.

        Raises:
            InputError: it can't be written there.
            MachineError: no room.
        """
        with output_file.opened_as_file(path, "with places") as file:
            file.write(b"\x17\x08\x44tracing7\0\0\x08" + struct.pack("<I", PAGE_BYTES) + b"zstd\0" + b"1.5.0\0")
            place_of_options = file.tell()
            file.write(struct.pack("<Q", 0))
            places = {number: _section(file, number, content) for number, content in self._sections()}
            buffer = _buffers(file, cpus)
            options = [
                *((number, struct.pack("<Q", place)) for number, place in places.items()),
                (_CLOCK, _CLOCKS),
                (_CPUS, struct.pack("<I", len(cpus))),
                (_BUFFER, buffer),
                (_DONE, struct.pack("<Q", 0)),
            ]
            content = b"".join(struct.pack("<HI", number, len(data)) + data for number, data in options)
            at = _section(file, _DONE, content)
            size = file.tell()
            file.seek(place_of_options)
            file.write(struct.pack("<Q", at))
        return size

    def _sections(self) -> Iterator[tuple[int, bytes]]:
        formats = b"".join(struct.pack("<Q", len(text)) + text for text in self.formats)
        yield (
            _HEADER,
            b"header_page\0"
            + struct.pack("<Q", len(self.header_page))
            + self.header_page
            + b"header_event\0"
            + struct.pack("<Q", len(self.header_event))
            + self.header_event,
        )
        yield _TRACER_FORMATS, struct.pack("<I", 0)
        yield _FORMATS, struct.pack("<I", 1) + b"block\0" + struct.pack("<I", len(self.formats)) + formats
        yield _SYMBOLS, struct.pack("<I", 0)
        yield _PRINTS, struct.pack("<I", 0)
        yield _NAMES, struct.pack("<Q", len(self.command_lines)) + self.command_lines


def _section(file: IO[bytes], number: int, content: bytes) -> int:
    """Appends a section and returns where it begins; what it holds is packed, but for the options."""
    at = file.tell()
    packed = number != _DONE
    if packed:
        small = _native.zstd(content)
        content = struct.pack("<II", len(small), len(content)) + small
    file.write(_SECTION.pack(number, _PACKED if packed else 0, 0, len(content)) + content)
    return at


def _buffers(file: IO[bytes], cpus: Sequence[Iterable[bytes]]) -> bytes:
    """Appends the pages of all CPUs, and returns the option that states where they are."""
    section = file.tell()
    file.write(_SECTION.pack(_BUFFER, _PACKED, 0, 0))
    places = []
    for number, pages in enumerate(cpus):
        file.write(b"\0" * (-file.tell() % PAGE_BYTES))
        at, count = file.tell(), 0
        file.write(struct.pack("<I", count))
        for chunk in _chunks(pages):
            small = _native.zstd(chunk)
            file.write(struct.pack("<II", len(small), len(chunk)) + small)
            count += 1
        end = file.tell()
        file.seek(at)
        file.write(struct.pack("<I", count))
        file.seek(end)
        # The count itself is not counted.
        places.append((number, at, end - at - 4))
    end = file.tell()
    file.seek(section)
    file.write(_SECTION.pack(_BUFFER, _PACKED, 0, end - section - _SECTION.size))
    file.seek(end)
    head = struct.pack("<Q", section) + b"\0" + b"mono\0" + struct.pack("<II", PAGE_BYTES, len(cpus))
    return head + b"".join(struct.pack("<IQQ", *place) for place in places)


def _chunks(pages: Iterable[bytes]) -> Iterator[bytes]:
    rest = iter(pages)
    while chunk := b"".join(islice(rest, CHUNK_PAGES)):
        yield chunk
