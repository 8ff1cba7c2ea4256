"""Measures a device or a directory for its calibration, in a run directory as any other run."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.base.errors import InputError
from iolab.domain.executor import Display
from iolab.domain.trial import DeviceTarget
from iolab.files import experiment
from iolab.machines.host.local_process import LocalProcess
from iolab.machines.system import safety
from iolab.machines.system.block import device_at
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


def measure(place: Place, out: Path, progress: Display, seconds: float = DURATION_S) -> Path:
    """Runs the cells; the run directory.

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
    with LocalProcess() as executor:
        return run(planned, out, executor=executor, progress=progress).path
