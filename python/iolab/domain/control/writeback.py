"""Controls of when dirty pages are written: the machine's thresholds, and a disk's share of them.

Sources: Documentation/admin-guide/sysctl/vm.rst, Documentation/ABI/testing/sysfs-class-bdi, mm/page-writeback.c.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from iolab.base.errors import InputError
from iolab.base.quantity import format_duration_ns, parse_bytes, parse_duration_ns
from iolab.domain.control.control import Control, GuestFiles, ModelKeys, Number, Range, whole_number
from iolab.domain.trial.target import Reach

VM = Path("/proc/sys/vm")
CENTISECOND_NS = 10_000_000


class Threshold(Number):
    """One half of a pair of files: setting the one sets the other to zero, so what is put back is the one in force."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"machine"})

    def __init__(self, name: str, help: str, *, other: str, **words: Any) -> None:
        super().__init__(name, help, at_most=100, excludes=(other,), **words)
        self.other = other
        """The half that is not in force then."""

    @override
    def on_model(self, value: int, drives: int) -> ModelKeys | None:
        return {("memory", self.name.replace("_ratio", "_percent")): value}

    @override
    def on_guest(self, value: int) -> GuestFiles:
        return [(str(VM / self.name), str(value))]


class ThresholdBytes(Threshold):
    """A dirty threshold in bytes; the kernel then ignores the ratio of the same name."""

    @override
    def validate(self, value: Any) -> int:
        if isinstance(value, str):
            try:
                value = parse_bytes(value)
            except ValueError as error:
                raise InputError(f"{self.name}: {error}") from error
        return whole_number(self, value, at_least=1)

    @override
    def on_model(self, value: int, drives: int) -> ModelKeys | None:
        return None


class Centiseconds(Control):
    """A time that the kernel keeps in hundredths of a second."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"machine"})

    def __init__(self, name: str, help: str, *, file: str, model_key: str, **words: Any) -> None:
        super().__init__(name, help, **words)
        self.path = VM / file
        self._model_key = model_key

    @override
    def validate(self, value: Any) -> str:
        if not isinstance(value, str):
            raise self.expected(value)
        try:
            duration_ns = parse_duration_ns(value)
        except ValueError as error:
            raise InputError(f"{self.name}: {error}") from error
        if duration_ns % CENTISECOND_NS:
            raise InputError(f"{self.name} is {value!r}, expected a multiple of 10ms: the kernel's unit")
        return format_duration_ns(duration_ns)

    @override
    def on_model(self, value: str, drives: int) -> ModelKeys:
        return {("memory", self._model_key): parse_duration_ns(value)}

    @override
    def on_guest(self, value: str) -> GuestFiles:
        return [(str(self.path), str(parse_duration_ns(value) // CENTISECOND_NS))]


class BdiFile(Number):
    """A number in one file of the disk's bdi directory."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"queue"})

    @override
    def on_guest(self, value: int) -> GuestFiles:
        return [(f"{{disk}}/bdi/{self.name.removeprefix('bdi_')}", str(value))]


CONTROLS: tuple[Control, ...] = (
    Threshold(
        "dirty_ratio",
        "Share of the available memory that may be dirty before a writer must write pages itself; machine-wide.",
        other="dirty_bytes",
        values="a whole number from 0 to 100",
        unit="%",
        example="10",
        tried=Range(5, 60),
    ),
    ThresholdBytes(
        "dirty_bytes",
        "The same threshold in bytes; machine-wide.",
        other="dirty_ratio",
        values="a size from two pages, like '64MiB'",
        unit="bytes",
        example='"64MiB"',
        tried=Range("16MiB", "1GiB", log=True),
    ),
    Threshold(
        "dirty_background_ratio",
        "Share of the available memory that may be dirty before the kernel writes in the background; machine-wide.",
        other="dirty_background_bytes",
        values="a whole number from 0 to 100",
        unit="%",
        example="5",
        tried=Range(1, 30),
    ),
    ThresholdBytes(
        "dirty_background_bytes",
        "The same threshold in bytes; machine-wide.",
        other="dirty_background_ratio",
        values="a size, like '16MiB'",
        unit="bytes",
        example='"16MiB"',
        tried=Range("4MiB", "256MiB", log=True),
    ),
    Centiseconds(
        "dirty_expire",
        "Age at which dirty pages are written, at the next wake-up of the kernel's flusher; machine-wide.",
        file="dirty_expire_centisecs",
        model_key="dirty_expire_ns",
        values="a duration, a multiple of 10ms",
        example='"30s"',
        tried=Range("1s", "64s", log=True),
    ),
    Centiseconds(
        "dirty_writeback",
        "Interval between wake-ups of the kernel's flusher; 0s: no periodic wake-up; machine-wide.",
        file="dirty_writeback_centisecs",
        model_key="dirty_writeback_interval_ns",
        values="a duration, a multiple of 10ms",
        example='"5s"',
        tried=Range("1s", "16s", log=True),
    ),
    BdiFile(
        "bdi_min_ratio",
        "Minimum share of the dirty pages for the disk.",
        at_most=100,
        values="a whole number from 0 to 100",
        unit="%",
        example="10",
    ),
    BdiFile(
        "bdi_max_ratio",
        "Maximum share of the dirty pages for the disk; with bdi_strict_limit always in force, else only when memory "
        "is short.",
        at_most=100,
        values="a whole number from 1 to 100",
        unit="%",
        example="20",
    ),
    BdiFile(
        "bdi_strict_limit",
        "Whether the disk's share is always in force: 0 or 1.",
        at_most=1,
        values="0 or 1",
        example="1",
    ),
)
