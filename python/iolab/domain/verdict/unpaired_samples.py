"""Verdicts on numbers that have no rounds in common: runs of different days, other people's files.

What moved the machine between the two is in the difference, and no statistic takes it out. What is left is to state how
far the scatter within each arm lets one see: the ratio is Hodges and Lehmann's, the median of y / x over all pairs of a
baseline's value x and a candidate's y (Ann. Math. Stat. 34, 1963).

- 5 rounds of each and more: Brunner and Munzel's studentised ranks (Biometrical J. 42, 2000), which unlike Mann and
  Whitney's hold with arms of unequal noise, against their permutation distribution (Neubert and Brunner, Comput. Stat.
  Data Anal. 51, 2007): exact for arms that don't differ. The interval holds every ratio that this test does not reject.
  Of arms that do not overlap, ranks see no more than that, however far apart they are: there Welch's p goes on.
- fewer in either: Welch's t (Biometrika 34, 1947) on the logarithms, never narrower than the ratios of single rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from iolab.base.errors import InputError
from iolab.domain.definition import NO_DIFFERENCE, Nature
from iolab.domain.verdict.doubt import drift_through, modes_of_both, why_undecided_of
from iolab.domain.verdict.forecast import rounds_to_decide, spread_of, spread_with_ties
from iolab.domain.verdict.interval import Array, typical
from iolab.domain.verdict.judgement import (
    BEYOND,
    ZEROS,
    Judgement,
    by_difference,
    decide,
    undefined,
    why_no_ratio,
)

FEWEST_FOR_RANKS = 5
MOST_FOR_RANKS = 30
"""The values of each arm; beyond this number, neighbouring rounds are averaged, because every ratio of two values is
tried."""
ROUNDING = 1e-12
"""Ratios that are as close are equal."""
PARTS = 8
"""In which the ratios are tried, for memory."""
PERMUTATIONS_MAX = 20_000
"""All of them up to here (8 rounds of each); beyond, so many drawn once, always the same."""


def judge_unpaired(
    baseline: Sequence[float | None],
    candidate: Sequence[float | None],
    *,
    nature: Nature,
    same_within: float = 0.02,
    confidence: float = 0.95,
) -> Judgement:
    """Compare two settings on numbers that are not paired; None and NaN are left out. The rest as in `judge`."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence}, expected a number between 0 and 1")
    if not (same_within >= 0 and math.isfinite(same_within)):
        raise InputError(f"same_within is {same_within}, expected a share such as 0.02")
    alpha = 1 - confidence
    x, y = _numbers(baseline), _numbers(candidate)
    few = f"{len(x)} and {len(y)} rounds, a verdict on rounds that are not interleaved needs at least 2 of each"
    reason = few if min(len(x), len(y)) < 2 else why_no_ratio(np.concatenate([x, y]))
    if reason:
        without = undefined(x, y, reason, same_within, alpha, len(x))
        if reason != ZEROS:
            return without
        is_higher = np.sign(y - x[:, None]).sum() > 0
        return by_difference(without, _p_of_ranks(x, y), is_higher, (x, y), nature)
    if not x.any() and not y.any():
        return Judgement(0.0, 0.0, len(y), 1.0, 1.0, 1.0, 1.0, None, "same", 0, same_within, alpha, n_baseline=len(x))
    scale = math.ldexp(1.0, math.frexp(float(x.max()))[1] - 1)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scaled = x / scale, y / scale
        low, ratio, high = interval(*scaled, alpha)
    if not (0 < low <= ratio <= high < math.inf):
        return undefined(x, y, BEYOND, same_within, alpha, len(x))
    verdict = decide(low, high, nature, same_within)
    drift = drift_through(*scaled) if verdict not in NO_DIFFERENCE else None
    if drift:
        verdict = "undecided"
    each = _rounds_of_each(len(x), len(y))
    spread = spread_with_ties(spread_of(ratio, low, high, each, alpha), *scaled)
    more = rounds_to_decide(math.log(ratio), spread, each, same_within, alpha) if verdict == "undecided" else 0
    return Judgement(
        baseline=float(typical(scaled[0])) * scale,
        candidate=float(typical(scaled[1])) * scale,
        n=len(y),
        ratio=ratio,
        ci_low=low,
        ci_high=high,
        p_value=p_value(*scaled),
        q_value=None,
        verdict=verdict,
        rounds_to_decide=None if drift else more,
        same_within=same_within,
        alpha=alpha,
        reason=drift,
        why=(drift or why_undecided_of(len(x), len(y), spread)) if verdict == "undecided" else None,
        modes=modes_of_both(*scaled) if verdict not in NO_DIFFERENCE else None,
        spread=spread,
        n_baseline=len(x),
    )


