"""The layer of bcache, and the superblocks that it wants: struct cache_sb_disk of drivers/md/bcache/bcache_ondisk.h
(Linux 6.1), as make-bcache writes them."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Sequence
from typing import ClassVar, Literal

from typing_extensions import override

from iolab.base.option import Bytes, option
from iolab.domain.layer.layer import MIB, SECTOR_BYTES, CacheSet, Layer, LayerDevice, Maker

SUPERBLOCK_AT = 4096
"""SB_SECTOR, in bytes."""
_DATA_AT = 16 * SECTOR_BYTES
"""BDEV_DATA_START_DEFAULT."""
_MAGIC = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
_VERSION_OF_CACHE = 3
_VERSION_OF_BACKING = 1
_BUCKETS_MIN = 513
"""The fewest that the kernel takes: `cache_alloc` of drivers/md/bcache/super.c, 6.1, keeps one in 1,024 in reserve, of
their number rounded up to a power of two."""
_SECTORS_BEFORE_BUCKETS = 24
"""The superblock, and what lies before it."""
_MODES = {"writethrough": 0, "writeback": 1, "writearound": 2}
_CRC64_POLYNOMIAL = 0x42F0E1EBA9EA3693
"""Of ECMA-182, as lib/crc64.c has it."""


class Bcache(Layer):
    """`kind = "bcache"`."""

    modules: ClassVar[tuple[str, ...]] = ("bcache",)
    configuration: ClassVar[str] = "CONFIG_BCACHE"
    keeps_metadata: ClassVar[bool] = True
    guests_only: ClassVar[bool] = True

    kind: Literal["bcache"] = option("bcache", "bcache: blocks that are in use lie on a second device too.")
    mode: Literal["writethrough", "writeback", "writearound"] = option(
        "writethrough", "Where a write goes: to both devices, to the cache, or to the first device alone."
    )
    cache_size: Bytes = option(
        32 * MIB, "Size of the cache; the layer's device is as large at least.", unit="bytes", ge=MIB, le=1 << 40
    )
    bucket: Bytes = option(
        32 << 10, "Bytes that the cache gives away and takes back at once.", unit="bytes", ge=4096, le=16 * MIB
    )
    sequential_cutoff: Bytes = option(
        4 * MIB,
        "A sequence of this many bytes passes the cache by; 0: none does.",
        unit="bytes",
        ge=0,
        le=1 << 31,
    )

    width: ClassVar[int] = 2

    @override
    def fault(self) -> tuple[str, str] | None:
        if self.bucket & (self.bucket - 1):
            return "bucket", f"{self.bucket} bytes given; expected a power of two"
        if self.cache_size // self.bucket < _BUCKETS_MIN:
            return "cache_size", f"{self.cache_size // self.bucket} buckets; bcache takes at least {_BUCKETS_MIN}"
        return None

    @override
    def member_bytes(self, size_bytes: int) -> int:
        return max(_DATA_AT + size_bytes, self.cache_size)

    @override
    def make(self, members: Sequence[LayerDevice], size_bytes: int, maker: Maker) -> LayerDevice:
        backing, cache = members
        set_id = _id(f"set of {backing.node}")
        bucket_sectors = self.bucket // SECTOR_BYTES
        of_cache = superblock(
            _VERSION_OF_CACHE,
            _id(f"cache of {backing.node}"),
            set_id,
            flags=0,
            geometry=struct.pack("<QHHHH", self.cache_size // self.bucket, 1, bucket_sectors, 1, 0),
            first_bucket=-(-_SECTORS_BEFORE_BUCKETS // bucket_sectors),
        )
        of_backing = superblock(
            _VERSION_OF_BACKING,
            _id(backing.node),
            set_id,
            flags=_MODES[self.mode],
            geometry=struct.pack("<QHHHH", 0, 1, bucket_sectors, 0, 0),
            first_bucket=0,
        )
        settings = [("sequential_cutoff", str(self.sequential_cutoff))]
        return maker.cache_set(CacheSet([(cache, of_cache), (backing, of_backing)], SUPERBLOCK_AT, settings))


def superblock(version: int, own_id: bytes, set_id: bytes, *, flags: int, geometry: bytes, first_bucket: int) -> bytes:
    """4 KiB. `geometry`: buckets, sectors of a block, sectors of a bucket, devices in the set, which of them."""
    label, features, padding, last_mount, keys = bytes(32), bytes(24), bytes(40), 0, 0
    sector = SUPERBLOCK_AT // SECTOR_BYTES
    summed = struct.pack("<QQ", sector, version) + _MAGIC + own_id + set_id + label
    summed += struct.pack("<QQ", flags, 0) + features + padding + geometry
    summed += struct.pack("<IHH", last_mount, first_bucket, keys)
    return (struct.pack("<Q", crc64(summed)) + summed).ljust(4096, b"\0")


def crc64(data: bytes) -> int:
    """As bcache has it: it begins with ones, and all bits are turned at the end."""
    ones = (1 << 64) - 1
    crc = ones
    for byte in data:
        crc ^= byte << 56
        for _ in range(8):
            crc = (crc << 1 ^ (_CRC64_POLYNOMIAL if crc >> 63 else 0)) & ones
    return crc ^ ones


def _id(name: str) -> bytes:
    """The same in each trial, and another one for each device."""
    return uuid.uuid5(uuid.NAMESPACE_URL, name).bytes


KINDS: tuple[type[Layer], ...] = (Bcache,)
