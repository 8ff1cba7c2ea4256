"""Controls of when dirty pages are written: the machine's thresholds, and a disk's share of them.

Sources: Documentation/admin-guide/sysctl/vm.rst, Documentation/ABI/testing/sysfs-class-bdi, mm/page-writeback.c.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from iolab.control import kernel_file
from iolab.control.control import Applied, Context, Control, ModelKeys, Reach, queue_device, whole_number
from iolab.errors import InputError

if TYPE_CHECKING:
    from iolab.machine.undo import UndoJournal

VM = Path("/proc/sys/vm")
CENTISECOND_NS = 10_000_000


class Threshold(Control):
    """One half of a pair of files: setting the one sets the other to zero, so what is put back is the one in force."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"machine"})

    def __init__(self, name: str, help: str, *, other: str, **words: Any) -> None:
        super().__init__(name, help, excludes=(other,), **words)
        self._other = other

    def validate(self, value: Any) -> int:
        return whole_number(self, value, at_least=0, at_most=100)

    def on_model(self, value: int, drives: int) -> ModelKeys | None:
        return {("memory", self.name.replace("_ratio", "_percent")): value}

    def apply(self, context: Context, value: int) -> Applied:
        before = self._in_force()
        _journal(before, context.undo)
        done = kernel_file.write(self.name, VM / self.name, str(value), None)
        return Applied({name: int(shown) for name, shown in before.items()}, done.applied, done.notes)

    def read(self, context: Context) -> str:
        from iolab.machine.block import shown

        return shown(VM / self.name)

    def _in_force(self) -> dict[str, str]:
        from iolab.machine.block import shown

        kernel_file.check_writable(self.name, VM / self.name)
        values = {name: shown(VM / name) for name in (self.name, self._other)}
        return {name: value for name, value in values.items() if value != "0"}


class ThresholdBytes(Threshold):
    def validate(self, value: Any) -> int:
        return _bytes(self, value, at_least=1)

    def on_model(self, value: int, drives: int) -> ModelKeys | None:
        return None


class Centiseconds(Control):
    """A time that the kernel keeps in hundredths of a second."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"machine"})

    def __init__(self, name: str, help: str, *, file: str, model_key: str, **words: Any) -> None:
        super().__init__(name, help, **words)
        self._path = VM / file
        self._model_key = model_key

    def validate(self, value: Any) -> str:
        from iolab.units import format_duration_ns, parse_duration_ns

        if not isinstance(value, str):
            raise self.expected(value)
        try:
            duration_ns = parse_duration_ns(value)
        except ValueError as error:
            raise InputError(f"{self.name}: {error}") from error
        if duration_ns % CENTISECOND_NS:
            raise InputError(f"{self.name} is {value!r}, expected a multiple of 10ms: the kernel's unit")
        return format_duration_ns(duration_ns)

    def on_model(self, value: str, drives: int) -> ModelKeys:
        from iolab.units import parse_duration_ns

        return {("memory", self._model_key): parse_duration_ns(value)}

    def apply(self, context: Context, value: str) -> Applied:
        from iolab.units import format_duration_ns, parse_duration_ns

        centiseconds = str(parse_duration_ns(value) // CENTISECOND_NS)
        done = kernel_file.write(self.name, self._path, centiseconds, context.undo)
        before, applied = (format_duration_ns(int(text) * CENTISECOND_NS) for text in (done.before, done.applied))
        return Applied(before, applied, done.notes)


class BdiFile(Control):
    """A number in one file of the disk's bdi directory."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"queue"})

    def __init__(self, name: str, help: str, *, at_most: int, **words: Any) -> None:
        super().__init__(name, help, **words)
        self._at_most = at_most

    def validate(self, value: Any) -> int:
        return whole_number(self, value, at_least=0, at_most=self._at_most)

    def apply(self, context: Context, value: int) -> Applied:
        path = queue_device(self, context).directory / "bdi" / self.name.removeprefix("bdi_")
        return kernel_file.write(self.name, path, str(value), context.undo)


def _bytes(control: Control, value: Any, *, at_least: int) -> int:
    from iolab.units import parse_bytes

    if isinstance(value, str):
        try:
            value = parse_bytes(value)
        except ValueError as error:
            raise InputError(f"{control.name}: {error}") from error
    return whole_number(control, value, at_least=at_least)


def _journal(in_force: dict[str, str], undo: UndoJournal) -> None:
    from iolab.machine.action import WriteFile

    for name, value in in_force.items():
        undo.before(WriteFile(str(VM / name), value))


CONTROLS: tuple[Control, ...] = (
    Threshold(
        "dirty_ratio",
        "Dirty pages from which a writer has to write them itself, of the memory that can be had; machine-wide.",
        other="dirty_bytes",
        values="a whole number from 0 to 100",
        unit="%",
        example="10",
    ),
    ThresholdBytes(
        "dirty_bytes",
        "The same threshold in bytes; machine-wide.",
        other="dirty_ratio",
        values="a size from two pages, like '64MiB'",
        unit="bytes",
        example='"64MiB"',
    ),
    Threshold(
        "dirty_background_ratio",
        "Dirty pages from which the kernel starts to write them in the background; machine-wide.",
        other="dirty_background_bytes",
        values="a whole number from 0 to 100",
        unit="%",
        example="5",
    ),
    ThresholdBytes(
        "dirty_background_bytes",
        "The same threshold in bytes; machine-wide.",
        other="dirty_background_ratio",
        values="a size, like '16MiB'",
        unit="bytes",
        example='"16MiB"',
    ),
    Centiseconds(
        "dirty_expire",
        "Age from which dirty pages are written at the next wake-up of the kernel's flusher; machine-wide.",
        file="dirty_expire_centisecs",
        model_key="dirty_expire_ns",
        values="a duration, a multiple of 10ms",
        example='"30s"',
    ),
    Centiseconds(
        "dirty_writeback",
        "How often the kernel's flusher wakes up; 0s: never by itself; machine-wide.",
        file="dirty_writeback_centisecs",
        model_key="dirty_writeback_interval_ns",
        values="a duration, a multiple of 10ms",
        example='"5s"',
    ),
    BdiFile(
        "bdi_min_ratio",
        "Share of the dirty pages that the disk is granted at least.",
        at_most=100,
        values="a whole number from 0 to 100",
        unit="%",
        example="10",
    ),
    BdiFile(
        "bdi_max_ratio",
        "Share of the dirty pages that the disk may have at most; in force with bdi_strict_limit at any time, else "
        "when memory is short.",
        at_most=100,
        values="a whole number from 1 to 100",
        unit="%",
        example="20",
    ),
    BdiFile(
        "bdi_strict_limit",
        "Whether the disk's share holds at any time: 0 or 1.",
        at_most=1,
        values="0 or 1",
        example="1",
    ),
)
