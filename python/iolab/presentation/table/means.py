"""A run's metrics as one number each, the mean over the rounds, by workload, phase and setting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from iolab.domain.summary import values_by_setting

if TYPE_CHECKING:
    from iolab.files.store import RunData


@dataclass(frozen=True)
class PhaseMeans:
    """One setting in one phase of one workload."""

    workload: str
    phase: str
    """Empty if the workload has one measured phase."""
    setting: str
    means: dict[str, float]
    """The means of all operations, by metric, without those that no round has."""
    inverse_means: dict[str, float]
    """Means of 1/value, for quotients per something: not the same as 1/mean if rounds differ."""

    def get(self, metric: str) -> float | None:
        """The mean of a metric over the rounds, in its unit; None if no round has it."""
        return self.means.get(metric)

    def inverse(self, metric: str) -> float | None:
        """The mean of 1/metric over the rounds; None if no round has it, or one has zero."""
        return self.inverse_means.get(metric)


def phase_means(run: RunData) -> Iterator[PhaseMeans]:
    """Workload by workload, phase by phase, in the run's order of settings."""
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    inverse: dict[tuple[str, str, str], dict[str, float]] = {}
    for (workload, key), by_setting in values_by_setting(run, run.keys).items():
        phase, _, metric = key.rpartition("/")
        for setting, values in by_setting.items():
            present = [value for value in values if value is not None]
            if present and "." not in metric:
                found.setdefault((workload, phase, setting), {})[metric] = fmean(present)
                if all(present):
                    inverse.setdefault((workload, phase, setting), {})[metric] = fmean(1 / value for value in present)
    order = {setting: number for number, setting in enumerate(run.settings)}
    blocks = list(dict.fromkeys((workload, phase) for workload, phase, _ in found))
    for place in sorted(found, key=lambda place: (blocks.index(place[:2]), order[place[2]])):
        yield PhaseMeans(*place, found[place], inverse.get(place, {}))