def interval(baseline: Array, candidate: Array, alpha: float) -> tuple[float, float, float]:
    """Lower end, estimate and upper end of the ratio candidate / baseline, of positive values."""
    ratios = np.sort((candidate[None, :] / baseline[:, None]).ravel())
    middle = _middle(ratios)
    if min(len(baseline), len(candidate)) < FEWEST_FOR_RANKS:
        low, high = _welch_interval(baseline, candidate, alpha)
        low, high = min(low, float(ratios[0])), max(high, float(ratios[-1]))
    else:
        low, high = _rank_interval(_averaged(baseline), _averaged(candidate), alpha)
    # By rounding errors, or because the interval is one of averages.
    return low, min(max(middle, low), high), high


def p_value(baseline: Array, candidate: Array) -> float:
    """Two-sided p-value of "the ratio is 1"; if values are equal across the arms, the least that the order of the equal
    ones could make of it."""
    x, y = _averaged(baseline), _averaged(candidate)
    tried = (_studentised(y / x[:, None], 1.0, ties) for ties in (0.0, 0.5, 1.0))
    by_ranks = max(float(_p_of(statistic, len(x), len(y))) for statistic in tried)
    are_few = min(len(baseline), len(candidate)) < FEWEST_FOR_RANKS
    if baseline.max() < candidate.min() or candidate.max() < baseline.min():
        student = _welch_p(baseline, candidate)
        return student if are_few else min(student, by_ranks)
    return max(_welch_p(baseline, candidate), by_ranks) if are_few else by_ranks


def _p_of_ranks(x: Array, y: Array) -> float:
    """Mann and Whitney's against its permutations, of numbers that have no ratio (Ann. Math. Stat. 18, 1947)."""
    from scipy.stats import PermutationMethod, mannwhitneyu

    dealt = PermutationMethod(n_resamples=PERMUTATIONS_MAX, rng=np.random.default_rng(0))
    return float(mannwhitneyu(x, y, method=dealt).pvalue)


def _rank_interval(x: Array, y: Array, alpha: float) -> tuple[float, float]:
    """From the lowest to the highest ratio that is not rejected: the ratios of two values, at which the ranks change,
    and what lies between two of them."""
    ratios = y / x[:, None]
    rising = np.sort(ratios.ravel())
    points = rising[np.concatenate([[True], rising[1:] > rising[:-1] * (1 + ROUNDING)])]
    tried = np.concatenate([points, np.sqrt(points[:-1]) * np.sqrt(points[1:])])
    statistics = [_studentised(ratios, part[:, None, None]) for part in np.array_split(tried, PARTS)]
    kept = _p_of(np.concatenate(statistics), len(x), len(y)) > alpha
    between = kept[len(points) :]
    ends = np.concatenate([points[kept[: len(points)]], points[:-1][between], points[1:][between]])
    if not len(ends):
        ends = np.array([_middle(rising)])
    return float(ends.min()), float(ends.max())


def _studentised(ratios: Array, ratio: float | Array, ties: float = 0.5) -> Array:
    """Brunner and Munzel's statistic of "the ratio is `ratio`", or several, positive if the candidate's values are
    higher. `ratios`: candidate / baseline, a row per value of the baseline; `ties` is what counts one that is equal."""
    equal = np.abs(ratios - ratio) <= ROUNDING * np.abs(ratio)
    wins = ((ratios > ratio) & ~equal) + ties * equal
    n, m = ratios.shape
    of_x, of_y = wins.mean(-1), wins.mean(-2)
    return _over_error(of_x.mean(-1) - 0.5, of_x.var(-1, ddof=1) / n + of_y.var(-1, ddof=1) / m)


