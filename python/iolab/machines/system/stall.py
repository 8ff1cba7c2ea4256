"""Whether a trial still makes progress: by its process's reports and, if they show nothing new, by the kernel's."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import IolabError
from iolab.machines.system import life, loop
from iolab.machines.system.block import SYS, device_at, device_under
from iolab.machines.system.scratch import backing_directory

if TYPE_CHECKING:
    from iolab.domain.executor import Progress
    from iolab.domain.trial import Target, Trial

PATIENCE_S = 300.0
"""How long a trial may get nowhere."""
QUIET_S = 3.0
"""From when on it is worth a line."""
LOOK_EVERY_S = 1.0
OF_IO = ("load", "weighted_load", "metadata")
"""Kinds of phase whose jobs do I/O one after the other, so that none for long is no sign of health."""


class Stall:
    """Watches one trial in one process for as long as it shows no sign of life."""

    def __init__(
        self, trial: Trial, process: int, patience_s: float, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._label = label(trial.target)
        self._process = process
        self._patience_s = patience_s
        self._now_s = monotonic_s
        self._of_io = {phase.name for phase in trial.phases if phase.kind in OF_IO}
        self._disks = _disks(trial.target)
        self._scratch_below: str | None = None
        if trial.target.kind == "scratch":
            self._scratch_below = f"{backing_directory(trial.target).resolve()}/iolab-"
        self._watch = life.Watch()
        self._looked_s = self._counted_s = self._moved_s = monotonic_s()
        self._counts: object = None
        self._fraction: float | None = None
        self._doing_io = False
        self.text = ""
        """What it waits for, while it gets nowhere."""

    def progress(self, progress: Progress) -> None:
        """Takes in a report of the trial's process."""
        counts = (progress.phase, progress.doing, progress.ops, progress.bytes, progress.errors)
        now_s = self._now_s()
        if counts != self._counts:
            self._counted_s = self._moved_s = now_s
            self.text = ""
        elif progress.fraction != self._fraction:
            self._moved_s = now_s
        self._counts, self._fraction = counts, progress.fraction
        self._doing_io = progress.phase in self._of_io

    def verdict(self) -> str | None:
        """Why the trial is to be given up; None: not yet. Looks at the processes when there is no progress."""
        now_s = self._now_s()
        if now_s - self._counted_s < min(QUIET_S, self._patience_s / 2) or now_s - self._looked_s < LOOK_EVERY_S:
            return None
        self._looked_s = now_s
        self._watch.look([self._process])
        stuck = [(task, for_s) for task, for_s in self._watch.stuck() if for_s >= min(QUIET_S, self._patience_s / 2)]
        idle_s = now_s - self._counted_s
        reasons = [f"no I/O has completed for {idle_s:.0f} s"] if self._doing_io else []
        reasons += [life.description(stuck[:1])] if stuck else []
        self.text = f"{self._label}: {', '.join(reasons)}" if reasons else ""
        if self._doing_io and idle_s >= self._patience_s:
            past_its_end = now_s - self._moved_s >= self._patience_s
            holding = [] if past_its_end else self._devices_with_io_in_flight()
            if past_its_end or holding:
                held = [f"{', '.join(holding)} has I/O in flight"] if holding else []
                return f"it does not answer: {', '.join([*reasons, *held])}"
        if stuck and stuck[0][1] >= self._patience_s:
            return f"it does not answer: {', '.join(reasons)}"
        return None

    def _devices_with_io_in_flight(self) -> list[str]:
        """Those of the target's devices that have I/O in flight. Only sysfs is read, which does not wait for them."""
        disks = set(self._disks)
        if self._scratch_below is not None:
            disks |= {found.name for found in loop.attached() if found.backing_file.startswith(self._scratch_below)}
        return [f"/dev/{disk}" for disk in sorted(disks) if _in_flight(disk)]


def _disks(target: Target) -> list[str]:
    """Whose queues the I/O on a device, directory or file goes through, as far as there are any."""
    with suppress(OSError, IolabError):
        if target.kind == "device":
            return [device_at(Path(path)).disk.name for path in target.paths]
        if target.kind in ("directory", "file"):
            path = Path(target.path)
            found = device_under(path if path.exists() else path.parent)
            return [found.disk.name] if found is not None else []
    return []


def _in_flight(disk: str) -> bool:
    try:
        return any(int(count) for count in (SYS / "block" / disk / "inflight").read_text().split())
    except OSError:
        return False


def label(target: Target) -> str:
    """A target as an error names it: its path, its devices, or its kind."""
    if target.kind == "device":
        return ", ".join(target.paths)
    if target.kind == "scratch":
        return f"scratch device on {target.backing_directory or 'the state directory'}"
    return target.path if target.kind in ("directory", "file") else target.kind
