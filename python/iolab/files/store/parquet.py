"""Parquet files, decoded only when they are what iolab writes and take what their size accounts for.

What a file says it will take is read before anything is decoded: a small file can claim any number of rows.

Only the footer and the page headers are read, which are structures of Thrift's compact protocol. They cannot take more
than the file's size: each element is at least a byte.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from iolab.base.plain_text import counted

MAGIC = b"PAR1"
DECODED_BYTES_ALWAYS = 512 * 2**20
"""What any file may take. Series that never change are stored in next to nothing."""
DECODED_PER_STORED_BYTE = 300
"""Beyond that, what a file may take by its size. Trial files take 5 to 80 times theirs."""
VALUE_BYTES = 16
"""What one decoded value takes besides its text: a string's view."""

Struct = dict[int, Any]
_DEPTH_MAX = 16


@dataclass(frozen=True)
class Claims:
    """The contents of the file by footer and page headers."""

    rows: int
    columns: int
    page_bytes: int
    """The bytes of all pages, uncompressed."""

    @property
    def decoded_bytes(self) -> int:
        """The memory that decoding would take, in bytes, at most."""
        return self.rows * self.columns * VALUE_BYTES + self.page_bytes


def check_claims(content: bytes) -> None:
    """ValueError if the file is no Parquet, or would take more memory than its size accounts for."""
    claims = read_claims(content)
    most = max(DECODED_BYTES_ALWAYS, DECODED_PER_STORED_BYTE * len(content))
    if claims.decoded_bytes > most:
        raise ValueError(
            f"claims {counted(claims.rows, 'row')} and {claims.page_bytes} bytes of pages in {len(content)} bytes; "
            f"no more than {most} bytes are decoded"
        )


def read_claims(content: bytes) -> Claims:
    """The largest size in footer and page headers. ValueError if they are no Parquet."""
    try:
        return _read(content)
    except (IndexError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise ValueError("no whole Parquet file") from error


def _read(content: bytes) -> Claims:
    if len(content) < 12 or content[:4] != MAGIC or content[-4:] != MAGIC:
        raise ValueError("no whole Parquet file")
    (footer_bytes,) = struct.unpack("<I", content[-8:-4])
    start = len(content) - 8 - footer_bytes
    if start < 4:
        raise ValueError("no whole Parquet file")
    footer = _Compact(content, start).read_struct()
    groups = footer[4]
    rows = max(footer[3], sum(group[3] for group in groups))
    page_bytes = 0
    unread = len(content)
    columns = max(len(footer[2]) - 1, 1)  # the first is the root
    for group in groups:
        for chunk in group[1]:
            described = chunk[3]
            pages = _place_of_pages(described, start)
            unread -= len(pages)
            if unread < 0:  # chunks that share pages would have them read once for each
                raise ValueError("no whole Parquet file")
            values, uncompressed = _pages(content, pages)
            rows = max(rows, values, described[5])
            page_bytes += max(uncompressed, described[6])
    if min(rows, page_bytes) < 0:
        raise ValueError("no whole Parquet file")
    return Claims(rows, columns, page_bytes)


def _place_of_pages(described: Struct, end: int) -> range:
    """Where a column chunk's pages lie, before the footer."""
    start = min(offset for offset in (described[9], described.get(11)) if offset)
    if start < len(MAGIC):
        raise ValueError("no whole Parquet file")
    return range(start, min(start + described[7], end))


def _pages(content: bytes, place: range) -> tuple[int, int]:
    """The number of values in the pages of a column chunk by their headers, and their uncompressed bytes."""
    at = place.start
    values = uncompressed = 0
    while at < place.stop:
        reader = _Compact(content, at)
        header = reader.read_struct()
        if header[2] < 0 or header[3] < 0:
            raise ValueError("no whole Parquet file")
        uncompressed += header[2]
        if data := header.get(5) or header.get(8):  # a dictionary's values are part of its page's bytes
            values += data[1]
        at = reader.at + header[3]
    return values, uncompressed


class _Compact:
    """Reads structures of the compact protocol as field number -> value."""

    def __init__(self, content: bytes, at: int) -> None:
        self._content = content
        self.at = at

    def read_struct(self, depth: int = 0) -> Struct:
        found: Struct = {}
        number = 0
        while head := self._byte():
            delta, kind = head >> 4, head & 15
            number = number + delta if delta else self._zigzag()
            found[number] = self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEPTH_MAX:  # of structures and lists alike: either holds the other
            raise ValueError("no whole Parquet file")
        if kind in (1, 2):
            return kind == 1
        if kind in (4, 5, 6):
            return self._zigzag()
        if kind == 8:
            return self._skip(self._varint())
        if kind == 12:
            return self.read_struct(depth + 1)
        if kind == 9:
            return self._list(depth)
        if kind == 3:
            return self._skip(1)
        if kind == 7:
            return self._skip(8)
        raise ValueError("no whole Parquet file")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        size, kind = head >> 4, head & 15
        if size == 15:
            size = self._varint()
        if size > len(self._content) - self.at:
            raise ValueError("no whole Parquet file")
        if kind in (1, 2):
            self._skip(size)
            return []
        return [self._value(kind, depth + 1) for _ in range(size)]

    def _zigzag(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        number = byte = self._byte()
        if byte < 0x80:  # nearly all: a run of thousands of trials has millions
            return number
        number &= 0x7F
        shift = 7
        while True:
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
            if shift > 63:
                raise ValueError("no whole Parquet file")

    def _byte(self) -> int:
        byte = self._content[self.at]
        self.at += 1
        return byte

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self._content):
            raise ValueError("no whole Parquet file")


FILE_BYTES_MAX = 2**30
"""The largest trial or index file that is read."""


@contextmanager
def decoding() -> Iterator[None]:
    """Makes a ValueError of one line of any error of the decoder about a damaged file; it may panic."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, KeyError, ValueError, OSError) as error:
        raise ValueError(f"not a whole trial file: {_first_line(error)}") from error


def check_table(content: bytes, schema: Mapping[str, object]) -> None:
    """ValueError if the file does not have exactly these columns, or claims more than its size accounts for."""
    import polars as pl

    with decoding():
        check_claims(content)
        found = dict(pl.read_parquet_schema(io.BytesIO(content)))
        if found != schema:
            raise ValueError("its columns are not those that iolab writes")


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
