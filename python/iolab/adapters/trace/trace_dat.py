"""`trace.dat` of version 6, as trace-cmd and kernelshark read it (trace-cmd.dat.v6(5))."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from iolab.base import output_file

PAGE_BYTES = 4096
_OPTION_CLOCK = 4
_CLOCKS = b"local global counter uptime perf [mono]\0"


@dataclass(frozen=True)
class TraceDat:
    """All that stands before the buffers."""

    header_page: bytes
    header_event: bytes
    formats: Sequence[bytes]
    """Of the events of `block`."""
    command_lines: bytes
    """Lines of a task's number and its name."""

    def write(self, path: Path, cpus: Sequence[Iterable[bytes]]) -> int:
        """Writes the file, with the pages of each CPU from 0 on, and returns its bytes.

        Raises:
            InputError: it can't be written there.
            MachineError: no room.
        """
        head = self._head(len(cpus))
        table = len(head)
        at = _aligned(table + 16 * len(cpus))
        places: list[tuple[int, int]] = []
        with output_file.opened_as_file(path, "with places") as file:
            file.write(head)
            for pages in cpus:
                file.seek(at)
                length = sum(file.write(page) for page in pages)
                places.append((at, length))
                at = _aligned(at + length)
            file.seek(table)
            file.write(b"".join(struct.pack("<QQ", *place) for place in places))
            file.truncate(at)
        return at

    def _head(self, cpus: int) -> bytes:
        formats = b"".join(struct.pack("<Q", len(text)) + text for text in self.formats)
        clock = struct.pack("<HI", _OPTION_CLOCK, len(_CLOCKS)) + _CLOCKS
        return b"".join(
            (
                b"\x17\x08\x44tracing6\0\0\x08",
                struct.pack("<I", PAGE_BYTES),
                b"header_page\0" + struct.pack("<Q", len(self.header_page)) + self.header_page,
                b"header_event\0" + struct.pack("<Q", len(self.header_event)) + self.header_event,
                struct.pack("<I", 0),
                struct.pack("<I", 1) + b"block\0" + struct.pack("<I", len(self.formats)) + formats,
                struct.pack("<II", 0, 0),
                struct.pack("<Q", len(self.command_lines)) + self.command_lines,
                struct.pack("<I", cpus),
                b"options  \0" + clock + struct.pack("<H", 0),
                b"flyrecord\0",
            )
        )


def _aligned(offset: int) -> int:
    return -(-offset // PAGE_BYTES) * PAGE_BYTES
