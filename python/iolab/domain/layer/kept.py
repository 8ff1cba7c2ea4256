"""Layers of device mapper that keep metadata on their devices: thin, writecache, cache, integrity. Their tables are
those of Documentation/admin-guide/device-mapper of Linux 6.1; each formats what reads as zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from typing_extensions import override

from iolab.base.option import Bytes, option
from iolab.domain.layer.layer import MIB, SECTOR_BYTES, Layer, LayerDevice, Maker, MappedDevice, rounded_up
from iolab.domain.layer.mapping import chunk_fault

_METADATA_BYTES_MIN = 4 * MIB
_METADATA_BYTES_PER_BLOCK = 64
"""More than the 48 that thin-provisioning.rst asks for."""


class Thin(Layer):
    """`kind = "thin"`."""

    modules: ClassVar[tuple[str, ...]] = ("dm_mod", "dm_thin_pool")
    configuration: ClassVar[str] = "CONFIG_DM_THIN_PROVISIONING"
    keeps_metadata: ClassVar[bool] = True

    kind: Literal["thin"] = option("thin", "dm-thin: a volume whose blocks are given to it when they are written.")
    chunk: Bytes = option(64 << 10, "Bytes of a block of the pool.", unit="bytes", ge=64 << 10, le=1 << 30)
    skip_block_zeroing: bool = option(False, "Give blocks away without zeros in what is not written of them.")

    @override
    def fault(self) -> tuple[str, str] | None:
        return chunk_fault(self.chunk)

    @override
    def member_bytes(self, size_bytes: int) -> int:
        return self._metadata_bytes(size_bytes) + rounded_up(size_bytes, self.chunk)

    def _metadata_bytes(self, size_bytes: int) -> int:
        return metadata_bytes(-(-size_bytes // self.chunk))

    @override
    def make(self, members: Sequence[LayerDevice], size_bytes: int, maker: Maker) -> LayerDevice:
        data_bytes, start = rounded_up(size_bytes, self.chunk), self._metadata_bytes(size_bytes)
        metadata = slice_of(members[0], 0, start, maker)
        data = slice_of(members[0], start, data_bytes, maker)
        feature = " 1 skip_block_zeroing" if self.skip_block_zeroing else ""
        of_pool = f"{metadata.node} {data.node} {self.chunk // SECTOR_BYTES} 0{feature}"
        pool = maker.mapping(MappedDevice("thin-pool", data_bytes, of_pool))
        maker.message(pool, "create_thin 0")
        return maker.mapping(MappedDevice("thin", size_bytes, f"{pool.node} 0"))


class Writecache(Layer):
    """`kind = "writecache"`."""

    modules: ClassVar[tuple[str, ...]] = ("dm_mod", "dm_writecache")
    configuration: ClassVar[str] = "CONFIG_DM_WRITECACHE"
    keeps_metadata: ClassVar[bool] = True

    kind: Literal["writecache"] = option(
        "writecache", "dm-writecache: writes go to a second device first; reads of the first are not kept."
    )
    cache_size: Bytes = option(8 * MIB, "Size of the cache.", unit="bytes", ge=MIB, le=1 << 40)
    block: Literal[512, 4096] = option(4096, "Bytes of a block of the cache.", expected="512 or 4096")

    width: ClassVar[int] = 2

    @override
    def member_bytes(self, size_bytes: int) -> int:
        return max(rounded_up(size_bytes, self.block), self.cache_size)

    @override
    def make(self, members: Sequence[LayerDevice], size_bytes: int, maker: Maker) -> LayerDevice:
        cache = slice_of(members[1], 0, self.cache_size, maker)
        arguments = f"s {members[0].node} {cache.node} {self.block} 0"
        return maker.mapping(MappedDevice("writecache", rounded_up(size_bytes, self.block), arguments))


class Cache(Layer):
    """`kind = "cache"`."""

    modules: ClassVar[tuple[str, ...]] = ("dm_mod", "dm_cache", "dm_cache_smq")
    configuration: ClassVar[str] = "CONFIG_DM_CACHE and CONFIG_DM_CACHE_SMQ"
    keeps_metadata: ClassVar[bool] = True

    kind: Literal["cache"] = option("cache", "dm-cache: blocks that are in use lie on a second device too.")
    cache_size: Bytes = option(8 * MIB, "Size of the cache.", unit="bytes", ge=MIB, le=1 << 40)
    chunk: Bytes = option(64 << 10, "Bytes of a block.", unit="bytes", ge=32 << 10, le=1 << 30)
    mode: Literal["writethrough", "writeback", "passthrough"] = option(
        "writethrough", "Where a write of a block in the cache goes: to both devices, the cache, or the first device."
    )

    width: ClassVar[int] = 2

    @override
    def fault(self) -> tuple[str, str] | None:
        return chunk_fault(self.chunk)

    @override
    def member_bytes(self, size_bytes: int) -> int:
        return max(size_bytes, self._metadata_bytes + self._cache_bytes)

    @property
    def _cache_bytes(self) -> int:
        return rounded_up(self.cache_size, self.chunk)

    @property
    def _metadata_bytes(self) -> int:
        return metadata_bytes(self._cache_bytes // self.chunk)

    @override
    def make(self, members: Sequence[LayerDevice], size_bytes: int, maker: Maker) -> LayerDevice:
        origin, fast = members
        metadata = slice_of(fast, 0, self._metadata_bytes, maker)
        cache = slice_of(fast, self._metadata_bytes, self._cache_bytes, maker)
        of_policy = f"{self.chunk // SECTOR_BYTES} 1 {self.mode} smq 0"
        arguments = f"{metadata.node} {cache.node} {origin.node} {of_policy}"
        return maker.mapping(MappedDevice("cache", size_bytes, arguments))


class Integrity(Layer):
    """`kind = "integrity"`."""

    modules: ClassVar[tuple[str, ...]] = ("dm_mod", "dm_integrity")
    configuration: ClassVar[str] = "CONFIG_DM_INTEGRITY"
    keeps_metadata: ClassVar[bool] = True

    kind: Literal["integrity"] = option(
        "integrity", "dm-integrity: each block has a checksum beside it, which a read compares."
    )
    mode: Literal["journal", "direct", "bitmap"] = option(
        "journal",
        "How block and checksum stay together over a crash: both go to a journal first; not at all; or a bitmap shows "
        "where checksums are to be made again.",
    )
    hash: Literal["crc32", "crc32c", "sha1", "sha256", "xxhash64"] = option("crc32c", "The checksum.")
    block: Literal[512, 1024, 2048, 4096] = option(
        512, "Bytes that have a checksum.", expected="512, 1024, 2048 or 4096"
    )

    @property
    @override
    def needed_modules(self) -> tuple[str, ...]:
        return _HASHES[self.hash][1]

    @override
    def member_bytes(self, size_bytes: int) -> int:
        """With the checksums; a journal of at most 1/128 of the device (DEFAULT_JOURNAL_SIZE_FACTOR in
        drivers/md/dm-integrity.c, 6.1); what is rounded up."""
        checksums = rounded_up(size_bytes, self.block) // self.block * _HASHES[self.hash][0]
        return size_bytes + checksums + size_bytes // 32 + 4 * MIB

    @override
    def make(self, members: Sequence[LayerDevice], size_bytes: int, maker: Maker) -> LayerDevice:
        options = f"3 internal_hash:{self.hash} block_size:{self.block} recalculate"
        arguments = f"{members[0].node} 0 - {self.mode[0].upper()} {options}"
        return maker.mapping(MappedDevice("integrity", rounded_up(size_bytes, self.block), arguments))


_HASHES: dict[str, tuple[int, tuple[str, ...]]] = {
    "crc32": (4, ("crc32_generic",)),
    "crc32c": (4, ("crc32c_generic",)),
    "sha1": (20, ("sha1_generic",)),
    "sha256": (32, ("sha256_generic",)),
    "xxhash64": (8, ("xxhash_generic",)),
}
"""Bytes of a checksum, and the modules that may have it."""


def slice_of(
    device: LayerDevice, start_bytes: int, size_bytes: int, maker: Maker, *, queue: Sequence[tuple[str, str]] = ()
) -> LayerDevice:
    """A part of a device, by dm-linear."""
    return maker.mapping(MappedDevice("linear", size_bytes, f"{device.node} {start_bytes // SECTOR_BYTES}", queue))


def metadata_bytes(blocks: int) -> int:
    """Room for the metadata of so many blocks of a pool or a cache."""
    return max(_METADATA_BYTES_MIN, rounded_up(_METADATA_BYTES_PER_BLOCK * blocks, MIB))


KINDS: tuple[type[Layer], ...] = (Thin, Writecache, Cache, Integrity)
