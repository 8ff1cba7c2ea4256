"""When dirty pages are written: the machine's thresholds, and a disk's share of them.

Sources: Documentation/admin-guide/sysctl/vm.rst, Documentation/ABI/testing/sysfs-class-bdi, mm/page-writeback.c.
"""

from __future__ import annotations

from typing_extensions import override

from iolab.base.quantity import format_duration_ns, parse_duration_ns
from iolab.domain.control import writeback as declared
from iolab.domain.control.writeback import CENTISECOND_NS, VM
from iolab.machines.host.control import kernel_file
from iolab.machines.host.control.applier import AppliedValue, Applier, Context, queue_device
from iolab.machines.system.action import WriteFile, WriteOneOfTwo
from iolab.machines.system.block import shown
from iolab.machines.system.undo import UndoJournal

PARTS_PER_PERCENT = 10_000
"""Newer kernels show a disk's share in parts of a million too, in a file whose name ends with `_fine`."""


class Threshold(Applier):
    """One half of a pair of files: setting the one sets the other to zero, so what is put back is the one in force."""

    def __init__(self, control: declared.Threshold) -> None:
        super().__init__(control.name)
        self._other = control.other

    @override
    def apply(self, context: Context, value: int) -> AppliedValue:
        before = self._in_force()
        self._journal(before, context.undo)
        # A file that shows 0 may be the one that is not in force.
        even_if_same = self.name not in before
        done = kernel_file.write(self.name, VM / self.name, str(value), None, even_if_same=even_if_same)
        return AppliedValue({name: int(shown) for name, shown in before.items()}, done.applied, done.notes)

    @override
    def read(self, context: Context) -> str:
        return shown(VM / self.name)

    def _in_force(self) -> dict[str, str]:
        kernel_file.check_writable(self.name, VM / self.name)
        values = {name: shown(VM / name) for name in (self.name, self._other)}
        # Both are 0 if the ratio was set to 0.
        return {name: value for name, value in values.items() if value != "0"} or {
            name: value for name, value in values.items() if name.endswith("_ratio")
        }

    def _journal(self, in_force: dict[str, str], undo: UndoJournal) -> None:
        for name, value in in_force.items():
            other = self._other if name == self.name else self.name
            undo.before(WriteOneOfTwo(str(VM / name), value, str(VM / other)))


class Centiseconds(Applier):
    """A time that the kernel keeps in hundredths of a second."""

    def __init__(self, control: declared.Centiseconds) -> None:
        super().__init__(control.name)
        self._path = control.path

    @override
    def apply(self, context: Context, value: str) -> AppliedValue:
        centiseconds = str(parse_duration_ns(value) // CENTISECOND_NS)
        done = kernel_file.write(self.name, self._path, centiseconds, context.undo)
        before, applied = (format_duration_ns(int(text) * CENTISECOND_NS) for text in (done.before, done.applied))
        return AppliedValue(before, applied, done.notes)


class BdiFile(Applier):
    """A number in one file of the disk's bdi directory."""

    @override
    def apply(self, context: Context, value: int) -> AppliedValue:
        path = queue_device(self.name, context).directory / "bdi" / self.name.removeprefix("bdi_")
        fine = path.with_name(f"{path.name}_fine")
        if not fine.exists():
            return kernel_file.write(self.name, path, str(value), context.undo)
        # What it shows in per cent is rounded, so what is put back is the finer number.
        before = shown(fine)
        is_same = before == str(value * PARTS_PER_PERCENT)
        if not is_same:
            context.undo.before(WriteFile(str(fine), before))
        return kernel_file.write(self.name, path, str(value), None, even_if_same=not is_same)


APPLIERS: tuple[Applier, ...] = (
    *(Threshold(one) for one in declared.CONTROLS if isinstance(one, declared.Threshold)),
    *(Centiseconds(one) for one in declared.CONTROLS if isinstance(one, declared.Centiseconds)),
    *(BdiFile(one.name) for one in declared.CONTROLS if isinstance(one, declared.BdiFile)),
)
