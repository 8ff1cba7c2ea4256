"""How far the mechanisms behind a simulated result were ever held against a measurement, as the stored scorecard has
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iolab.base.plain_text import counted
from iolab.domain.machine import Model
from iolab.files import machine_file
from iolab.files.store import RunData
from iolab.machines.host.machine_file import estimated_drives
from iolab.studies.reproduction.part import Part
from iolab.studies.reproduction.score import times, typical_factor
from iolab.studies.reproduction.scorecard import factors_of, stored, tables_of


@dataclass(frozen=True)
class Evidence:
    """The evidence for a mechanism: the independent predictions of all tables whose runs used it."""

    mechanism: str
    predictions: int
    factor: float | None
    """How far off they typically are; None: it was never held against a measurement."""

    @property
    def words(self) -> str:
        """`scheduler cfq: 60 predictions, typically 1.11x off`, or `flash device: never held against a measurement`."""
        if self.factor is None:
            return f"{self.mechanism}: never held against a measurement"
        return f"{self.mechanism}: {counted(self.predictions, 'prediction')}, typically {times(self.factor)} off"


def mechanisms_of(run: RunData) -> dict[tuple[str, str], frozenset[str]]:
    """By workload and setting, the mechanisms that its trials used; empty of a run on a host."""
    found: dict[tuple[str, str], frozenset[str]] = {}
    if not isinstance(run.experiment.machine, Model):
        return found
    trials = run.trials.unique(["workload", "setting"], keep="first", maintain_order=True)
    for trial, workload, setting in trials.select("trial", "workload", "setting").iter_rows():
        spec = run.record(trial).spec
        if spec.model is not None:
            found[workload, setting] = machine_file.used(spec.phases, spec.model)
    return found


def evidence(run: RunData) -> list[Evidence]:
    """A line for each mechanism of a simulated run, the least tested first; empty of a run on a host."""
    used = frozenset[str]().union(*mechanisms_of(run).values())
    parts = stored() if used else []
    return sorted((_of(mechanism, parts) for mechanism in used), key=lambda one: (one.predictions, one.mechanism))


def trust(run: RunData) -> list[str]:
    """A line for each drive that is an estimate of its class, and for each mechanism of a simulated run."""
    texts = run.experiment.machine.attachments.values()
    drives = [
        f"drive {device}: an estimate of its class, no measurement of {known.partition(':')[0]} is behind it"
        for text in texts
        for device, known in estimated_drives(text)
    ]
    return [*drives, *(one.words for one in evidence(run))]


def _of(mechanism: str, parts: Sequence[Part]) -> Evidence:
    tables = [table for table in tables_of(parts) if mechanism in table["mechanisms"]]
    factors = [factor for table in tables for factor in factors_of(table)]
    return Evidence(mechanism, len(factors), typical_factor(factors))
