"""Fits a device's keys to two thirds of what was measured, and asks it the last third."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.base.toml import TomlTable
from iolab.domain import native_types as native
from iolab.domain.calibration import key, null
from iolab.domain.calibration.cell import Cell, split
from iolab.domain.calibration.fit import fit
from iolab.domain.calibration.result import Answer, Calibration
from iolab.domain.calibration.search import Values
from iolab.domain.machine import MODEL_PREFIX
from iolab.files import machine_file
from iolab.files.machine_file.catalogue import DEVICES, part_path
from iolab.studies.calibrate.simulated import DeviceUnderTest

CELLS_MIN = 3
LIMIT_S = 300.0
"""A calibration ends before, whatever else the machine does."""
MEASURED_S = 0.6 * LIMIT_S
"""Then measuring ends. On a quiet machine it takes two thirds of that."""
SEARCHED_S = 0.8 * LIMIT_S
"""Then the search ends, and the answers are asked. Chosen: the answers of 18 cells took 47 s with a twentieth of a CPU.
"""
MACHINE = f"{MODEL_PREFIX}nvme"
"""The machine around the device, if no other is known."""
P99 = 0.99
ANSWER_OPERATIONS = 20_000
"""Of each cell in the answer, if there is time: enough for a 99th percentile."""


@dataclass(frozen=True)
class Limit:
    """The time of a calibration, from now on."""

    began_s: float = field(default_factory=time.monotonic)

    def ends_measuring(self) -> bool:
        """Whether nothing more is measured."""
        return time.monotonic() - self.began_s > MEASURED_S

    def ends_search(self) -> bool:
        """Whether no further device is tried."""
        return time.monotonic() - self.began_s > SEARCHED_S


def device_named(name: str) -> TomlTable:
    """The table of a device file, by its name or path.

    Raises:
        InputError: there is none, or it can't be calibrated.
    """
    path = Path(name) if name.endswith(".toml") else part_path(DEVICES, name, Path(DEVICES))
    device = machine_file.device_at(path).values
    if device.get("kind") not in key.OF_KINDS:
        kinds = ", ".join(key.OF_KINDS)
        raise InputError(
            f"a device of kind {device.get('kind')}; calibration fits those of kind {kinds}",
            where=f"--like {name}",
            remedy="name one that is: iolab list devices",
        )
    return device


def machine_around(name: str) -> native.MachineFile:
    """The machine whose first drive becomes the device; without filesystem. InputError if there is no such machine."""
    machine = machine_file.read(name, Path()).table
    if not machine["drives"]:
        raise InputError("has no drive that the device could be", where=f"--machine {name}")
    drive = {name: value for name, value in machine["drives"][0].items() if name not in ("filesystem", "metadata")}
    return cast(native.MachineFile, {**machine, "drives": [drive]})


def calibrate(
    cells: Sequence[Cell],
    base: str,
    machine: native.MachineFile,
    *,
    left_out: Sequence[str] = (),
    limit: Limit | None = None,
) -> Calibration:
    """The device `base` with its keys fitted to the cells; `limit`: since when, by default from now.

    Raises:
        InputError: too few cells.
        MachineError: the device can't run a cell.
    """
    if len(cells) < CELLS_MIN:
        raise InputError(
            f"{counted(len(cells), 'cell')}; a calibration needs {CELLS_MIN} at least",
            where="what was measured",
            remedy=f"left out: {left_out[0]}" if left_out else "measure depth 1 and deep, reads and writes",
        )
    device = device_named(base)
    to_fit, held = split(cells)
    keys = _keys(device, to_fit)
    asked = _Asked(DeviceUnderTest(machine), device, to_fit)
    shallow = min(cell.depth for cell in to_fit)
    first = [number for number, cell in enumerate(to_fit) if cell.depth == shallow]
    limit = limit or Limit()
    start = {one.name: one.of(device) for one in keys}
    found, at_end = fit(keys, start, [cell.iops for cell in to_fit], asked.rates, first, limit.ends_search)
    unfinished = None if at_end else f"the search was ended after {SEARCHED_S:g} s, with the best values so far"
    device = key.with_values(deepcopy(device), {one.key.name: one.value for one in found if not one.kept})
    bench = DeviceUnderTest(machine, ANSWER_OPERATIONS) if at_end else asked.bench
    answers = _answers(bench, device, to_fit, held)
    return Calibration(base, device, tuple(found), tuple(answers), tuple(left_out), unfinished)


@dataclass
class _Asked:
    """The fitted cells' rates by the keys that each reads, so that none is simulated twice."""

    bench: DeviceUnderTest
    device: TomlTable
    cells: Sequence[Cell]
    known: dict[tuple[int, ...], float] = field(default_factory=dict)

    def rates(self, values: Values, cells: Sequence[int]) -> list[float]:
        """Of these cells, with these values of the keys."""
        places = [self._place(number, values) for number in cells]
        missing = [place for place in places if place not in self.known]
        device = key.with_values(self.device, values)
        answers = self.bench.ask(device, [self.cells[place[0]] for place in missing])
        self.known |= {place: answer.iops for place, answer in zip(missing, answers, strict=True)}
        return [self.known[place] for place in places]

    def _place(self, number: int, values: Values) -> tuple[int, ...]:
        return number, *(values[name] for name in key.read_by(self.cells[number].operation, list(values)))


def _keys(device: TomlTable, cells: Sequence[Cell]) -> tuple[key.Key, ...]:
    """At most as many as there are cells to fit, reads' before writes': none of an operation that nobody measured."""
    flushes = any(cell.operation == "durable write" for cell in cells)
    writes = any(cell.options.read_percent < 100 for cell in cells)
    keys = key.keys_of(device, flushes=flushes)
    return tuple(one for one in keys if writes or one.name not in key.OF_WRITES)[: len(cells)]


def _answers(bench: DeviceUnderTest, device: TomlTable, to_fit: Sequence[Cell], held: Sequence[Cell]) -> list[Answer]:
    cells = [*to_fit, *held]
    return [
        Answer(
            cell,
            number < len(to_fit),
            answer.iops,
            answer.latency_ns(P99),
            null.mean_of_operation(cell, to_fit),
            null.nearest(cell, to_fit),
        )
        for number, (cell, answer) in enumerate(zip(cells, bench.ask(device, cells), strict=True))
    ]
