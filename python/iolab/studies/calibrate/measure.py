"""Measures a device or a directory for its calibration, in a run directory as any other run."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typing_extensions import override

from iolab.base.errors import InputError, InterruptedRun
from iolab.domain.executor import Display, OnProgress, ShouldStop
from iolab.domain.record import Record
from iolab.domain.trial import DeviceTarget, Trial
from iolab.files import experiment
from iolab.files.measured import measured
from iolab.files.measured.found import MeasuredCells
from iolab.machines.host.local_process import LocalProcess
from iolab.machines.system import safety
from iolab.machines.system.block import device_at
from iolab.studies.calibrate.calibrate import MEASURED_S, Limit
from iolab.studies.calibrate.cells_to_measure import DURATION_S, experiment_text
from iolab.studies.run import run

REGION_BYTES_MAX = 1 << 36
GRANULE_BYTES = 1 << 20


@dataclass(frozen=True)
class Place:
    """Where the cells are measured."""

    path: Path
    target: dict[str, Any]
    """The experiment's table [target]."""
    read_only: str | None
    """Why it is only read; None: it may be written to."""
    region_bytes: int = 0

    @property
    def is_device(self) -> bool:
        """Whether it is a block device itself."""
        return bool(self.target["kind"] == "device")


def place_of(path: Path) -> Place | None:
    """The place to measure that a path names: a block device or a directory; None for anything else.

    A device is written to only if docs/safety.md allows it without `destroy`: nothing uses it, and nothing is on it.
    """
    if path.is_dir():
        return Place(path, {"kind": "directory", "path": str(path)}, None)
    if not path.exists() or not stat.S_ISBLK(path.stat().st_mode):
        return None
    size = min(device_at(path).size_bytes, REGION_BYTES_MAX)
    target = {"kind": "device", "path": str(path)}
    try:
        safety.admit(DeviceTarget(paths=[str(path)], destroy=False))
    except InputError as error:
        return Place(path, target, error.what, size - size % GRANULE_BYTES)
    return Place(path, target, None, size - size % GRANULE_BYTES)


class _Timed(LocalProcess):
    """Interrupts what is still being measured when the time for that is over."""

    def __init__(self, limit: Limit) -> None:
        super().__init__()
        self._limit = limit

    @override
    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        return super().run(trial, on_progress, lambda: should_stop() or self._limit.ends_measuring())


def measure(
    place: Place, out: Path, progress: Display, seconds: float = DURATION_S, limit: Limit | None = None
) -> MeasuredCells:
    """Runs the cells, as many as there is time for, into the run directory `out`.

    Raises:
        InputError, MachineError: as of any run.
    """
    if place.read_only is not None and not os.access(place.path, os.R_OK):
        raise InputError("can't be read by this user", where=str(place.path), remedy="calibrate a device as root")
    text = experiment_text(
        f"Cells to calibrate {place.path.name} by",
        place.target,
        writes=place.read_only is None,
        region_bytes=place.region_bytes,
        seconds=seconds,
    )
    planned = experiment.loads(text, "calibration.toml")
    limit = limit or Limit()
    late = False
    with _Timed(limit) as executor:
        try:
            run(planned, out, executor=executor, progress=progress)
        except InterruptedRun:
            if not limit.ends_measuring():
                raise
            late = True
    found = measured.read(out)
    if late:
        measured_ones = {cell.name for cell in found.cells}
        missing = [name for name in planned.workloads if name not in measured_ones]
        what = ", ".join(missing) or "another round of some cells"
        found.left_out.append(f"{what}: not measured within {MEASURED_S:g} s; for that: iolab run --resume {out}")
    return found
