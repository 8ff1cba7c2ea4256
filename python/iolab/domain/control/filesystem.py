"""Controls of a scratch target's filesystem; each overrides a key of [target]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from iolab.base.errors import InputError
from iolab.base.strict_json import JsonObject
from iolab.domain import filesystem_options
from iolab.domain.control.control import Control, GuestFiles, ModelKeys, amended_filesystem, of_each_drive
from iolab.domain.trial import Trial

BARE = "none"


class FilesystemKind(Control):
    """The filesystem that a scratch device gets before each trial."""

    @override
    def validate(self, value: Any) -> str:
        if value not in (*filesystem_options.NAMES, BARE):
            raise self.expected(value)
        return str(value)

    def validate_for_model(self, value: Any) -> JsonObject | None:
        """`"ext3"`, or `{ kind = "ext3", start_colours = true }`; None: bare. The model has the list of kinds."""
        if value == BARE:
            return None
        table = {"kind": value} if isinstance(value, str) else value
        if not isinstance(table, Mapping) or not isinstance(table.get("kind"), str):
            raise InputError(f'filesystem is {value!r}, expected a name, or a table such as {{ kind = "ext3" }}')
        return dict(table)

    @override
    def on_model(self, value: JsonObject | None, drives: int) -> ModelKeys:
        return of_each_drive(drives, "filesystem", value=value)

    @override
    def on_guest(self, value: str) -> GuestFiles:
        return []

    @override
    def amend(self, trial: Trial, value: str) -> Trial:
        _check_scratch(self, trial)
        if value == BARE and any(phase.takes_devices for phase in trial.phases):
            raise InputError(f"filesystem is {BARE!r}, and the workload works on a filesystem", remedy="leave it out")
        return amended_filesystem(trial, {"filesystem": None if value == BARE else value})


class FilesystemOptions(Control):
    """Options for mkfs, or for mount, of the scratch device's filesystem."""

    @override
    def validate(self, value: Any) -> str:
        if not isinstance(value, str) or "\n" in value:
            raise self.expected(value)
        return value.strip()

    @override
    def on_guest(self, value: str) -> GuestFiles:
        return []

    @override
    def amend(self, trial: Trial, value: str) -> Trial:
        _check_scratch(self, trial)
        if value and getattr(trial.target, "filesystem", None) is None:
            raise InputError(
                f"{self.name} needs a filesystem, the scratch device is bare", remedy='set filesystem = "ext4"'
            )
        return amended_filesystem(trial, {self.name: value})


def _check_scratch(control: Control, trial: Trial) -> None:
    if trial.target.kind != "scratch":
        raise InputError(
            f"{control.name} needs a scratch target: iolab makes filesystems only on devices of its own",
            remedy='set [target] kind = "scratch"',
        )


CONTROLS: tuple[Control, ...] = (
    FilesystemKind(
        "filesystem",
        "Filesystem of the scratch device, made anew for each trial; none leaves the device bare. On a simulated "
        "machine: that of each drive, by name or as a table as in its file.",
        values=f"one of {', '.join((*filesystem_options.NAMES, BARE))}",
        example='"xfs"',
    ),
    FilesystemOptions(
        "mkfs_options",
        "Options added to mkfs. For ext2 to ext4, iolab turns lazy initialisation off; your own -E replaces that.",
        values="a string as on mkfs's command line",
        example='"-b 1024"',
    ),
    FilesystemOptions(
        "mount_options",
        "Options of the mount, instead of the target's.",
        values="a string as for mount -o",
        example='"noatime,discard"',
    ),
)
