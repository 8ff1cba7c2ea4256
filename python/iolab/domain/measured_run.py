"""What a run looks like to those who study it: names, and numbers as frames. The store reads one back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from iolab.base.strict_json import JsonObject
from iolab.domain.experiment import Experiment

if TYPE_CHECKING:
    import polars

    from iolab.domain.comparison import Pairing
    from iolab.domain.lead import Shape


class MeasuredRun(Protocol):
    """A run that was measured, simulated or imported."""

    @property
    def path(self) -> Path:
        """Its directory, or the file that it was read from."""

    @property
    def problems(self) -> list[str]:
        """What is wrong with it, a line each."""

    @property
    def experiment(self) -> Experiment:
        """What was asked. Raises InputError if this iolab does not understand its text."""

    @property
    def machine_name(self) -> str | None:
        """`host`, `model:NAME` or `imported`; None if it is lost."""

    @property
    def seed(self) -> int | None:
        """What its trials' seeds are derived from; None if it is lost."""

    @property
    def rounds_until_decided(self) -> int | None:
        """The most rounds, fixed before the first, of a run that goes on until it is decided; None for any other."""

    @property
    def is_search(self) -> bool:
        """Whether it looked for the version that changed a metric: one was measured, then another."""

    @property
    def workloads(self) -> list[str]:
        """The workloads' names, in the experiment's order."""

    @property
    def settings(self) -> list[str]:
        """The settings' names, in the experiment's order."""

    @property
    def keys(self) -> list[str]:
        """Every metric's key that any trial has."""

    @property
    def shapes(self) -> dict[str, Shape]:
        """What each workload is like, as far as the choice of its metrics depends on that."""

    @property
    def machine(self) -> JsonObject:
        """Its description; empty if unreadable."""

    @property
    def impossible(self) -> set[tuple[str, str]]:
        """Each (workload, setting) that this machine cannot run."""

    @property
    def host_of_round(self) -> dict[int, str]:
        """By round, which of several hosts measured it; empty of a run on one machine."""

    @property
    def doubts(self) -> list[tuple[str, str, dict[str, float]]]:
        """Each trial's workload, its setting, and what casts doubt on it (`iolab.domain.validity.DOUBTS`)."""

    @property
    def trials(self) -> polars.DataFrame:
        """A row per trial: trial, round, workload, setting, status, ..."""

    @property
    def metrics(self) -> polars.DataFrame:
        """A row per trial and metric: trial, round, workload, setting, phase, op, metric, key, value, reason."""

    def values(self, key: str, workload: str) -> polars.DataFrame:
        """One metric of one workload: a row per round, a column `round` and one per setting; null: no value."""

    def job_metrics(self, *, workload: str | None = None, setting: str | None = None) -> polars.DataFrame:
        """The columns of `metrics`, and job: of each job by itself, if a workload has several."""

    def pairing(self, baseline: str, candidate: str) -> Pairing:
        """What the values of two settings have in common."""
