"""One metric, candidate against baseline: the four-way verdict and how many more rounds would settle it; and many
comparisons at once, with the share of false discoveries kept in check."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iolab.base.errors import InputError
from iolab.base.strict_json import JsonObject
from iolab.domain.definition import DIFFERENCES, NO_DIFFERENCE, Nature, Verdict
from iolab.domain.verdict.doubt import TwoModes, modes_of_both, why_undecided
from iolab.domain.verdict.forecast import rounds_to_decide, spread_of, spread_with_ties
from iolab.domain.verdict.interval import FEWEST_FOR_RANKS, LARGE, estimate, interval, p_value, typical
from iolab.domain.verdict.looks import level_of_final

POWER = 0.8
"""`rounds_needed` rounds settle it with this probability, if the estimates hold."""
EXPONENTS_MAX = 1000
"""Binary orders of magnitude between the smallest value and the largest: a ratio of sums has to be a number too."""
BEYOND = "the ratio or its interval is beyond what numbers can hold"
ZEROS = "a value is zero, a ratio needs positive numbers"
BY_ITSELF = "by itself decided"
AMONG = f"{BY_ITSELF}, among {{:,}} not yet"
"""Why a difference is not claimed that a single comparison would claim."""


@dataclass(frozen=True)
class Judgement:
    """A verdict with what it rests on: both arms' typical values, their ratio with its interval, p and q."""

    baseline: float | None
    """Typical value of the arm (Hodges-Lehmann); None without data. `ratio` is estimated within rounds, so it isn't
    exactly candidate / baseline."""
    candidate: float | None
    n: int
    """Rounds used."""
    ratio: float | None
    """Candidate / baseline; None, like the interval, if it is undefined; p is then of the difference, of counts."""
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    q_value: float | None
    """p adjusted for the number of comparisons; None until that is known."""
    verdict: Verdict
    rounds_to_decide: int | None
    """Further rounds (`iolab.domain.verdict.forecast`); 0 when decided; None when more than 200, or without a ratio."""
    same_within: float
    alpha: float
    """Level of the interval: 0.05 for 95 %."""
    reason: str | None = None
    """Why the ratio is undefined."""
    final: bool = True
    """False for a verdict that a run until decided, of at most twice the rounds, would not have stopped at: further
    rounds may overturn it."""
    why: str | None = None
    """Why it is undecided."""
    median_ratio: float | None = None
    """Median of the rounds' own ratios; None if the rounds are not paired, or are too few to have another one."""
    modes: TwoModes | None = None
    """Of a difference: between the modes, a typical value may be one that never occurs."""
    spread: float | None = None
    """Standard deviation of the logarithm of one round's ratio, as far as forecasts need it."""
    n_baseline: int | None = None
    """Rounds of the baseline, if they are not the candidate's; None: the arms are paired, so both have `n`."""

    def as_dict(self) -> JsonObject:
        """The fields that tables and JSON show."""
        hidden = {"same_within", "alpha", "reason", "spread"}
        shown = {name: value for name, value in asdict(self).items() if name not in hidden}
        return {**shown, "n_baseline": self.n if self.n_baseline is None else self.n_baseline}

    @property
    def has_both(self) -> bool:
        """Whether both arms have values to compare."""
        return self.n > 0 and self.n_baseline != 0

    @property
    def is_decided_by_itself(self) -> bool:
        """Whether the number of comparisons alone leaves it undecided."""
        return (self.why or "").startswith(BY_ITSELF)

    @property
    def is_equal(self) -> bool:
        """Whether both arms have the same value in each round."""
        return self.ratio == self.ci_low == self.ci_high == 1

    @property
    def differs(self) -> bool:
        """Whether the verdict is that there is a difference, whichever way."""
        return self.verdict not in NO_DIFFERENCE


