"""Layers of md: RAID 0, 1, 5, 6 and 10 by itself, and 4 and 5 under dm-raid, with a journal or without. Levels, layouts
and files are those of Documentation/admin-guide/md.rst and drivers/md/md.c of Linux 6.1; the table is that of
Documentation/admin-guide/device-mapper/dm-raid.rst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from typing_extensions import override

from iolab.base.option import Bytes, option
from iolab.domain.layer.kept import slice_of
from iolab.domain.layer.layer import MIB, SECTOR_BYTES, Array, Layer, LayerDevice, Maker, MappedDevice, rounded_up
from iolab.domain.layer.mapping import chunk_fault

_LEAST = {0: 2, 1: 2, 5: 3, 6: 4, 10: 2}
"""The fewest members of each level."""
_LAYOUTS = {5: 2, 6: 2, 10: 0x102}
"""As mdadm gives them: left-symmetric parity; two near copies."""
_WITH_PARITY = (5, 6)
_DATA_OFFSET_BYTES = MIB
"""The start of each member has room for a bitmap."""
_BITMAP_SECTOR = 8
_BITMAP_BYTES_MAX = _DATA_OFFSET_BYTES // 2
_BITMAP_FLUSH_S = 5
"""As mdadm's --delay: how long a bit stays set after the last write."""

_STRIPES = 256
"""As md keeps by itself: NR_STRIPES of drivers/md/raid5.h."""
_JOURNAL_BYTES_MIN = 4 * MIB
"""MIN_RAID456_JOURNAL_SPACE of drivers/md/dm-raid.c."""
_WITHOUT_DISCARDS = (("discard_max_bytes", "0"),)
"""For a journal: Linux 6.1 (Debian's 6.1.176) never finishes another write once it has discarded a part of one."""


