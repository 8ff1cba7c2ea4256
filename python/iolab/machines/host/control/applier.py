"""What brings this machine to the value of a control (domain/control), and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iolab.base.errors import InputError
from iolab.domain.trial import Phase
from iolab.machines.system.block import BlockDevice
from iolab.machines.system.cgroup import Cgroup
from iolab.machines.system.undo import UndoJournal


@dataclass(frozen=True)
class Context:
    """What an applier acts on while a trial is prepared."""

    label: str
    """The user's name for the target."""
    device: BlockDevice | None
    """Whose queue the I/O goes through."""
    undo: UndoJournal
    until_end: ExitStack = field(default_factory=ExitStack)
    """Left when the trial ends: for what the kernel itself takes back from a process that dies."""
    before_undo: ExitStack = field(default_factory=ExitStack)
    """Left before anything is taken back: for processes that would be in its way."""
    groups: dict[str, Cgroup] = field(default_factory=dict)
    """Control groups that the trial's process joins for measured phases, by their hierarchy's root."""
    notes: list[str] = field(default_factory=list)
    """The trial's notes, for facts that are known only when it is over."""
    path: Path = Path("/")
    """The target's directory, file or device."""


@dataclass(frozen=True)
class AppliedValue:
    """Values as the kernel shows them, read back after the change."""

    before: Any
    applied: Any
    notes: tuple[str, ...] = ()


class Applier(ABC):
    """Applies one control to this machine."""

    def __init__(self, name: str) -> None:
        self.name = name
        """The control's."""

    @abstractmethod
    def apply(self, context: Context, value: Any) -> AppliedValue:
        """Changes the machine, journaled first.

        Raises:
            MachineError: it cannot be changed here; names what would make it possible.
            InputError: the kernel knows no such value.
        """

    def place(self, phases: Sequence[Phase], applied: Any) -> Sequence[Phase]:
        """The phases with what was only known once the control was applied.

        Raises:
            UnsupportedSetting: one of them cannot be run so.
        """
        return phases

    def read(self, context: Context) -> Any:
        """The value in force; None without one."""
        return None


def queue_device(control: str, context: Context) -> BlockDevice:
    """The disk whose queue the target's I/O goes through. InputError if there is none."""
    if context.device is None:
        raise InputError(
            f"{control}: this target has no block device of its own (tmpfs, overlay or network filesystem)",
            where=context.label,
            remedy='use [target] kind = "scratch", or a directory on a disk',
        )
    return context.device.disk