def judge(
    baseline: Sequence[float | None],
    candidate: Sequence[float | None],
    *,
    nature: Nature,
    same_within: float = 0.02,
    confidence: float = 0.95,
) -> Judgement:
    """Compare two settings on numbers paired by index, one pair per round, in the order in which the rounds ran.

    `nature`, the metric's, states how a difference is called. `same_within` is the margin of *same*, 0.02 for 2 %: the
    interval has to lie within 1 / 1.02 ... 1.02. A round that lacks a number (None, NaN) on either side is left out.
    Raises InputError for sequences of different length and for a margin or confidence out of range.
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence}, expected a number between 0 and 1")
    return judge_at(1 - confidence, baseline, candidate, nature=nature, same_within=same_within)


def judge_at(
    alpha: float,
    baseline: Sequence[float | None],
    candidate: Sequence[float | None],
    *,
    nature: Nature,
    same_within: float,
    is_look: bool = False,
) -> Judgement:
    """`judge` with an interval that misses with probability alpha. `is_look`: a stopping rule chose it, so that every
    verdict is final."""
    if not (same_within >= 0 and math.isfinite(same_within)):
        raise InputError(f"same_within is {same_within}, expected a share such as 0.02")
    x, y = _paired(baseline, candidate)
    few = f"{len(x)} of the rounds has both settings, a verdict needs at least 2"
    reason = few if len(x) < 2 else why_no_ratio(np.concatenate([x, y]))
    if reason in (None, ZEROS) and (x == y).all():
        # A drift between the trials of a round would have made some of them differ, whatever it is.
        level = float(typical(x / 2)) * 2 if x.all() else float(np.median(x))
        return Judgement(
            level, level, len(x), 1.0, 1.0, 1.0, 1.0, None, "same", 0, same_within, alpha, median_ratio=1.0
        )
    if reason:
        # Without a common round, each setting still has a level of its own.
        ours, theirs = (x, y) if len(x) else map(_known, (baseline, candidate))
        without = replace(undefined(ours, theirs, reason, same_within, alpha), n=len(x))
        if reason != ZEROS:
            return without
        return by_difference(without, _p_of_signs(y - x), np.sign(y - x).sum() > 0, (x, y), nature)
    scale = math.ldexp(1.0, math.frexp(float(x.max()))[1] - 1)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scaled = x / scale, y / scale
        low, high = (float(end) for end in interval(*scaled, alpha))
        ratio = float(estimate(*scaled))
    if not (0 < low <= high < math.inf):
        return undefined(x, y, BEYOND, same_within, alpha)
    x, y = scaled
    verdict = decide(low, high, nature, same_within)
    few_rounds = len(x) < FEWEST_FOR_RANKS
    changes = y / x
    of_interval = 0.0 if few_rounds else spread_with_ties(spread_of(ratio, low, high, len(x), alpha), changes)
    spread = float(np.log(changes).std(ddof=1)) if few_rounds else of_interval
    return Judgement(
        baseline=float(typical(x)) * scale,
        candidate=float(typical(y)) * scale,
        n=len(x),
        ratio=min(max(ratio, low), high),
        ci_low=low,
        ci_high=high,
        p_value=float(p_value(x, y)),
        q_value=None,
        verdict=verdict,
        rounds_to_decide=rounds_to_decide(math.log(ratio), spread, len(x), same_within, alpha)
        if verdict == "undecided"
        else 0,
        same_within=same_within,
        alpha=alpha,
        final=is_look or _is_final(scaled, verdict, nature, same_within, alpha),
        why=why_undecided(*scaled, spread) if verdict == "undecided" else None,
        median_ratio=float(np.median(y / x)),
        modes=modes_of_both(*scaled) if verdict not in NO_DIFFERENCE else None,
        spread=spread,
    )


def _is_final(
    arms: tuple[NDArray[np.float64], NDArray[np.float64]],
    verdict: Verdict,
    nature: Nature,
    same_within: float,
    alpha: float,
) -> bool:
    if verdict == "undecided":
        return True
    low, high = (float(end) for end in interval(*arms, level_of_final(len(arms[0]), alpha)))
    return decide(low, high, nature, same_within) == verdict


def rounds_needed(
    ratio: float, spread: float, same_within: float, alpha: float, alpha_difference: float | None = None
) -> float:
    """Rounds in all after which it is decided, as in `rounds_to_decide`; infinite if no number suffices. `spread` is
    the standard deviation of the logarithm of one round's ratio. With a margin of 0 only a difference decides.

    The number of rounds is Guenther's (Am. Stat. 35, 1981): the normal one plus z^2 / 2 for the t distribution.
    """
    from scipy.special import ndtri

    difference = abs(math.log(ratio))
    z = -float(ndtri((alpha_difference or alpha) / 2))
    z_same = -float(ndtri(alpha / 2))
    needed = math.inf
    if difference > 0:
        needed = _square((z + float(ndtri(POWER))) * spread / difference) + z * z / 2
    room = math.log1p(same_within) - difference
    if room > 0:
        both_ends = (1 + POWER) / 2
        needed = min(needed, _square((z_same + float(ndtri(both_ends))) * spread / room) + z_same * z_same / 2)
    return needed


def _square(x: float) -> float:
    """Infinite if it is too large; `x**2` would raise OverflowError."""
    return x * x


def decide(low: float, high: float, nature: Nature, same_within: float) -> Verdict:
    """The statement of a ratio's interval."""
    if low >= 1 / (1 + same_within) and high <= 1 + same_within:
        return "same"
    if low <= 1 <= high:
        return "undecided"
    if_higher, if_lower = DIFFERENCES[nature]
    return if_higher if low > 1 else if_lower


