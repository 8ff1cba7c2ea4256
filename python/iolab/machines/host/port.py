"""The host as a `Port`: see iolab.domain.machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from iolab.base.errors import InputError, unknown
from iolab.base.strict_json import JsonObject
from iolab.domain import layer
from iolab.domain.machine import Host, Settings
from iolab.domain.probe import PROBES
from iolab.domain.trial import Target
from iolab.machines.host import describe as description
from iolab.machines.host import probe_needs
from iolab.machines.system import layers, reach, recovery, scheduler


def describe(machine: Host, target: Target) -> JsonObject:
    """This machine, and the target's device."""
    return description.describe(target)


def preflight(
    target: Target,
    settings: Settings,
    probes: Iterable[str],
    report_line: Callable[[str], None],
) -> None:
    """The target answers, and no setting asks for what this kernel is seen to lack. What probes lack is reported before
    long work; each trial's record has the reason too."""
    recovery.put_back(report_line, needed=True)
    reach.check_answer(target)
    for name, controls in settings.items():
        _check_layers(target, controls)
        _check_tunables(name, controls)
    for name in probes:
        for supply in probe_needs.lacking(PROBES[name]):
            report_line(f"probe {name}: {supply.detail}; {supply.remedy}")


def _check_layers(target: Target, controls: Mapping[str, Any]) -> None:
    if target.kind == "scratch":
        changed = layer.changed(target.layers, controls["layers"]) if "layers" in controls else target.layers
        layers.check_modules(layer.read(changed))


def _check_tunables(setting: str, controls: Mapping[str, Any]) -> None:
    """The files of a scheduler exist on a device that has it in force; without one here, its trial finds out."""
    asked = controls.get("scheduler")
    known = scheduler.tunables_of(asked["name"]) if isinstance(asked, Mapping) and len(asked) > 1 else None
    if asked is None or known is None:
        return
    for name in asked:
        if name != "name" and name not in known:
            what = unknown(f"tunable {name!r} of scheduler {asked['name']}", name, known)
            raise InputError(what, where=f"settings.{setting}.scheduler")


def announcement(machine: Host, seed: int) -> str | None:
    """The place of files for which none was given."""
    if not machine.target_by_default or os.geteuid() == 0:
        return None
    return (
        f"without root and [target], files go to {Path.cwd()}, through the filesystem there; for a filesystem of "
        "their own on a scratch device: sudo iolab run ..."
    )
