"""What a control is: one thing about the machine or the target that a setting may change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from iolab.base import plain_text
from iolab.base.errors import InputError, MachineError
from iolab.domain.trial import Trial
from iolab.domain.trial.target import Reach

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
class Range:
    """What is worth trying of a control that takes any number. `log`: each value twice the one before."""

    low: int | str
    high: int | str
    log: bool = False


class Control(ABC):
    """Says what a setting may give, and what it is to a trial, to a simulated machine's file and to a guest's kernel.
    What changes this machine is in machines/host/control, under the same name."""

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
        """The values that `iolab tune` tries if an experiment gives none; None: it has to give some."""

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
        """The values of a simulated machine's file (docs/reference/machines.md) under this control, for all its drives.
        Nothing: the control amends the trial. None: the model has no mechanism for it."""
        return None

    def on_guest(self, value: Any) -> GuestFiles | None:
        """What is written in a guest machine before its phases. Nothing: the control amends the trial, or the machine.
        None: it has no meaning there, or none yet."""
        return None

    def axis(self, path: tuple[str, ...], value: Any) -> str | None:
        """How a matrix's member is named after one value of this control; None: as any other key."""
        return None

    def expected(self, value: Any) -> InputError:
        """The error for a value that the control does not take, with an example. Raised by the caller."""
        unit = f" ({self.unit})" if self.unit else ""
        return InputError(f"{self.name}{unit} is {value!r}, expected {self.values}", remedy=f"e.g. {self.example_line}")

    @property
    def example_line(self) -> str:
        """A line of an experiment's setting that gives the control."""
        return f"{self.name} = {self.example}"


class Number(Control):
    """A whole number in a range."""

    def __init__(self, name: str, help: str, *, at_least: int = 0, at_most: int | None = None, **words: Any) -> None:
        super().__init__(name, help, **words)
        self._at_least = at_least
        self._at_most = at_most

    @override
    def validate(self, value: Any) -> int:
        return whole_number(self, value, at_least=self._at_least, at_most=self._at_most)


class Switch(Control):
    """On or off."""

    @override
    def validate(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self.expected(value)
        return value


def whole_number(control: Control, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """An integer in a range; a string of digits will do."""
    if isinstance(value, str) and (number := plain_text.whole_number(value.strip())) is not None:
        value = number
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise control.expected(value)
    if at_most is not None and value > at_most:
        raise control.expected(value)
    return value


def of_each_drive(drives: int, *key: str, value: Any) -> ModelKeys:
    """The same value under a key of every drive."""
    return {("drives", str(drive), *key): value for drive in range(drives)}


def amended_filesystem(trial: Trial, changes: Mapping[str, str | None]) -> Trial:
    """The trial with fields of its scratch target changed, and of phases that make filesystems themselves."""
    target = trial.target.model_copy(update=dict(changes))
    return trial.model_copy(
        update={"target": target, "phases": [phase.on_filesystem(changes) for phase in trial.phases]}
    )
