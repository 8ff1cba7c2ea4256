"""The numbers of one workload under two settings, round by round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float64]
Name = tuple[str | None, str, str]
"""Workload (None if the table has none), baseline, candidate."""

WORKLOAD, SETTING, ROUND = KEYS = ("workload", "setting", "round")
"""The columns of a table that say whose numbers a row has; every other one is a metric."""

SAME = 1e-9
"""How far from 1 the correlation of two metrics may be that are functions of each other: rounding errors only."""


@dataclass(frozen=True)
class Arms:
    """One metric: a value per round, NaN if it is absent."""

    baseline: Array
    candidate: Array

    @property
    def both(self) -> Array:
        """All values, the baseline's before the candidate's: a vector of twice the rounds."""
        return np.concatenate([self.baseline, self.candidate])

    @property
    def present(self) -> NDArray[np.bool_]:
        """A mask over the rounds: true if both settings have a value."""
        mask: NDArray[np.bool_] = np.isfinite(self.baseline) & np.isfinite(self.candidate)
        return mask

    @property
    def is_positive(self) -> bool:
        """Whether every value that is present is above 0, so that ratios mean something."""
        return bool((self.both[np.isfinite(self.both)] > 0).all())

    @property
    def is_constant(self) -> bool:
        """One value in all rounds of both settings."""
        return bool(self.present.any()) and len(np.unique(self.both[np.tile(self.present, 2)])) == 1

    @property
    def varies_within(self) -> bool:
        """Whether the rounds of a setting differ."""
        return any(len(np.unique(arm[self.present])) > 1 for arm in (self.baseline, self.candidate))

    def movements(self) -> Array:
        """Per round that has both: the logarithm of candidate over baseline; their difference if a value is not
        positive and there is no ratio."""
        x, y = self.baseline[self.present], self.candidate[self.present]
        return np.log(y / x) if self.is_positive else y - x

    def centred(self) -> Array:
        """All trials of the rounds that have both, less their mean: on the logarithmic scale if there is one."""
        values = self.both[np.tile(self.present, 2)]
        scaled = np.log(values) if self.is_positive else values
        return np.asarray(scaled - scaled.mean(), dtype=np.float64)


def arms_of(frame: pl.DataFrame, name: Name) -> dict[str, Arms]:
    """By metric, in the order of the columns. `frame` has a row per (workload, setting, round); rows and numbers may
    be missing."""
    import polars as pl

    workload, baseline, candidate = name
    here = frame if workload is None else frame.filter(pl.col(WORKLOAD) == workload)
    sides = [here.filter(pl.col(SETTING) == setting) for setting in (baseline, candidate)]
    rounds = pl.concat([side.select(ROUND) for side in sides]).unique().sort(ROUND)
    ours, theirs = (rounds.join(side, on=ROUND, how="left", maintain_order="left") for side in sides)
    metrics = [column for column in frame.columns if column not in KEYS]
    return {metric: Arms(_numbers(ours[metric]), _numbers(theirs[metric])) for metric in metrics}


def functions_of_each_other(one: Arms, other: Arms) -> bool:
    """Whether the two always moved exactly alike, over all trials: the same measure in two units.

    Metrics that do not vary within settings decide nothing: any two settings differ alike then.
    """
    if not np.array_equal(one.present, other.present) or not (one.varies_within and other.varies_within):
        return False
    a, b = one.centred(), other.centred()
    return bool(abs(a @ b) >= (1 - SAME) * np.sqrt((a @ a) * (b @ b)))


def nearly_equal_or_inverse(one: Arms, other: Arms, unexplained_max: float) -> bool:
    """Whether a change of `one` by any factor is one of `other` by the same factor or by its inverse, but for this
    share of the variance of `one`'s logarithms."""
    if not (one.is_positive and other.is_positive and np.array_equal(one.present, other.present)):
        return False
    if not (one.varies_within and other.varies_within):
        return False
    a, b = one.centred(), other.centred()
    return bool(min(((a - b) ** 2).sum(), ((a + b) ** 2).sum()) <= unexplained_max * (a @ a))


def _numbers(column: pl.Series) -> Array:
    import polars as pl

    return np.asarray(column.cast(pl.Float64).fill_null(np.nan).to_numpy(), dtype=np.float64)
