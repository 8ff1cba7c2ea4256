"""Controls of what only a simulated or a guest machine lets one choose: its kernel, and any key of its file
(docs/reference/machines.md) or of the table [guest] (docs/guest.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from iolab.base.errors import InputError
from iolab.base.toml import TomlTable
from iolab.domain.control.control import Control, GuestFiles, ModelKeys, of_each_drive
from iolab.domain.trial import Trial


class ModelControl(Control):
    """A control that only simulated machines have."""

    of_models_only: ClassVar[bool] = True

    @override
    def amend(self, trial: Trial, value: Any) -> Trial:
        if trial.guest is not None and self.on_guest(value) is not None:
            return trial
        raise InputError(f"{self.name} is for simulated machines only", remedy='set machine = "model:NAME"')

    @override
    def on_guest(self, value: Any) -> GuestFiles | None:
        return None


class OwnMachine(ModelControl):
    """A control that simulated and guest machines have; the experiment's reader works it into the guest machine."""

    @override
    def on_guest(self, value: Any) -> GuestFiles:
        return []


class Kernel(OwnMachine):
    """The kernel whose I/O path the simulated machine has, or that the guest machine boots."""

    @override
    def validate(self, value: Any) -> str:
        if not isinstance(value, str) or not value:
            raise self.expected(value)
        return value

    @override
    def on_model(self, value: str, drives: int) -> ModelKeys:
        return {("kernel",): value}


class MachineKeys(OwnMachine):
    """Keys of the machine's file, or of a guest's table, with the values that a setting gives them."""

    def validate(self, value: Any) -> TomlTable:
        """By dotted path; tables inside the table are the same as dots."""
        if not isinstance(value, Mapping) or not value:
            raise self.expected(value)
        found = {".".join(path): found for path, found in _flat(value, ())}
        for path, inner in found.items():
            if isinstance(inner, Mapping):
                raise InputError(f"{path}: an empty table changes nothing; expected keys with values")
        return found

    @override
    def on_model(self, value: Mapping[str, Any], drives: int) -> ModelKeys:
        return {tuple(path.split(".")): found for path, found in value.items()}


class PatchedAffinity(ModelControl):
    """A knob of the patches of 2008, which no kernel has had since."""

    def __init__(self, name: str, help: str, *, part: str, **words: Any) -> None:
        super().__init__(name, help, values='-1 for off, a CPU number, or "interrupt"', excludes=("affinity",), **words)
        self._part = part

    @override
    def validate(self, value: Any) -> int | str:
        if value == "interrupt" or (isinstance(value, int) and not isinstance(value, bool) and value >= -1):
            assert isinstance(value, int | str)
            return value
        raise self.expected(value)

    @override
    def on_model(self, value: int | str, drives: int) -> ModelKeys:
        return of_each_drive(drives, "affinity", self._part, value=None if value == -1 else value)


def _flat(table: Mapping[str, Any], prefix: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    found = []
    for key, value in table.items():
        path = (*prefix, key)
        found += _flat(value, path) if isinstance(value, Mapping) and value else [(path, value)]
    return found


CONTROLS: tuple[Control, ...] = (
    Kernel(
        "kernel",
        "Kernel of a simulated machine, instead of its file's; for a guest machine, the kernel that it boots.",
        values="a version that the model knows; for a guest as after guest:",
        example='"2.6.35"',
    ),
    MachineKeys(
        "machine",
        "Any key of a simulated machine's file, or of a guest's table [guest], by its dotted path.",
        values="a table of keys and values",
        example='{ "cpus.count" = 1, "drives.0.device" = "atlas_10k_v" }',
    ),
    PatchedAffinity(
        "queue_affinity",
        "CPU that puts bios into the queue, under the simulated kernels that have the patches of 2008.",
        part="queue",
        example='"interrupt"',
    ),
    PatchedAffinity(
        "completion_affinity",
        "CPU that completes requests, under the same kernels.",
        part="completion",
        example="0",
    ),
)
