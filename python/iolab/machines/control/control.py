"""What a control is: one thing about the machine or the target that a setting may change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from iolab.base import plain_text
from iolab.base.errors import InputError, MachineError
from iolab.domain.trial.target import Reach

if TYPE_CHECKING:
    from iolab.domain.trial import Phase, Trial
    from iolab.machines.system.block import BlockDevice
    from iolab.machines.system.cgroup import Cgroup
    from iolab.machines.system.undo import UndoJournal

ModelKeys = Mapping[tuple[str, ...], Any]
"""Paths of keys in a simulated machine's file, such as ("drives", "0", "queue", "nr_requests"), with their values."""


GuestFiles = list[tuple[str, str]]
"""Kernel files of a guest machine with what is written to each. `{queue}` is a drive's queue directory, `{disk}` its
own."""


class UnsupportedSetting(MachineError):
    """What a setting asks for is not to be had from this device or kernel, and there is nothing to be done about it:
    the trial is not run, and the run goes on without it."""

    control = ""
    """The name of the control that reports it."""


@dataclass(frozen=True)
class Context:
    """What a control acts on while a trial is prepared."""

    label: str
    """The target as a user knows it."""
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
    """Of the trial: for what is known only when it is over."""
    path: Path = Path("/")
    """The target's directory, file or device."""


@dataclass(frozen=True)
class Range:
    """What is worth trying of a control that takes any number. `log`: each value twice the one before."""

    low: int | str
    high: int | str
    log: bool = False


@dataclass(frozen=True)
class Applied:
    """Values as the kernel shows them, read back after the change."""

    before: Any
    applied: Any
    notes: tuple[str, ...] = ()


class Control(ABC):
    """`validate` needs no machine; then a control either amends the trial, or applies itself to the device, or both."""

    reach: ClassVar[frozenset[Reach]] = frozenset()
    """What it changes that other runs share: the device's queue, so it is applied to each of the target's devices, or
    the whole machine."""
    takes_list: ClassVar[bool] = False
    """Whether one value is itself a list; a list of values is a matrix otherwise."""
    of_models_only: ClassVar[bool] = False
    """Whether it means nothing on a machine that is not simulated."""

    def __init__(
        self,
        name: str,
        help: str,
        *,
        values: str,
        unit: str | None = None,
        example: str,
        excludes: tuple[str, ...] = (),
        tried: Range | tuple[Any, ...] | None = None,
    ) -> None:
        self.name = name
        self.help = help
        self.values = values
        """What may be given, for people."""
        self.unit = unit
        self.example = example
        """One TOML value."""
        self.excludes = excludes
        """Other controls that the same setting cannot have."""
        self.tried = tried
        """What `iolab tune` tries of it where an experiment gives no values; None: it has to give some."""

    @abstractmethod
    def validate(self, value: Any) -> Any:
        """The normalized value; validating it again changes nothing.

        Raises:
            InputError: states what was expected.
        """

    def amend(self, trial: Trial, value: Any) -> Trial:
        """The trial with this control in its target or phases.

        Raises:
            InputError: the control has no meaning for this target.
        """
        return trial

    def validate_for_model(self, value: Any) -> Any:
        """`validate` for a simulated machine, which may know other words."""
        return self.validate(value)

    def on_model(self, value: Any, drives: int) -> ModelKeys | None:
        """What a simulated machine's file (docs/reference/machines.md) says under this control, of all its drives.
        Nothing: the control amends the trial. None: the model has no mechanism for it."""
        return None

    def on_guest(self, value: Any) -> GuestFiles | None:
        """What is written in a guest machine before its phases. Nothing: the control amends the trial, or the machine.
        None: it has no meaning there, or none yet."""
        return [] if type(self).apply is Control.apply else None

    def apply(self, context: Context, value: Any) -> Applied | None:
        """Changes the machine, journaled first; None when there is nothing to change.

        Raises:
            MachineError: it cannot be changed here; names what would make it possible.
            InputError: the kernel knows no such value.
        """
        return None

    def place(self, phases: Sequence[Phase], applied: Any) -> Sequence[Phase]:
        """The phases with what was only known once the control was applied.

        Raises:
            UnsupportedSetting: one of them cannot be run so.
        """
        return phases

    def axis(self, path: tuple[str, ...], value: Any) -> str | None:
        """How a matrix's member is named after one value of this control; None: as any other key."""
        return None

    def read(self, context: Context) -> Any:
        """The value in force, None if there is none."""
        return None

    def expected(self, value: Any) -> InputError:
        """The error for a value that the control does not take, with an example. Raised by the caller."""
        unit = f" ({self.unit})" if self.unit else ""
        return InputError(f"{self.name}{unit} is {value!r}, expected {self.values}", remedy=f"e.g. {self.example_line}")

    @property
    def example_line(self) -> str:
        """A line of an experiment's setting that gives the control."""
        return f"{self.name} = {self.example}"


def whole_number(control: Control, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """An integer in a range; a string of digits will do."""
    if isinstance(value, str) and (number := plain_text.whole_number(value.strip())) is not None:
        value = number
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise control.expected(value)
    if at_most is not None and value > at_most:
        raise control.expected(value)
    return value


def queue_device(control: Control, context: Context) -> BlockDevice:
    """The disk whose queue the target's I/O goes through. InputError if there is none."""
    if context.device is None:
        raise InputError(
            f"{control.name}: this target has no block device of its own (tmpfs, overlay or network filesystem)",
            where=context.label,
            remedy='use [target] kind = "scratch", or a directory on a disk',
        )
    return context.device.disk


def of_each_drive(drives: int, *key: str, value: Any) -> ModelKeys:
    """The same value under a key of every drive."""
    return {("drives", str(drive), *key): value for drive in range(drives)}


def amended_filesystem(trial: Trial, changes: Mapping[str, str | None]) -> Trial:
    """The trial with fields of its scratch target changed, and of phases that make filesystems themselves."""
    target = trial.target.model_copy(update=dict(changes))
    return trial.model_copy(
        update={"target": target, "phases": [phase.on_filesystem(changes) for phase in trial.phases]}
    )
