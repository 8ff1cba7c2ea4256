"""Whether a device is blank, as far as places all over it show: most data has no signature."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from iolab.base.errors import InputError, MachineError

END_BYTES = 1 << 20
"""Read whole at both ends, where partition tables, RAID and volume managers keep theirs."""
PLACES = 128
PLACE_BYTES = 64 << 10
BACKUPS = (
    *(blocks * size for size, blocks in ((1024, 8193), (2048, 16384), (4096, 32768))),
    *(3 * blocks * size for size, blocks in ((1024, 8192), (2048, 16384), (4096, 32768))),
    64 << 20,
    256 << 30,
)
"""Where ext2 to ext4 (first and third group, by block size) and btrfs keep copies of their superblocks."""
TIME_LIMIT_S = 30.0

MAGIC = {b"EFI PART": "a GUID partition table", b"XFSB": "a superblock of xfs", b"_BHRfS_M": "a superblock of btrfs"}
EXT_MAGIC, EXT_MAGIC_AT = b"\x53\xef", 56


@dataclass(frozen=True)
class NonzeroByte:
    """Where a device that should be blank is not."""

    offset_bytes: int
    what: str | None
    """What it looks like, if that is known."""

    def __str__(self) -> str:
        place = f"byte {self.offset_bytes} is not zero"
        return f"{place}: {self.what}" if self.what else place


def first_data(fd: int, size_bytes: int, where: str) -> NonzeroByte | None:
    """The first place found that reads anything but zeros; None when all that were looked at do.

    Raises:
        InputError: a place cannot be read, so that nobody knows what it holds.
        MachineError: reading takes too long.
    """
    deadline = time.monotonic() + TIME_LIMIT_S
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    try:
        for begin, length in _places(size_bytes):
            if time.monotonic() > deadline:
                raise MachineError(
                    f"it reads too slowly to see whether it holds data ({TIME_LIMIT_S:.0f} s were not enough)",
                    where=where,
                    remedy="to write to it whatever it holds, set destroy = true in [target]",
                )
            read = _read(fd, begin, length, where)
            if read.count(0) != len(read):
                return NonzeroByte(begin + len(read) - len(read.lstrip(b"\0")), _content_kind(begin, read))
    finally:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_NORMAL)
    return None


def _places(size_bytes: int) -> Iterator[tuple[int, int]]:
    """Where to look, in ascending order, within the device."""
    found = [(0, END_BYTES), (size_bytes - END_BYTES, END_BYTES)]
    found += [(offset, PLACE_BYTES) for offset in BACKUPS]
    # Around the place: what divides a device evenly, as the groups of xfs do, begins there.
    found += [(size_bytes * number // PLACES - PLACE_BYTES // 2, PLACE_BYTES) for number in range(1, PLACES)]
    for begin, length in sorted(found):
        end = min(begin + length, size_bytes)
        if max(0, begin) < end:
            yield max(0, begin), end - max(0, begin)


def _read(fd: int, begin: int, length: int, where: str) -> bytes:
    try:
        return os.pread(fd, length, begin)
    except OSError as error:
        raise InputError(
            f"not written to: cannot read byte {begin} ({error.strerror}), so it may hold data",
            where=where,
            remedy="to write to it whatever it holds, set destroy = true in [target]",
        ) from error


def _content_kind(begin: int, read: bytes) -> str | None:
    for magic, what in MAGIC.items():
        if magic in read:
            return what
    copies = (backup - begin + EXT_MAGIC_AT for backup in BACKUPS if begin <= backup)
    if any(read[at : at + len(EXT_MAGIC)] == EXT_MAGIC for at in copies):
        return "a superblock of ext2, ext3 or ext4"
    return None
