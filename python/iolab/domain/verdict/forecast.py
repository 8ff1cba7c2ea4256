"""How many more rounds would decide: a forecast from the rounds there are, which states what it does not know.

The true ratio and its spread are drawn from what the rounds leave possible (the posterior of a normal distribution
under Jeffreys' prior), further rounds are drawn from those, and all of them together are tested. The forecast is the
least number of further rounds after which `DECIDED_IN` of the draws are decided. docs/reference/statistics.md holds it
against simulated runs.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DECIDED_IN = 0.7
"""The share of the draws that has to be decided."""
FORECAST_MAX = 200
"""Further rounds; beyond this, a forecast is "over 200"."""
DRAWS = 400
GRID = tuple(sorted({round(1.18**power) for power in range(33)} | {FORECAST_MAX}))
"""Numbers of further rounds that are tried."""


def rounds_to_decide(
    mean: float, spread: float, n: int, same_within: float, alpha: float, alpha_difference: float | None = None
) -> int | None:
    """Further rounds after which the interval excludes 1 or lies within the margin; None: more than `FORECAST_MAX`.

    Args:
        mean: of the logarithms of the rounds' ratios. spread: their standard deviation. n: rounds there are.
        alpha_difference: the level that a difference needs, if it is finer than the interval's.
    """
    # As little as these rounds decide, whatever the values that the ends of their interval fall on.
    spread = max(spread, abs(mean) * math.sqrt(n) / _quantile(n, alpha_difference or alpha))
    if spread == 0:
        return 1
    draws = _draws(n)
    margin = math.log1p(same_within)
    low, high = 0, len(GRID) - 1
    if _decided(GRID[high], mean, spread, n, margin, alpha, alpha_difference, draws) < DECIDED_IN:
        return None
    while low < high:
        middle = (low + high) // 2
        if _decided(GRID[middle], mean, spread, n, margin, alpha, alpha_difference, draws) >= DECIDED_IN:
            high = middle
        else:
            low = middle + 1
    return GRID[low]


def spread_of(ratio: float, low: float, high: float, n: int, alpha: float) -> float:
    """Standard deviation of the logarithm of one round's ratio, from the harmonic mean of the interval's halves: an
    outlier makes one of them long, and less so among more rounds."""
    from scipy.special import stdtrit

    halves = [abs(math.log(end / ratio)) for end in (low, high)]
    half = 2 / sum(1 / one for one in halves) if all(halves) else 0.0
    return half / float(stdtrit(n - 1, 1 - alpha / 2)) * math.sqrt(n)


def spread_with_ties(spread: float, *arms: Array) -> float:
    """The spread, or that of the values themselves where several are equal, as of figures that were rounded: ends of an
    interval that fall on equal values make it too short. `arms`: the ratios, or the values of two arms."""
    if all(len(np.unique(one)) == len(one) for one in arms):
        return spread
    return max(spread, math.sqrt(sum(float(np.log(one).var(ddof=1)) for one in arms)))


def _decided(
    more: int,
    mean: float,
    spread: float,
    n: int,
    margin: float,
    alpha: float,
    alpha_difference: float | None,
    draws: tuple[Array, Array, Array],
) -> float:
    """Share of the draws that are decided after so many more rounds."""
    of_variance, of_mean, of_rounds = draws
    true_spread = spread * np.sqrt(of_variance)
    true_mean = mean + true_spread * of_mean / math.sqrt(n)
    later_mean = true_mean + true_spread * of_rounds / math.sqrt(more)
    total = n + more
    found = (n * mean + more * later_mean) / total
    # The variance of all rounds, of which that of the later ones is about the true one.
    squares = (n - 1) * spread**2 + (more - 1) * true_spread**2 + n * more / total * (later_mean - mean) ** 2
    error = np.sqrt(squares / (total - 1) / total)
    half = _quantile(total, alpha) * error
    differs = np.abs(found) > _quantile(total, alpha_difference or alpha) * error
    is_same = np.abs(found) + half < margin
    return float((differs | is_same).mean())


@lru_cache(maxsize=256)
def _draws(n: int) -> tuple[Array, Array, Array]:
    """The draws of the ratio of true to observed variance, of the true mean and of the later rounds' mean: always the
    same."""
    random = np.random.default_rng(n)
    freedom = n - 1
    return freedom / random.chisquare(freedom, DRAWS), random.standard_normal(DRAWS), random.standard_normal(DRAWS)


@lru_cache(maxsize=4096)
def _quantile(rounds: int, alpha: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(rounds - 1, 1 - alpha / 2))
