"""What a probe saw, by workload, setting and phase, for the tables that show a probe's whole observation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from iolab.base.errors import InputError
from iolab.domain.phase_record import PhaseRecord, any_probes_of

if TYPE_CHECKING:
    from iolab.files.store import RunData

T = TypeVar("T")


@dataclass(frozen=True)
class PlaceObservations(Generic[T]):
    """What a probe observed in one place of a run."""

    workload: str
    setting: str
    phase: str
    observations: list[T]
    """One per round, series left out."""

    @property
    def title(self) -> str:
        """`WORKLOAD, SETTING, PHASE`."""
        return f"{self.workload}, {self.setting}, {self.phase}"

    def as_dict(self) -> dict[str, object]:
        """As `show --as PROBE --json` prints it; what an observation has is in docs/reference/probes.md."""
        return {
            "workload": self.workload,
            "setting": self.setting,
            "phase": self.phase,
            "rounds": self.observations,
        }


def observations_of(run: RunData, probe: str) -> list[PlaceObservations[Any]]:
    """In the run's order. InputError if the probe saw nothing in any trial: with the reason, if there is one."""
    found: dict[tuple[str, str, str], list[object]] = {}
    reasons: dict[str, None] = {}
    for workload, setting, phase in _phases(run):
        if observation := any_probes_of(phase).get(probe):
            found.setdefault((workload, setting, phase["phase"]), []).append(observation)
        elif reason := phase.get("probes_absent", {}).get(probe):
            reasons[reason] = None
    if not found:
        raise InputError(
            next(iter(reasons), f"the probe {probe} was off"),
            where=str(run.path),
            remedy=f"measure with [probes] {probe} = true; iolab doctor shows what it needs",
        )
    settings = {setting: place for place, setting in enumerate(run.settings)}
    workloads = {workload: place for place, workload in enumerate(run.workloads)}
    in_order = sorted(found, key=lambda place: (workloads[place[0]], settings[place[1]]))
    return [PlaceObservations(*place, found[place]) for place in in_order]


def _phases(run: RunData) -> Iterator[tuple[str, str, PhaseRecord]]:
    for trial, workload, setting in run.trials.select("trial", "workload", "setting").sort("trial").iter_rows():
        for phase in run.record(trial).phases:
            yield workload, setting, phase


def columns(rows: list[tuple[str, ...]], *, left: int = 1) -> str:
    """Rows of equal length under each other, the first `left` columns to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
    return "\n".join(lines)
