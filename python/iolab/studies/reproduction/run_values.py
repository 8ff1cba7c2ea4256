"""What a run has at a place: the mean over its rounds, or each round's value, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from iolab.domain.metric import ALL
from iolab.files.store import RunData
from iolab.studies.reproduction.tables import CellSelector

Trial = tuple[str, str]
"""Workload and setting."""
NAMED = 4
"""Jobs that a reason names."""


@dataclass(frozen=True)
class Value:
    """A run's value for a published cell, in the cell's unit, or why it has none."""

    value: float | None
    reason: str | None
    """Why there is no value."""


Rounds = dict[int, Value]
"""By round."""


class RunValues:
    """A run as a table of numbers by place."""

    def __init__(self, run: RunData) -> None:
        self._run = run
        self._groups: dict[Trial, dict[tuple[str, str], Rounds]] = {}

    def load(self) -> None:
        """Reads the whole run now: its files may go away."""
        for trial in self._of_all:
            self._of_jobs(trial)

    def at(self, place: CellSelector) -> Value:
        """In the unit of the published figure."""
        trial = (place.workload, place.setting)
        divisors = []
        if place.per is not None:
            divisors.append((trial, place.per))
        if place.against is not None:
            divisors.append(((place.workload, place.against), place.metric))
        found = self.mean(trial, place.metric, place.job)
        for divisor, metric in divisors:
            by = self.mean(divisor, metric, place.job)
            if found.value is None or by.value is None:
                return found if found.value is None else by
            if not by.value:
                return Value(None, f"{metric} of {divisor[1]} is 0")
            found = Value(found.value / by.value, None)
        return found if found.value is None else Value(found.value / place.divide_by * place.runs, None)

    def mean(self, trial: Trial, key: str, job: str) -> Value:
        """The mean of a metric over the rounds that have it."""
        found = self.by_round(trial, key, job)
        numbers = [one.value for one in found.values() if one.value is not None]
        if numbers:
            return Value(fmean(numbers), None)
        of_all = self._of_all.get(trial, {}).get(key, {})
        # A trial that failed has no jobs; why it failed stands with what they would have had together.
        reason = next((one.reason for one in (*found.values(), *of_all.values()) if one.reason), None)
        return Value(None, reason or f"the run has no {key}{'' if job == ALL else self._of_job(trial, job)}")

    def _of_job(self, trial: Trial, job: str) -> str:
        """The job that there is nothing of, and which there are instead."""
        names = list(dict.fromkeys(name for name, _ in self._of_jobs(trial)))
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        return f" of {job}: its jobs are {', '.join(names[:NAMED])}{more}" if names else f" of {job}, but a single job"

    def by_round(self, trial: Trial, key: str, job: str) -> Rounds:
        """The values of a metric of a job or group, or of all together (`ALL`), by round."""
        if job == ALL:
            return self._of_all.get(trial, {}).get(key, {})
        return self._of_jobs(trial).get((job, key), {})

    @cached_property
    def _of_all(self) -> dict[Trial, dict[str, Rounds]]:
        """All jobs together, by key."""
        found: dict[Trial, dict[str, Rounds]] = {}
        rows = self._run.metrics.select("workload", "setting", "key", "round", "value", "reason")
        for workload, setting, key, number, value, reason in rows.iter_rows():
            found.setdefault((workload, setting), {}).setdefault(key, {})[number] = Value(value, reason)
        return found

    def _of_jobs(self, trial: Trial) -> dict[tuple[str, str], Rounds]:
        """Single jobs and groups, by name and key."""
        if trial not in self._groups:
            of_trial: dict[tuple[str, str], Rounds] = {}
            rows = self._run.job_metrics(workload=trial[0], setting=trial[1])
            for job, key, number, value, reason in rows.select("job", "key", "round", "value", "reason").iter_rows():
                of_trial.setdefault((job, key), {})[number] = Value(value, reason)
            self._groups[trial] = of_trial
        return self._groups[trial]
