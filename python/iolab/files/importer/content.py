"""What a file holds as its readers take it: unpacked if it is packed, in UTF-8 if it is in UTF-16.

Such a file is copied into one without a name, which lasts as long as its `Content` is referred to.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from iolab import _native
from iolab.base.errors import InputError

CONTENT_BYTES_MAX = 1 << 30
ZSTD_BYTES_MAX = 1 << 28
"""Of a file packed with zstd, which is unpacked in memory."""
PIECE_BYTES = 1 << 20
HEAD_BYTES = 1 << 12
KEPT = 4
"""The most files that are kept converted, for the next who reads them."""
SUFFIXES = frozenset((".gz", ".xz", ".lzma", ".zst", ".bz2"))
Reader = gzip.GzipFile | lzma.LZMAFile | bz2.BZ2File
_ZSTD = b"\x28\xb5\x2f\xfd"
_PACKED: dict[bytes, tuple[str, Callable[[Path], Reader]]] = {
    b"\x1f\x8b": ("gzip", gzip.GzipFile),
    b"\xfd7zXZ\x00": ("xz", lzma.LZMAFile),
    b"BZh": ("bzip2", bz2.BZ2File),
}
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
MARKLESS_SHARE = 0.8
"""Of the bytes at one parity, those that are zero in text of UTF-16 without a mark."""


@dataclass(frozen=True)
class Content:
    """Where the content can be read."""

    path: Path
    copy: BinaryIO | None = None
    """What `path` leads to, if it is no file of the user's."""


def content_of(path: Path) -> Content:
    """The content of a file. InputError for one that can't be read or unpacked, or holds too much."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if _packing(head) is None and _encoding(head) is None:
            return Content(path)
        stat = path.stat()
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(path)) from None
    return _copied(path, stat.st_mtime_ns, stat.st_size)


def name_unpacked(name: str) -> str:
    """A file's name without the ending of its packing."""
    bare = Path(name)
    return bare.stem if bare.suffix in SUFFIXES and bare.stem else name


_OF_FIO = re.compile(r"(?P<stem>.+)_(?:bw|iops|[cs]?lat)(?:_hist)?(?:\.\d{1,9})?\.log")
"""What fio adds to the name of a log: what it is of, and the job's number."""


def stem_of(name: str) -> str:
    """A file's name without the endings of its packing and its kind."""
    bare = name_unpacked(name)
    found = _OF_FIO.fullmatch(bare)
    return found["stem"] if found else Path(bare).stem


@lru_cache(maxsize=KEPT)
def content_with(text: str) -> Content:
    """Content that is this text."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the last reference to it
    file.write(text.encode())
    file.flush()
    return Content(Path(f"/proc/self/fd/{file.fileno()}"), file)


@lru_cache(maxsize=KEPT)
def _copied(path: Path, modified_ns: int, size: int) -> Content:
    """`modified_ns` and `size` are of the file, so that a changed one is read again."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the last reference to it
    try:
        _write(_as_utf_8(_unpacked(path)), file, path)
    except BaseException:
        file.close()
        raise
    file.flush()
    return Content(Path(f"/proc/self/fd/{file.fileno()}"), file)


def _write(pieces: Iterator[bytes], file: BinaryIO, path: Path) -> None:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > CONTENT_BYTES_MAX:
            raise _too_large(path, CONTENT_BYTES_MAX)
        file.write(piece)


def _too_large(path: Path, bytes_max: int) -> InputError:
    return InputError(
        f"holds more than {bytes_max >> 20:,} MiB, the most that is unpacked",
        where=str(path),
        remedy="unpack or split it",
    )


def _packing(head: bytes) -> str | None:
    if head.startswith(_ZSTD):
        return "zstd"
    return next((name for magic, (name, _) in _PACKED.items() if head.startswith(magic)), None)


def _unpacked(path: Path) -> Iterator[bytes]:
    with path.open("rb") as packed:
        head = packed.read(HEAD_BYTES)
    name = _packing(head)
    try:
        if name == "zstd":
            if path.stat().st_size > ZSTD_BYTES_MAX:
                raise OverflowError
            yield _native.unzstd(path.read_bytes(), ZSTD_BYTES_MAX)
            return
        opener = next((opener for known, opener in _PACKED.values() if known == name), None)
        with path.open("rb") if opener is None else opener(path) as content:
            while piece := content.read(PIECE_BYTES):
                yield piece
    except OverflowError:
        raise _too_large(path, ZSTD_BYTES_MAX) from None
    except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
        raise InputError(
            f"packed with {name}, and can't be unpacked ({error})", where=str(path), remedy="was it cut off?"
        ) from None


def _encoding(head: bytes) -> str | None:
    """UTF-16 by its mark; without one, text of which every second byte is zero, as Windows' tools write it."""
    for mark, name in _UTF_16.items():
        if head.startswith(mark):
            return name
    pairs = len(head) // 2
    high, low = head[0 : 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
    if pairs < 2 or max(high, low) < MARKLESS_SHARE * pairs or min(high, low):
        return None
    return "utf-16-le" if low > high else "utf-16-be"


def _as_utf_8(pieces: Iterator[bytes]) -> Iterator[bytes]:
    first = next(pieces, b"")
    encoding = _encoding(first[:HEAD_BYTES])
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace") if encoding else None
    while first:
        yield decoder.decode(first).encode(errors="replace") if decoder else first
        first = next(pieces, b"")
    if decoder:
        yield decoder.decode(b"", final=True).encode(errors="replace")
