"""The host as a `Port`: see iolab.domain.machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from iolab.base.strict_json import JsonObject
from iolab.domain.machine import Host
from iolab.domain.probe import PROBES
from iolab.domain.trial import Target
from iolab.machines.host import describe as description
from iolab.machines.host import probe_needs
from iolab.machines.system import reach, recovery


def describe(machine: Host, target: Target) -> JsonObject:
    """This machine, and the target's device."""
    return description.describe(target)


def preflight(target: Target, probes: Iterable[str], report_line: Callable[[str], None]) -> None:
    """The target answers. What probes lack is reported before long work; each trial's record has the reason too."""
    recovery.put_back(report_line, needed=True)
    reach.check_answer(target)
    for name in probes:
        for supply in probe_needs.lacking(PROBES[name]):
            report_line(f"probe {name}: {supply.detail}; {supply.remedy}")


def announcement(machine: Host, seed: int) -> str | None:
    """The place of files for which none was given."""
    if not machine.target_by_default or os.geteuid() == 0:
        return None
    return (
        f"without root and [target], files go to {Path.cwd()}, through the filesystem there; for a filesystem of "
        "their own on a scratch device: sudo iolab run ..."
    )
