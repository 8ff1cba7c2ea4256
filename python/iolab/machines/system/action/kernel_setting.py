"""Kernel settings."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from iolab.machines.system import block, lock
from iolab.machines.system.action.base import Action, CannotUndo, Outcome
from iolab.machines.system.action.path import is_kernels, missing_tree, require_mounted

GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO)
"""What a setting's file states when the device, or the scheduler with this tunable, is no longer there."""

QUEUE = re.compile(r"/sys/block/[^/]+/queue/")
"""A queue's scheduler decides which values its other settings may have."""

SETTINGS = tuple(
    re.compile(pattern)
    for pattern in (
        r"/sys/block/[^/]+/queue/(iosched/)?\w+",
        r"/sys/devices/([^/]+/)+bdi/\w+",
        r"/sys/devices/system/cpu/cpu\d+/cpufreq/scaling_governor",
        r"/sys/devices/system/cpu/cpu\d+/cpuidle/state\d+/disable",
        r"/sys/devices/system/cpu/(cpufreq/boost|intel_pstate/no_turbo)",
        r"/sys/devices/virtual/workqueue/cpumask",
        r"/proc/irq/\d+/smp_affinity_list",
        r"/proc/sys/vm/(dirty_\w+|swappiness)",
        r"/([^/]+/)*(io\.cost\.(qos|model)|memory\.swap\.max)",
    )
)
"""All that iolab itself changes. A new control adds its files here, or `iolab restore` refuses to put them back."""


def is_setting(path: Path) -> bool:
    """Whether iolab changes such files, and the kernel shows it there."""
    return is_named_as_setting(path) and (missing_tree(path) is not None or is_kernels(path))


def is_named_as_setting(path: Path) -> bool:
    """Whether the path is, by its name alone, one of the kernel's files that iolab writes."""
    return ".." not in path.parts and any(pattern.fullmatch(str(path)) for pattern in SETTINGS)


@dataclass(frozen=True)
class WriteFile(Action):
    """A kernel setting was written."""

    path: str
    previous: str

    @property
    @override
    def to_do(self) -> str:
        return f"set {self.path} back to {self.previous}"

    @property
    @override
    def is_iolabs_own(self) -> bool:
        return is_setting(Path(self.path))

    @property
    @override
    def shared(self) -> str | None:
        return lock.shared_by(Path(self.path))

    @property
    @override
    def order(self) -> str | None:
        queue = QUEUE.match(self.path)
        return queue[0] if queue else None

    @override
    def undo(self) -> Outcome | None:
        path = Path(self.path)
        try:
            if self._is_back():
                return None
            path.write_text(self.previous)
            if not self._is_back():
                raise CannotUndo(f"{path} is {block.shown(path)} although {self.previous} was written back")
        except OSError as error:
            if error.errno in GONE:
                require_mounted(path)
                return None
            why = f"cannot set {path} back to {self.previous}: {error.strerror}"
            raise CannotUndo(why, for_good=error.errno == errno.EINVAL) from error
        return Outcome(f"set {path} back to {self.previous}")

    def _is_back(self) -> bool:
        return block.shown(Path(self.path)) == self.previous


@dataclass(frozen=True)
class WriteOneOfTwo(WriteFile):
    """One of two files was written, of which each write to one sets the other to 0. `path` is the one in force before;
    it may have been 0 itself, as the other was."""

    other: str

    def _is_back(self) -> bool:
        return super()._is_back() and block.shown(Path(self.other)) == "0"


@dataclass(frozen=True)
class WriteLine(WriteFile):
    """A device's line was written in a file that has one for each. `previous` begins with the device; the kernel shows
    it with more words than have to be written."""

    def _is_back(self) -> bool:
        wanted = self.previous.split()
        lines = (line.split() for line in Path(self.path).read_text().splitlines())
        found = next((words for words in lines if words[:1] == wanted[:1]), None)
        # No line at all: what the kernel assumes for a device that was never set.
        return found is None or set(wanted) <= set(found)
