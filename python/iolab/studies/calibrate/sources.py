"""From what the user names to a calibration: measurements read, or made here first."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.domain import native_types as native
from iolab.domain.calibration.result import Calibration
from iolab.domain.executor import Display
from iolab.files.measured import measured
from iolab.files.measured.found import MeasuredCells
from iolab.files.store.directory import default_path
from iolab.machines.host import machine_file
from iolab.machines.system.block import BlockDevice, device_at, device_under
from iolab.studies.calibrate.calibrate import MACHINE, Limit, calibrate, device_named, machine_around
from iolab.studies.calibrate.measure import Place, measure, place_of

LIKE = machine_file.NVME


@dataclass(frozen=True)
class Question:
    """What the user asked for."""

    sources: tuple[Path, ...]
    like: str | None
    """The device file to begin with."""
    machine: str | None
    """The simulated machine around the device."""
    out: Path | None
    """The run directory of what is measured here."""


def answered(question: Question, progress: Display) -> Calibration:
    """The calibration.

    Raises:
        InputError, MachineError: what is named can't be read or measured, or no device calibrated by it.
    """
    place = None if measured.is_run(question.sources[0]) else place_of(question.sources[0])
    if place is None:
        return _of_files(question)
    if len(question.sources) > 1:
        raise InputError("one device or directory is measured at a time", where=str(question.sources[1]))
    return _of_place(question, place, progress)


def _of_files(question: Question) -> Calibration:
    if question.out is not None:
        raise InputError("nothing is measured here, so there is no run directory", where="--out")
    found = MeasuredCells()
    for source in question.sources:
        found.add(measured.read(source))
    machine = machine_around(question.machine or MACHINE)
    return calibrate(found.cells, question.like or LIKE, machine, left_out=found.left_out)


def _of_place(question: Question, place: Place, progress: Display) -> Calibration:
    disk = device_at(place.path) if place.is_device else device_under(place.path)
    base = question.like or (LIKE if disk is None else machine_file.device_file(disk))
    device_named(base)  # refused before two minutes of measuring, if it can't be calibrated
    here = _this_machine(disk, base) if question.machine is None else machine_around(question.machine)
    limit = Limit()
    found = measure(place, question.out or default_path("calibration"), progress, limit=limit)
    progress.report_line(f"fitting to {counted(len(found.cells), 'cell')}")
    read_only = [] if place.read_only is None else [f"{place.path}: writes: {place.read_only}"]
    return calibrate(found.cells, base, here, left_out=[*read_only, *found.left_out], limit=limit)


def _this_machine(disk: BlockDevice | None, base: str) -> native.MachineFile:
    """This machine around the device. Its disk is one that the kernel shows nothing of if it is None."""
    table = tomllib.loads(machine_file.text_around(disk))
    table["drives"] = [{**drive, "device": device_named(base)} for drive in table["drives"]]
    return cast(native.MachineFile, table)