def _paired(
    baseline: Sequence[float | None], candidate: Sequence[float | None]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise InputError(f"baseline has {x.size} rounds and candidate {y.size}, expected pairs")
    both = ~(np.isnan(x) | np.isnan(y))
    return x[both], y[both]


def _known(values: Sequence[float | None]) -> NDArray[np.float64]:
    found = np.asarray(values, dtype=np.float64)
    return found[~np.isnan(found)]


def why_no_ratio(both: NDArray[np.float64]) -> str | None:
    """Why the two arms, whose values are `both`, have no ratio; None if they have one."""
    if not np.isfinite(both).all():
        return "a value is infinite"
    if (both < 0).any():
        return "a value is negative, a ratio needs positive numbers"
    if (both == 0).any() and both.any():
        return ZEROS
    if both.any() and math.frexp(float(both.max()))[1] - math.frexp(float(both.min()))[1] > EXPONENTS_MAX:
        return BEYOND
    return None


def by_difference(
    without: Judgement,
    p: float,
    is_higher: bool | np.bool_,
    arms: tuple[NDArray[np.float64], NDArray[np.float64]],
    nature: Nature,
) -> Judgement:
    """Of counts that are zero at times, such as errors: whether one side has more, though not how many times as many.
    Their levels are medians, or means if these are alike, as they are if most rounds have none.

    Args:
        p: of a test of which side has more.
        is_higher: what that test saw. Means may say otherwise, by one round.
    """
    levels = replace(without, p_value=p)
    if without.baseline == without.candidate:
        before, after = (float(one.mean()) for one in arms)
        levels = replace(levels, baseline=before, candidate=after)
    if p > without.alpha:
        return levels
    if_higher, if_lower = DIFFERENCES[nature]
    return replace(levels, verdict=if_higher if is_higher else if_lower, rounds_to_decide=0)


def _p_of_signs(differences: NDArray[np.float64]) -> float:
    """The sign test's, two-sided: of the rounds that differ, as many are higher as lower."""
    from scipy.stats import binomtest

    differing = differences[differences != 0]
    return float(binomtest(int((differing > 0).sum()), len(differing)).pvalue)


def undefined(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    reason: str,
    same_within: float,
    alpha: float,
    n_baseline: int | None = None,
) -> Judgement:
    """A judgement without a ratio, of the values that the two arms have."""

    def middle(values: NDArray[np.float64]) -> float | None:
        if not len(values) or not np.isfinite(values).all():
            return None
        # Halved, so that the sum of two is a number.
        return float(np.median(values / 2) * 2) if np.abs(values).max() > LARGE else float(np.median(values))

    return Judgement(
        baseline=middle(x),
        candidate=middle(y),
        n=len(y),
        ratio=None,
        ci_low=None,
        ci_high=None,
        p_value=None,
        q_value=None,
        verdict="undecided",
        rounds_to_decide=None,
        same_within=same_within,
        alpha=alpha,
        reason=reason,
        n_baseline=n_baseline,
    )


def control_false_discovery(judgements: Sequence[Judgement]) -> list[Judgement]:
    """The judgements with their q-values; a difference whose q exceeds the interval's alpha becomes *undecided*.

    Benjamini and Hochberg's step-up (J. R. Stat. Soc. B 57, 1995): among the differences that are claimed, at most a
    share alpha is false on average, also for metrics that move together. Judgements without a p-value don't count.
    """
    counted = [index for index, one in enumerate(judgements) if one.p_value is not None]
    adjusted = list(judgements)
    found = q_values([one.p_value for one in judgements if one.p_value is not None])
    for index, q in zip(counted, found, strict=True):
        adjusted[index] = with_q_value(judgements[index], q, among=len(counted))
    return adjusted


def q_values(p_values: Sequence[float]) -> list[float]:
    """Each p-value adjusted for their number (Benjamini and Hochberg), in the same order."""
    ranked = sorted((p, index) for index, p in enumerate(p_values))
    adjusted = [1.0] * len(ranked)
    q = 1.0
    for rank in range(len(ranked), 0, -1):
        p, index = ranked[rank - 1]
        q = min(q, p * len(ranked) / rank)
        adjusted[index] = q
    return adjusted


def with_q_value(judgement: Judgement, q: float, *, among: int) -> Judgement:
    """The judgement after adjusting its p-value for the number of comparisons that it is `among`."""
    held = replace(judgement, q_value=q)
    if not judgement.differs or q <= judgement.alpha:
        return held
    ratio, low, high, p = judgement.ratio, judgement.ci_low, judgement.ci_high, judgement.p_value
    if ratio is None:
        return replace(held, verdict="undecided", rounds_to_decide=None, final=True, why=AMONG.format(among))
    assert low is not None and high is not None and p is not None, "claimed without an interval"
    spread = judgement.spread
    if spread is None:
        spread = spread_of(ratio, low, high, judgement.n, judgement.alpha)
    more = rounds_to_decide(
        math.log(ratio), spread, judgement.n, judgement.same_within, judgement.alpha, judgement.alpha * p / q
    )
    return replace(held, verdict="undecided", rounds_to_decide=more, final=True, why=AMONG.format(among))
