"""The ratio candidate/baseline with its interval and p-value, for arrays whose last axis is the round.

Two methods, by the number of rounds:

- 7 rounds and more: the signed-rank test on `candidate - theta * baseline`, inverted for theta. Its interval ends at
  order statistics of the Walsh ratios (y_i + y_j) / (x_i + x_j) over all pairs of rounds i <= j, the ratio form of
  Hodges and Lehmann's estimator (Ann. Math. Stat. 34, 1963); robust against outliers, exact for any symmetric noise.
- fewer: ranks can hardly reach 5 %, so Student's t on the logarithms of the rounds' ratios, never narrower than the
  signs allow: with n rounds, all agree by chance with probability 2^(1-n), whatever the noise.

The two meet: an interval at a level finer than 2^(1-n) is beyond what ranks can say, and uses the second for any n.
All values must be positive and finite.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

LARGEST_EXACT = 100
"""Rounds; beyond, the normal approximation is right to 1e-4."""


@lru_cache(maxsize=256)
def signed_rank_cumulative(rounds: int) -> NDArray[np.float64]:
    """The null distribution of Wilcoxon's signed-rank statistic, the sum of the ranks that carry a plus sign:
    P(statistic <= k) for k = 0, 1, ... rounds (rounds + 1) / 2.

    When settings don't differ, the shuffled order makes every sign a fair coin, whatever the noise: this distribution
    is exact by design of the experiment, not by an assumption about the noise.
    """
    top = rounds * (rounds + 1) // 2
    if rounds > LARGEST_EXACT:
        from scipy.special import ndtr

        spread = np.sqrt(top * (2 * rounds + 1) / 12)
        return np.asarray(ndtr((np.arange(top + 1) + 0.5 - top / 2) / spread), dtype=np.float64)
    share = np.zeros(top + 1)
    share[0] = 1.0
    for rank in range(1, rounds + 1):
        share[rank:] = (share[rank:] + share[:-rank]) / 2
        share[:rank] /= 2
    return np.cumsum(share)


def signed_rank_critical(rounds: int, alpha: float) -> int:
    """The largest k with P(statistic <= k) <= alpha / 2; -1 when even k = 0 is likelier than that."""
    return int(np.searchsorted(signed_rank_cumulative(rounds), alpha / 2 * (1 + 1e-12), side="right")) - 1


FEWEST_FOR_RANKS = 7
MOST_FOR_RANKS = 1000
"""Beyond, neighbouring rounds are summed: n rounds have n (n + 1) / 2 Walsh ratios."""
SMOOTHNESS = 2.45
"""Exponent in `_with_signs`, at which five rounds of Gaussian noise err in 5.0 % of cases
(docs/reference/statistics.md)."""

LARGE = 2.0**960
"""Sums of larger values may be no numbers any more: they are scaled by `DOWN` first."""
DOWN = 2.0**-64

Array = NDArray[np.float64]


def estimate(baseline: Array, candidate: Array) -> Array:
    """Typical ratio candidate/baseline; swapping the arms inverts it."""
    if baseline.shape[-1] < FEWEST_FOR_RANKS:
        return np.asarray(np.exp(np.log(candidate / baseline).mean(-1)))
    return _middle(_walsh_ratios(baseline, candidate))


def interval(baseline: Array, candidate: Array, alpha: float) -> tuple[Array, Array]:
    """Lower and upper end of the interval that misses the true ratio with probability alpha."""
    rounds = baseline.shape[-1]
    all_agree = 2.0 ** (1 - rounds)
    if rounds >= FEWEST_FOR_RANKS and alpha >= all_agree:
        walsh = _walsh_ratios(baseline, candidate)
        low = signed_rank_critical(_grouped(rounds), alpha)
        high = walsh.shape[-1] - 1 - low
        walsh = np.partition(walsh, (low, high), axis=-1)
        return walsh[..., low], walsh[..., high]
    from scipy.special import stdtrit

    mean, error = _log_mean_and_error(baseline, candidate)
    if alpha >= all_agree:
        half = error * stdtrit(rounds - 1, 1 - alpha / 2)
        return np.exp(mean - half), np.exp(mean + half)
    half = error * stdtrit(rounds - 1, 1 - _without_signs(alpha, all_agree) / 2)
    ratios = candidate / baseline
    return np.minimum(np.exp(mean - half), ratios.min(-1)), np.maximum(np.exp(mean + half), ratios.max(-1))


def p_value(baseline: Array, candidate: Array) -> Array:
    """Two-sided p-value of "the ratio is 1"; at most alpha if `interval` at alpha excludes 1."""
    mean, error = _log_mean_and_error(baseline, candidate)
    return _p_value(baseline, candidate, mean, error)


def p_value_of_differences(baseline: Array, candidate: Array) -> Array:
    """The same of "the difference is 0", for finite values of any sign, zero too, which have no ratio."""
    return _p_value(baseline, candidate, *_steady_mean_and_error(candidate - baseline, (baseline + candidate) / 2))


def _p_value(baseline: Array, candidate: Array, mean: Array, error: Array) -> Array:
    from scipy.special import stdtr

    rounds = baseline.shape[-1]
    all_agree = 2.0 ** (1 - rounds)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, np.abs(mean) / error)
    student: Array = 2 * stdtr(rounds - 1, -t)
    if rounds == FEWEST_FOR_RANKS - 1:
        return student
    agree = (candidate > baseline).all(-1) | (candidate < baseline).all(-1)
    if rounds < FEWEST_FOR_RANKS:
        otherwise = np.maximum(student, all_agree)
    else:
        ours, theirs = _pair_sums(_group(baseline)), _pair_sums(_group(candidate))
        fewer = np.minimum((theirs <= ours).sum(-1), (theirs >= ours).sum(-1))
        otherwise = np.minimum(1.0, 2 * signed_rank_cumulative(_grouped(rounds))[fewer])
    return np.where(agree, _with_signs(student, all_agree), otherwise)


def typical(values: Array) -> Array:
    """Hodges-Lehmann estimate of one arm's level: the median over all pairs of rounds of their mean."""
    if np.abs(values).max(initial=0.0) > LARGE:
        return typical(values * DOWN) / DOWN
    return np.median(_pair_sums(_group(values)), axis=-1) / (2 * _group_size(values.shape[-1]))


