"""The paths of the suite: experiments that come with iolab, and what their counts depend on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from iolab.base import data
from iolab.base.errors import InputError, nearest
from iolab.base.toml import TomlTable, parse, write
from iolab.domain.cost.report import KernelVersion
from iolab.domain.cost.unseen import Circumstances
from iolab.domain.machine import Guest
from iolab.files.experiment import Experiment, loads
from iolab.files.experiment.parse import read_text

WORKLOAD = "path"
"""As each of the experiments names its only workload."""


@dataclass(frozen=True)
class SuitePath:
    """A path."""

    name: str
    title: str
    file: Path


def suite() -> list[SuitePath]:
    """All paths, sorted by name."""
    return [
        SuitePath(name, str(parse(file.read_text(), str(file)).values["title"]), file)
        for name, file in data.cost_paths().items()
    ]


def chosen(patterns: Sequence[str]) -> list[SuitePath]:
    """The paths whose names fit any of the patterns, such as `null-*`; without patterns, all. InputError: a pattern
    fits none."""
    known = suite()
    for pattern in patterns:
        if not any(fnmatchcase(one.name, pattern) for one in known):
            close = nearest(pattern, [one.name for one in known])
            hint = f"did you mean {close}? " if close else ""
            raise InputError(
                f"{pattern}: no path has such a name", where="--paths", remedy=f"{hint}iolab list paths shows all"
            )
    return [one for one in known if not patterns or any(fnmatchcase(one.name, pattern) for pattern in patterns)]


def text_of(path: SuitePath, kernels: Sequence[KernelVersion], rounds: int, config: str | None, *, memory: bool) -> str:
    """The path's experiment with a setting for each kernel, the first of which is the baseline."""
    document = parse(read_text(path.file), str(path.file)).values
    settings = document.get("settings")
    beside: TomlTable = next(iter(settings.values()), {}) if isinstance(settings, dict) else {}
    first = kernels[0]
    guest = document.get("guest", {})
    changed: TomlTable = {
        **document,
        "machine": f"guest:{first.kernel}",
        "rounds": rounds,
        "guest": {**(guest if isinstance(guest, dict) else {}), **({"config": config} if config else {})},
        "settings": {one.setting: {**beside, "kernel": one.kernel} for one in kernels},
    }
    if memory:
        changed["probes"] = {"instructions": {"memory": True}}
    heading = f"# The path {path.name} of `iolab cost`.\n"
    return heading + write(changed)


def circumstances(experiment: Experiment) -> Circumstances:
    """What the path's counts depend on."""
    options = experiment.workloads[WORKLOAD].options
    assert isinstance(experiment.machine, Guest)
    guest = next(iter(experiment.machine.under.values()))
    return Circumstances(
        drive=guest.drive, threads=int(getattr(options, "jobs", 1)), polls=bool(getattr(options, "poll", False))
    )


def experiment_of(text: str, name: str) -> Experiment:
    """The experiment of a text that `text_of` made."""
    return loads(text, f"{name}.toml")