class Raid(Layer):
    """`kind = "raid"`."""

    configuration: ClassVar[str] = (
        "CONFIG_BLK_DEV_MD, CONFIG_MD_RAID0, CONFIG_MD_RAID1, CONFIG_MD_RAID10, CONFIG_MD_RAID456"
    )
    modules: ClassVar[tuple[str, ...]] = ("md_mod",)

    kind: Literal["raid"] = option("raid", "md: an array without a superblock, whose members are in step.")
    level: Literal[0, 1, 5, 6, 10] = option(5, "Level.", expected="0, 1, 5, 6 or 10")
    members: int = option(4, "Number of devices.", ge=2, le=64)
    chunk: Bytes = option(
        512 << 10,
        "Bytes of one member before the next one's turn; without meaning for level 1.",
        unit="bytes",
        ge=4096,
        le=1 << 30,
    )
    bitmap: Bytes | None = option(
        None,
        "Bytes that a bit of the write-intent bitmap stands for; the bitmap lies on each member.",
        unit="bytes",
        ge=4096,
        le=1 << 40,
        default_is="no bitmap",
    )
    stripe_cache: int | None = option(
        None, "Stripes that levels 5 and 6 keep in memory.", ge=17, le=32768, default_is="the kernel's, 256"
    )
    threads: int | None = option(
        None, "Threads that levels 5 and 6 give to each group of CPUs.", ge=0, le=64, default_is="the kernel's, 0"
    )

    @property
    @override
    def width(self) -> int:
        return self.members

    @property
    @override
    def needed_modules(self) -> tuple[str, ...]:
        return ("raid456" if self.level in _WITH_PARITY else f"raid{self.level}",)

    @override
    def fault(self) -> tuple[str, str] | None:
        if self.members < _LEAST[self.level]:
            return "members", f"{self.members} given; RAID {self.level} has at least {_LEAST[self.level]}"
        if self.level == 0 and self.bitmap is not None:
            return "bitmap", "RAID 0 has none: nothing is written twice"
        for name in ("stripe_cache", "threads"):
            if getattr(self, name) is not None and self.level not in _WITH_PARITY:
                return name, f"RAID {self.level} has none; levels 5 and 6 have"
        if self.bitmap is not None and self.bitmap & (self.bitmap - 1):
            return "bitmap", f"{self.bitmap} bytes given; expected a power of two"
        return chunk_fault(self.chunk)

    def _data_bytes(self, size_bytes: int) -> int:
        """Of each member."""
        if self.level == 1:
            return rounded_up(size_bytes, MIB)
        copies = 2 if self.level == 10 else 1
        of_data = self.members - {5: 1, 6: 2}.get(self.level, 0)
        return rounded_up(-(-copies * size_bytes // of_data), max(self.chunk, MIB))

    @override
    def member_bytes(self, size_bytes: int) -> int:
        return _DATA_OFFSET_BYTES + self._data_bytes(size_bytes)

    @override
    def size_fault(self, size_bytes: int) -> tuple[str, str] | None:
        if self.bitmap is None or self._data_bytes(size_bytes) // self.bitmap // 8 <= _BITMAP_BYTES_MAX:
            return None
        room = f"{_BITMAP_BYTES_MAX >> 10} KiB"
        return "bitmap", f"a bit for each {self.bitmap} bytes needs more room than {room}; make it larger"

    @override
    def make(self, members: Sequence[LayerDevice], size_bytes: int, maker: Maker) -> LayerDevice:
        data = self._data_bytes(size_bytes)
        before = [("metadata_version", "none"), ("level", f"raid{self.level}"), ("raid_disks", str(self.members))]
        if self.level != 1:
            before.append(("chunk_size", str(self.chunk)))
        if self.level in _LAYOUTS:
            before.append(("layout", str(_LAYOUTS[self.level])))
        if self.level != 0:
            before.append(("component_size", str(data >> 10)))
        of_member = [("offset", str(_DATA_OFFSET_BYTES // SECTOR_BYTES)), ("size", str(data >> 10))]
        start = [] if self.bitmap is None else _bitmap(self.bitmap)
        # What was never written reads as zeros, whose parity and copies are zeros: the members are in step.
        start += [("resync_start", "none"), ("array_state", "active")]
        if self.stripe_cache is not None:
            start.append(("stripe_cache_size", str(self.stripe_cache)))
        if self.threads is not None:
            start.append(("group_thread_cnt", str(self.threads)))
        return maker.array(Array(before, of_member, start), members)


def _bitmap(chunk_bytes: int) -> list[tuple[str, str]]:
    return [
        ("bitmap/metadata", "external"),
        ("bitmap/chunksize", str(chunk_bytes)),
        ("bitmap/time_base", str(_BITMAP_FLUSH_S)),
        ("bitmap/location", f"+{_BITMAP_SECTOR}"),
    ]


class DmRaid(Layer):
    """`kind = "dm_raid"`. An array of md takes a journal if its superblock names one, and udev would assemble that by
    itself, or if dm-raid makes it, without a superblock. Not RAID 6: dm-raid writes a new one from end to end."""

    modules: ClassVar[tuple[str, ...]] = ("dm_mod", "dm_raid")
    configuration: ClassVar[str] = "CONFIG_DM_RAID"

    kind: Literal["dm_raid"] = option("dm_raid", "dm-raid, as LVM uses it: an array of md inside a mapped device.")
    level: Literal[4, 5] = option(5, "Level.", expected="4 or 5")
    members: int = option(4, "Number of devices, without the journal's.", ge=3, le=63)
    chunk: Bytes = option(
        512 << 10, "Bytes of one member before the next one's turn.", unit="bytes", ge=4096, le=32 << 20
    )
    stripe_cache: int | None = option(
        None,
        "Stripes that are kept in memory, at least one for each KiB of a chunk.",
        ge=17,
        le=32768,
        default_is="256, or as many",
    )
    journal: Literal["writethrough", "writeback"] | None = option(
        None,
        "A device of its own that data and parity are written to before the members, so that a crash between two "
        "members loses nothing (since Linux 4.12). writethrough: a write is done when the members have it; writeback: "
        "when the journal has it.",
        default_is="no journal",
    )
    journal_size: Bytes | None = option(
        None, "Bytes of the journal.", unit="bytes", ge=4 * MIB, le=1 << 40, default_is="as large as a member"
    )

    @property
    @override
    def width(self) -> int:
        return self.members + (self.journal is not None)

    @override
    def fault(self) -> tuple[str, str] | None:
        if self.journal_size is not None and self.journal is None:
            return "journal_size", 'there is no journal; say journal = "writethrough" or "writeback"'
        if self.stripe_cache is not None and self.stripe_cache < self.chunk >> 10:
            return "stripe_cache", f"{self.stripe_cache} given; a chunk of {self.chunk >> 10} KiB takes as many"
        return chunk_fault(self.chunk)

    def _data_bytes(self, size_bytes: int) -> int:
        """Of each member."""
        return rounded_up(-(-size_bytes // (self.members - 1)), max(self.chunk, MIB))

    @override
    def member_bytes(self, size_bytes: int) -> int:
        least = 0 if self.journal is None else self.journal_size or _JOURNAL_BYTES_MIN
        return max(self._data_bytes(size_bytes), least)

    @override
    def make(self, members: Sequence[LayerDevice], size_bytes: int, maker: Maker) -> LayerDevice:
        stripes = self.stripe_cache or max(_STRIPES, self.chunk >> 10)
        # The members are in step, as those of `Raid` are.
        options = [str(self.chunk // SECTOR_BYTES), "nosync", "stripe_cache", str(stripes)]
        if self.journal is not None:
            of_journal = self.journal_size or self.member_bytes(size_bytes)
            journal = slice_of(members[-1], 0, of_journal, maker, queue=_WITHOUT_DISCARDS)
            options += ["journal_dev", journal.node, "journal_mode", self.journal]
        level = "raid4" if self.level == 4 else "raid5_ls"
        of_members = " ".join(f"- {member.node}" for member in members[: self.members])
        arguments = f"{level} {len(options)} {' '.join(options)} {self.members} {of_members}"
        whole = (self.members - 1) * self._data_bytes(size_bytes)
        return maker.mapping(MappedDevice("raid", whole, arguments))


KINDS: tuple[type[Layer], ...] = (Raid, DmRaid)
