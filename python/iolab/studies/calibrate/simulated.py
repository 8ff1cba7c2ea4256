"""What a simulated device does under a cell."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from os import sched_getaffinity
from typing import cast

from iolab.base.errors import MachineError
from iolab.base.toml import TomlTable
from iolab.domain import native_model
from iolab.domain import native_types as native
from iolab.domain.calibration.cell import Cell
from iolab.domain.observation import Observation, observe
from iolab.domain.simulated_machine import InvalidMachine
from iolab.domain.trial import DrivesTarget, Trial
from iolab.domain.workload import io
from iolab.machines.model.simulation import execute

POLLED = ("flash", "null")
"""Kinds of devices that can be polled (docs/model/block-layer.md#polling)."""
SEED = 1
OPERATIONS = 4000
"""Of each cell, about: their rate is then known to about 1 %, in some hundredths of a second."""


@dataclass(frozen=True)
class Simulated:
    """A cell's answer."""

    observation: Observation

    @property
    def iops(self) -> float:
        """Operations per second, of all copies of the job together."""
        return self.observation.per_second(self.observation.count) or 0.0

    def latency_ns(self, share: float) -> float | None:
        """The latency that this share of the operations does not exceed; None if too few took longer."""
        return self.observation.latency_quantile(share)


@dataclass(frozen=True)
class DeviceUnderTest:
    """A simulated machine whose first drive is exchanged."""

    machine: native.MachineFile
    operations: int = OPERATIONS

    def ask(self, device: TomlTable, cells: Sequence[Cell]) -> list[Simulated]:
        """The cells' answers, in order; the same for the same arguments.

        Raises:
            MachineError: the device can't be, or can't run a cell; names the cell.
        """
        machine = self._with(device)
        try:
            size = native_model.drive_sizes(machine)[0]
        except ValueError as error:
            raise MachineError(str(InvalidMachine.from_native(error)), where="the device that is tried") from None
        with ThreadPoolExecutor(len(sched_getaffinity(0))) as threads:
            return list(threads.map(lambda cell: self._ask(machine, size, cell), cells))

    def _with(self, device: TomlTable) -> native.MachineFile:
        """The machine with the device in its first drive, which can be polled if the device can."""
        machine = cast(native.MachineFile, deepcopy(dict(self.machine)))
        drive = cast(TomlTable, machine["drives"][0])
        drive["device"] = device
        if device["kind"] not in POLLED and "queue" in drive:
            drive["queue"] = {key: value for key, value in drive["queue"].items() if not key.startswith("io_poll")}
        return machine

    def _ask(self, machine: native.MachineFile, size: int, cell: Cell) -> Simulated:
        options = cell.asked(self.operations, size)
        trial = Trial(
            trial=0,
            round=0,
            position=0,
            workload=cell.name,
            setting="calibration",
            seed=SEED,
            machine="model:calibration",
            target=DrivesTarget(devices=1),
            controls={},
            model=machine,
            phases=io.KIND.phases(options, SEED, 1),
        )
        record = execute(trial, lambda progress: None, lambda: False)
        if record.status != "ok":
            what = record.faults[0].what if record.faults else f"the trial {record.status}"
            raise MachineError(what, where=f"cell {cell.name}")
        return Simulated(observe(trial.phases[-1], record.phases[0]))
