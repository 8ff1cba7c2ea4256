"""What a layer is: a block device of the kernel's on top of others (device mapper, md), as an experiment gives it, and
how a stack of them is made, from the drives up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from iolab.base.option import Options

SECTOR_BYTES = 512
"""The unit of device mapper's tables and of md's offsets, whatever sectors the drives have."""
MIB = 1 << 20


@dataclass(frozen=True)
class LayerDevice:
    """A block device in a stack: a drive, or one that a layer made."""

    name: str
    """The kernel's, as in /sys/block."""
    node: str


@dataclass(frozen=True)
class MappedDevice:
    """A device of device mapper."""

    target: str
    """The kind of its one target, such as `crypt`."""
    bytes: int
    arguments: str
    """What the target's line in the table has after its kind."""
    queue: Sequence[tuple[str, str]] = ()
    """Files in its directory `queue`, with what is written to each."""

    @property
    def table(self) -> str:
        """As `dmsetup create --table` takes it."""
        return f"0 {self.bytes // SECTOR_BYTES} {self.target} {self.arguments}"


@dataclass(frozen=True)
class Array:
    """An array of md without a superblock, as its files in sysfs make it (Documentation/admin-guide/md.rst, 6.1): no
    program is needed, nothing is written to a member, and so nothing of it is left there."""

    before: Sequence[tuple[str, str]]
    """Files in the array's directory `md`, with what is written to each, before it has members."""
    of_member: Sequence[tuple[str, str]]
    """Files of each member."""
    start: Sequence[tuple[str, str]]
    """Those that start it, and what can be set only then."""


@dataclass(frozen=True)
class CacheSet:
    """A device of bcache with its cache: each is told apart by the superblock that it begins with."""

    superblocks: Sequence[tuple[LayerDevice, bytes]]
    """In the order in which they are registered."""
    superblock_at: int
    """In bytes from the device's start."""
    settings: Sequence[tuple[str, str]]
    """Files in the made device's directory `bcache`, with what is written to each."""


class Maker(Protocol):
    """Makes devices, in a guest machine or on this one."""

    def drive(self) -> LayerDevice:
        """The next drive, of `drive_bytes`."""

    def mapping(self, made: MappedDevice) -> LayerDevice:
        """A device of device mapper."""

    def message(self, device: LayerDevice, text: str) -> None:
        """What a device of device mapper is told once it is there."""

    def array(self, made: Array, members: Sequence[LayerDevice]) -> LayerDevice:
        """An array of md."""

    def cache_set(self, made: CacheSet) -> LayerDevice:
        """A device of bcache."""


class Layer(Options, ABC):
    """The options of a layer. `kind` is the first of each."""

    modules: ClassVar[tuple[str, ...]]
    """The kernel's modules that have it."""
    configuration: ClassVar[str]
    """The kernel's option that builds them."""
    keeps_metadata: ClassVar[bool] = False
    """Whether it reads what it wrote to its devices."""
    guests_only: ClassVar[bool] = False
    """Whether it works on guest machines only."""

    @property
    def width(self) -> int:
        """The number of devices that it lies on."""
        return 1

    @property
    def needed_modules(self) -> tuple[str, ...]:
        """Those that it uses besides, if the kernel has them as modules."""
        return ()

    def fault(self) -> tuple[str, str] | None:
        """Key and text of what is wrong with options that are right on their own."""
        return None

    def size_fault(self, size_bytes: int) -> tuple[str, str] | None:
        """Key and text of what is wrong if it is to hold so much."""
        return None

    def member_bytes(self, size_bytes: int) -> int:
        """The size that each of its devices needs for the layer to hold `size_bytes`."""
        return size_bytes

    @abstractmethod
    def make(self, members: Sequence[LayerDevice], size_bytes: int, maker: Maker) -> LayerDevice:
        """Its device, which holds `size_bytes` or a little more."""


def rounded_up(size: int, unit: int) -> int:
    """The next multiple of `unit`."""
    return -(-size // unit) * unit