def _with_signs(student: Array, all_agree: float) -> Array:
    """A smooth minimum of Student's p-value and the probability that all signs agree."""
    low, high = np.minimum(student, all_agree), np.maximum(student, all_agree)
    share = np.divide(low, high, out=np.zeros_like(low), where=high > 0)
    smooth: Array = low * (1 + share**SMOOTHNESS) ** (-1 / SMOOTHNESS)
    return smooth


def _without_signs(alpha: float, all_agree: float) -> float:
    """Inverse of `_with_signs`."""
    return min(1.0, float(alpha * (1 - (alpha / all_agree) ** SMOOTHNESS) ** (-1 / SMOOTHNESS)))


def _log_mean_and_error(baseline: Array, candidate: Array) -> tuple[Array, Array]:
    """Mean of the log ratios and its standard error."""
    levels = (np.log(baseline) + np.log(candidate)) / 2
    return _steady_mean_and_error(np.log(candidate / baseline), levels)


def _steady_mean_and_error(changes: Array, levels: Array) -> tuple[Array, Array]:
    """Mean of the rounds' changes and its standard error, which is no smaller than a steady drift implies.

    Two trials of a round are at least one place apart in the sequence. When the machine drifts by b per trial, a
    round's change is +b or -b by the toss of its order, and a handful of equal tosses looks like a difference
    without spread. The rounds' levels betray it: they only rise or only fall, by 2 b each.
    """
    rounds = changes.shape[-1]
    # From the first round on, so that equal changes have no spread at all, not one of rounding errors.
    from_first = changes - changes[..., :1]
    error = from_first.std(-1, ddof=1) / np.sqrt(rounds)
    steps = np.diff(levels, axis=-1)
    one_way = (steps > 0).all(-1) | (steps < 0).all(-1)
    drift = np.where(one_way, np.abs(steps).min(-1) / 2, 0.0)
    return changes[..., 0] + from_first.mean(-1), np.maximum(error, drift / np.sqrt(rounds))


def _walsh_ratios(baseline: Array, candidate: Array) -> Array:
    ratios: Array = _pair_sums(_group(candidate)) / _pair_sums(_group(baseline))
    return ratios


def _pair_sums(values: Array) -> Array:
    first, second = _pairs(values.shape[-1])
    sums: Array = values[..., first] + values[..., second]
    return sums


@lru_cache(maxsize=8)
def _pairs(rounds: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The indices i <= j of all pairs of rounds, a round with itself included."""
    return np.triu_indices(rounds)


def _middle(walsh: Array) -> Array:
    """Median; of two middle ones the geometric mean, so that the inverse ratios have the inverse median."""
    count = walsh.shape[-1]
    low, high = (count - 1) // 2, count // 2
    walsh = np.partition(walsh, (low, high), axis=-1)
    return np.asarray(np.sqrt(walsh[..., low]) * np.sqrt(walsh[..., high]))


def _group_size(rounds: int) -> int:
    return -(-rounds // MOST_FOR_RANKS)


def _grouped(rounds: int) -> int:
    return rounds // _group_size(rounds)


def _group(values: Array) -> Array:
    size = _group_size(values.shape[-1])
    if size == 1:
        return values
    groups = values.shape[-1] // size
    sums: Array = values[..., : groups * size].reshape(*values.shape[:-1], groups, size).sum(-1)
    return sums
