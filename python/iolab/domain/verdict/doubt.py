"""Why a comparison is undecided: what the rounds show, in a few words; and two modes, which a typical value hides."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iolab.base.quantity import plain
from iolab.domain.verdict.looks import FIRST_LOOK

Array = NDArray[np.float64]

MODES_FROM = 8
"""Rounds; of fewer, two clusters are nothing unusual."""
GAP_OVER_WIDTH = 2.0
"""Between two modes, over the wider of them. docs/reference/statistics.md explains how often noise does the same."""
DRIFT_FROM = 6
DRIFT_RANKS = 0.9
"""Correlation of the rounds' levels with their order, by ranks."""
SHARED_MAX = 0.5
"""Of the variance of a setting's values: if changes vary by less, most of it cancels within rounds."""
PERCENT_MAX = 100_000
NO_STEP_P = 0.05
"""Of the test for a step between two sides that a line goes through: above it, there is none."""
NOISE = "noise"


@dataclass(frozen=True)
class TwoModes:
    """Two clusters, `factor` apart, and how many rounds of each side are in the upper one."""

    factor: float
    baseline_upper: int
    candidate_upper: int


def modes_of_both(baseline: Array, candidate: Array) -> TwoModes | None:
    """None without, or if either side is in one of them alone: that is a difference like others."""
    both = np.log(np.concatenate([baseline, candidate]))
    if min(len(baseline), len(candidate)) < MODES_FROM or not (modes := _modes(both)):
        return None
    lowest_of_upper = np.sort(both)[modes[0]]
    upper = [int((np.log(side) >= lowest_of_upper).sum()) for side in (baseline, candidate)]
    if all(count in (0, len(side)) for count, side in zip(upper, (baseline, candidate), strict=True)):
        return None
    return TwoModes(math.exp(modes[2]), *upper)


def drift_through(baseline: Array, candidate: Array) -> str | None:
    """Why a difference of rounds that are not paired may be drift: both sides, in the order in which they ran, move
    the same way, and one line goes through them, whichever ran first."""
    if min(len(baseline), len(candidate)) < DRIFT_FROM:
        return None
    ways = [_rank_correlation(side) for side in (baseline, candidate)]
    if min(map(abs, ways)) < DRIFT_RANKS or ways[0] * ways[1] < 0:
        return None
    for first, second in ((baseline, candidate), (candidate, baseline)):
        slope, p = _line_and_step(np.log(first), np.log(second))
        if p > NO_STEP_P and slope * ways[0] > 0:
            way = "rise" if slope > 0 else "fall"
            return f"drift: both settings {way} by {_percent(abs(slope))} a round, with no step between them"
    return None


def _line_and_step(first: Array, second: Array) -> tuple[float, float]:
    """The slope of the line through both, and the p-value of the step between them, by least squares."""
    from scipy.stats import t

    n = len(first) + len(second)
    after = np.repeat([0.0, 1.0], [len(first), len(second)])
    columns = np.column_stack([np.ones(n), np.arange(n), after])
    values = np.concatenate([first, second])
    found, *_ = np.linalg.lstsq(columns, values, rcond=None)
    residual = values - columns @ found
    error = math.sqrt(residual @ residual / (n - 3) * np.linalg.inv(columns.T @ columns)[2, 2])
    return float(found[1]), float(2 * t.sf(abs(found[2]) / error, n - 3)) if error > 0 else float(found[2] == 0)


def why_undecided(baseline: Array, candidate: Array, spread: float) -> str:
    """Why paired rounds, in the order in which they ran, decide nothing. `spread`: that of the logarithm of one round's
    ratio.

    What both settings share within a round cancels and is no reason: modes of both, and a drift that moves the level
    in one round by less than the changes vary."""
    n = len(baseline)
    if n < FIRST_LOOK:
        return few_rounds(n)
    ratios = np.log(candidate / baseline)
    for what, values in (
        ("changes", ratios),
        ("values of the candidate", np.log(candidate)),
        ("values of the baseline", np.log(baseline)),
    ):
        if ratios.var() >= SHARED_MAX * values.var() and (modes := _modes(values)):
            return f"two modes in the {what}: {modes[0]} rounds and {modes[1]}, {_percent(modes[2])} apart"
    levels = (np.log(baseline) + np.log(candidate)) / 2
    moved = float(np.ptp(levels))
    if n >= DRIFT_FROM and abs(ranks := _rank_correlation(levels)) >= DRIFT_RANKS and moved / (n - 1) >= spread:
        return f"drift: the level {'rose' if ranks > 0 else 'fell'} by {_percent(moved)} over the rounds"
    return noise(spread)


def why_undecided_of(n_baseline: int, n: int, spread: float) -> str:
    """Why rounds that are not paired decide nothing."""
    return few_rounds(min(n_baseline, n)) if min(n_baseline, n) < FIRST_LOOK else noise(spread)


def few_rounds(n: int) -> str:
    """Below the first look."""
    return f"too few rounds ({n})"


def noise(*spreads: float) -> str:
    """What one metric's rounds show that vary, or those of several."""
    ends = dict.fromkeys(_percent(end(spreads)) for end in (min, max))
    return f"{NOISE}: the change of one round varies by {' to '.join(ends)}"


def _percent(log: float) -> str:
    percent = 100 * math.expm1(min(log, 100.0))
    if percent >= PERCENT_MAX:
        return f"more than {PERCENT_MAX:,} %"
    return f"{plain(percent, 2)} %"


def _modes(values: Array) -> tuple[int, int, float] | None:
    """How many values are in the lower of two clusters and in the upper, and how far apart their middles are; None
    without."""
    if len(values) < MODES_FROM:
        return None
    rising = np.sort(values)
    gaps = np.diff(rising)[1:-1]  # two values in each, at least
    cut = int(np.argmax(gaps)) + 2
    low, high = rising[:cut], rising[cut:]
    if gaps.max() <= GAP_OVER_WIDTH * max(np.ptp(low), np.ptp(high)):
        return None
    return len(low), len(high), float(np.median(high) - np.median(low))


def _rank_correlation(levels: Array) -> float:
    """Spearman's, with the order."""
    ranks = levels.argsort().argsort()
    return float(np.corrcoef(ranks, np.arange(len(levels)))[0, 1])
