"""The filesystems that an experiment comes to, and whether iolab hands on the options that they are to have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from iolab.base.errors import InputError
from iolab.base.problem import Path, Problems
from iolab.domain.experiment import CompiledWorkload
from iolab.domain.filesystem_options import (
    DEFAULT,
    HAVE_LOG_DEVICES,
    HAVE_REALTIME_DEVICES,
    checked_mount_options,
    mkfs_arguments,
)
from iolab.domain.trial import ScratchTarget, Target
from iolab.files.experiment.options import ScratchOptions
from iolab.files.experiment.setting import Setting
from iolab.files.experiment.workloads import Workload

OPTIONS: Mapping[str, Callable[[str, str], object]] = {
    "mkfs_options": mkfs_arguments,
    "mount_options": checked_mount_options,
}
FIELDS = ("filesystem", *OPTIONS)
SIDES = {"log": HAVE_LOG_DEVICES, "realtime": HAVE_REALTIME_DEVICES}


def check(
    target: Target,
    workloads: list[Workload],
    settings: list[Setting],
    under: Mapping[tuple[str, str], CompiledWorkload],
    problems: Problems,
) -> None:
    """Notes settings that a target cannot have, and options that iolab does not hand on, each on its line."""
    if target.kind != "scratch":
        for setting in settings:
            for control in FIELDS:
                if control in setting.controls:
                    what = f'a {target.kind} target keeps the filesystem it has; use [target] kind = "scratch"'
                    problems.add(("settings", setting.written_as, control), what)
    for filesystem in dict.fromkeys(_filesystems(target, workloads, settings, under)):
        _check_options(filesystem, problems)
        if isinstance(target, ScratchTarget):
            _check_sides(filesystem, target, problems)


def check_sides_given(options: ScratchOptions, problems: Problems) -> None:
    """A directory for a device that is not asked for."""
    for side in SIDES:
        if getattr(options, f"{side}_backing") is not None and getattr(options, f"{side}_size") is None:
            problems.add(("target", f"{side}_backing"), f"there is nothing to lie there; give {side}_size too")


@dataclass(frozen=True)
class _GivenText:
    text: str
    path: Path
    """Where in the file."""


@dataclass(frozen=True)
class _Filesystem:
    name: _GivenText
    options: tuple[tuple[str, _GivenText], ...]


def _filesystems(
    target: Target,
    workloads: list[Workload],
    settings: list[Setting],
    under: Mapping[tuple[str, str], CompiledWorkload],
) -> Iterator[_Filesystem]:
    for setting in settings:
        for workload in workloads:
            options = under.get((workload.name, setting.name), workload.compiled).options
            makes_its_own = "mkfs_options" in type(options).model_fields
            given = {key: found for key in FIELDS if (found := _given(key, target, workload, options, setting))}
            if "filesystem" not in given and makes_its_own:
                given["filesystem"] = _GivenText(DEFAULT, ("workloads", workload.written_as))
            if "filesystem" in given and (makes_its_own or target.kind == "scratch"):
                chosen = tuple((key, given[key]) for key in OPTIONS if key in given)
                yield _Filesystem(given["filesystem"], chosen)


def _given(key: str, target: Target, workload: Workload, options: object, setting: Setting) -> _GivenText | None:
    """A setting's control precedes the workload's value, and that precedes the target's."""
    path: Path
    if key in setting.controls:
        value, path = setting.controls[key], ("settings", setting.written_as, key)
    elif (value := getattr(options, key, None)) is not None:
        path = setting.change_paths.get(key, ("workloads", workload.written_as, key))
    else:
        value, path = getattr(target, key, None), ("target", key)
    return None if value in (None, "none") else _GivenText(value, path)


def _check_options(filesystem: _Filesystem, problems: Problems) -> None:
    for key, given in filesystem.options:
        try:
            OPTIONS[key](filesystem.name.text, given.text)
        except InputError as error:
            problems.add(given.path, f"{error.what}; {error.remedy}" if error.remedy else error.what)


def _check_sides(filesystem: _Filesystem, target: ScratchTarget, problems: Problems) -> None:
    for side, names in SIDES.items():
        if getattr(target, side) is not None and filesystem.name.text not in names:
            what = f"{filesystem.name.text} takes no {side}_size"
            problems.add(filesystem.name.path, f"{what}; the filesystems that do: {', '.join(names)}")
