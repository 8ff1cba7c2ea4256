"""What a run has at a place: the mean over its rounds, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING

from iolab.metric import ALL

if TYPE_CHECKING:
    from iolab.reproduction.published import Place
    from iolab.store import RunData

Trial = tuple[str, str]
"""Workload and setting."""


@dataclass(frozen=True)
class Value:
    value: float | None
    reason: str | None
    """Why there is no value."""


class Measured:
    """A run as a table of numbers by place."""

    def __init__(self, run: RunData) -> None:
        self._run = run
        self._groups: dict[Trial, dict[tuple[str, str], list[Value]]] = {}

    def at(self, place: Place) -> Value:
        """In the unit of the published figure."""
        numerator = self._mean(place, place.metric)
        denominator = Value(1.0, None) if place.per is None else self._mean(place, place.per)
        for part in (numerator, denominator):
            if part.value is None:
                return part
        assert numerator.value is not None and denominator.value is not None
        if not denominator.value:
            return Value(None, f"{place.per} is 0")
        return Value(numerator.value / denominator.value / place.divide_by, None)

    def _mean(self, place: Place, key: str) -> Value:
        trial = (place.workload, place.setting)
        of_all = self._of_all.get(trial, {}).get(key, [])
        found = of_all if place.job == ALL else self._of_jobs(trial).get((place.job, key), [])
        numbers = [one.value for one in found if one.value is not None]
        if numbers:
            return Value(fmean(numbers), None)
        of_job = "" if place.job == ALL else f" of {place.job}"
        # A trial that failed has no jobs; why it failed stands with what they would have had together.
        reason = next((one.reason for one in (*found, *of_all) if one.reason), None)
        return Value(None, reason or f"the run has no {key}{of_job}")

    @cached_property
    def _of_all(self) -> dict[Trial, dict[str, list[Value]]]:
        """All jobs together, by key."""
        found: dict[Trial, dict[str, list[Value]]] = {}
        rows = self._run.metrics.select("workload", "setting", "key", "value", "reason")
        for workload, setting, key, value, reason in rows.iter_rows():
            found.setdefault((workload, setting), {}).setdefault(key, []).append(Value(value, reason))
        return found

    def _of_jobs(self, trial: Trial) -> dict[tuple[str, str], list[Value]]:
        """Single jobs and groups, by name and key."""
        if trial not in self._groups:
            of_trial: dict[tuple[str, str], list[Value]] = {}
            rows = self._run.job_metrics(workload=trial[0], setting=trial[1]).select("job", "key", "value", "reason")
            for job, key, value, reason in rows.iter_rows():
                of_trial.setdefault((job, key), []).append(Value(value, reason))
            self._groups[trial] = of_trial
        return self._groups[trial]