def _over_error(effect: Array, variance: Array) -> Array:
    """Rounding errors are no effect, and no variance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = effect / np.sqrt(np.where(variance < 1e-24, 0.0, variance))
    return np.where(np.abs(effect) < 1e-12, 0.0, found)


def _p_of(statistic: Array, n: int, m: int) -> Array:
    """Share of the permutations with a statistic as large; of drawn ones, what was observed is one more of them."""
    null = _null(*sorted((n, m)))  # the same, whichever arm is the larger
    at_least = len(null) - np.searchsorted(null, np.abs(statistic) * (1 - 1e-9), side="left")
    more = 0 if math.comb(n + m, n) <= PERMUTATIONS_MAX else 1
    return np.asarray((at_least + more) / (len(null) + more))


@lru_cache(maxsize=64)
def _null(n: int, m: int) -> Array:
    """|statistic| over all ways to deal n + m different numbers to two arms, rising. The numbers don't matter."""
    total = n + m
    if math.comb(total, n) <= PERMUTATIONS_MAX:
        dealt = np.zeros((math.comb(total, n), total), dtype=bool)
        for row, chosen in enumerate(combinations(range(total), n)):
            dealt[row, list(chosen)] = True
    else:
        dealt = np.random.default_rng(0).random((PERMUTATIONS_MAX, total)).argsort(1) < n
    # How many of the candidate's lie above each of the baseline's, and of the baseline's below each of the candidate's.
    above = (~dealt)[:, ::-1].cumsum(1)[:, ::-1][dealt].reshape(-1, n) / m
    below = dealt.cumsum(1)[~dealt].reshape(-1, m) / n
    variance = above.var(1, ddof=1) / n + below.var(1, ddof=1) / m
    return np.sort(np.abs(_over_error(above.mean(1) - 0.5, variance)))


def _welch_interval(x: Array, y: Array, alpha: float) -> tuple[float, float]:
    from scipy.special import stdtrit

    difference, error, freedom = _welch(x, y)
    half = 0.0 if error == 0 else error * float(stdtrit(freedom, 1 - alpha / 2))
    with np.errstate(over="ignore"):
        return float(np.exp(difference - half)), float(np.exp(difference + half))


def _welch_p(x: Array, y: Array) -> float:
    from scipy.special import stdtr

    difference, error, freedom = _welch(x, y)
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    return float(2 * stdtr(freedom, -abs(difference) / error))


def _welch(x: Array, y: Array) -> tuple[float, float, float]:
    """Difference of the logarithms' means, its standard error, and Satterthwaite's degrees of freedom."""
    log_x, log_y = np.log(x), np.log(y)
    # From the first on, so that equal numbers have no spread at all, not one of rounding errors.
    of_x = float((log_x - log_x[0]).var(ddof=1)) / len(x)
    of_y = float((log_y - log_y[0]).var(ddof=1)) / len(y)
    difference = float(log_y.mean() - log_x.mean()) if (of_x or of_y) else float(log_y[0] - log_x[0])
    both = of_x + of_y
    if both == 0:
        return difference, 0.0, 1.0
    freedom = both**2 / (of_x**2 / (len(x) - 1) + of_y**2 / (len(y) - 1))
    return difference, math.sqrt(both), freedom


def _averaged(values: Array) -> Array:
    """At most `MOST_FOR_RANKS` of them: means of neighbours; the last few that make no whole group are left out."""
    size = -(-len(values) // MOST_FOR_RANKS)
    groups = len(values) // size
    return values if size == 1 else np.asarray(values[: groups * size].reshape(groups, size).mean(1))


def _middle(rising: Array) -> float:
    """Median; of two middle ones the geometric mean, so that the inverse ratios have the inverse median."""
    return float(np.sqrt(rising[(len(rising) - 1) // 2]) * np.sqrt(rising[len(rising) // 2]))


def _rounds_of_each(n: int, m: int) -> int:
    """The rounds of each of two equal arms that are as informative as n of one and m of the other."""
    return max(2, round(2 * n * m / (n + m)))


def _numbers(values: Sequence[float | None]) -> NDArray[np.float64]:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1:
        raise InputError("expected a list of numbers")
    return numbers[~np.isnan(numbers)]
