"""Verdicts if only summaries are left: of each arm a mean, a standard deviation and how many values they are of.

Published figures have no rounds any more, so that nothing is paired, and what moved the whole machine is part of the
standard deviation. Welch's t (Biometrika 34, 1947) with Satterthwaite's degrees of freedom; the interval of the ratio
theta inverts the same test of `candidate - theta * baseline` (Fieller, J. R. Stat. Soc. B 16, 1954), so that it
excludes 1 exactly where that of the difference excludes 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iolab.base.errors import InputError
from iolab.domain.definition import NO_DIFFERENCE, Nature, Verdict
from iolab.domain.verdict.judgement import decide, q_values, rounds_needed

ALPHA = 0.05
"""The probability of a difference between identical arms, and one less the intervals' confidence."""


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation of `n` independent values, as they are published in place of the values."""

    n: int
    mean: float
    sd: float
    """Standard deviation of one value."""


Arm = Sequence[Summary]
"""One summary, or several of which the mean is compared, each counting alike."""


@dataclass(frozen=True)
class Contrast:
    """The candidate's arm against the baseline's: difference and ratio of the means, with intervals and p."""

    difference: float
    difference_low: float
    difference_high: float
    ratio: float
    ci_low: float
    ci_high: float
    p_value: float
    q_value: float
    """p adjusted for the number of contrasts."""
    verdict: Verdict
    n_to_decide: float
    """How many values each summary would have to be of for a verdict other than *undecided*, with the power of
    `rounds_to_decide`; infinite if no number suffices."""
    n_to_see: float
    """The same for a difference, if the ratio is the true one."""


def contrasts(pairs: Sequence[tuple[Arm, Arm]], *, nature: Nature, same_within: float = 0.02) -> list[Contrast]:
    """Each pair's candidate, the second, against its baseline, with the share of false discoveries among all pairs
    controlled as in `control_false_discovery`. InputError for summaries without a ratio."""
    found = [_contrast(*pair) for pair in pairs]
    return [
        one.judged(q, nature=nature, same_within=same_within)
        for one, q in zip(found, q_values([one.p_value for one in found]), strict=True)
    ]


@dataclass(frozen=True)
class _Contrast:
    """Before it is known how many there are."""

    difference: float
    half: float
    ratio: float
    ci_low: float
    ci_high: float
    p_value: float
    spread: float

    def judged(self, q: float, *, nature: Nature, same_within: float) -> Contrast:
        verdict = decide(self.ci_low, self.ci_high, nature, same_within)
        level = ALPHA
        if verdict not in NO_DIFFERENCE and q > ALPHA:
            verdict, level = "undecided", ALPHA * self.p_value / q
        return Contrast(
            difference=self.difference,
            difference_low=self.difference - self.half,
            difference_high=self.difference + self.half,
            ratio=self.ratio,
            ci_low=self.ci_low,
            ci_high=self.ci_high,
            p_value=self.p_value,
            q_value=q,
            verdict=verdict,
            n_to_decide=rounds_needed(self.ratio, self.spread, same_within, ALPHA, level),
            n_to_see=rounds_needed(self.ratio, self.spread, 0.0, ALPHA, level),
        )


def _contrast(baseline: Arm, candidate: Arm) -> _Contrast:
    from scipy.special import stdtr, stdtrit

    x, y = _mean(baseline), _mean(candidate)
    of_x, of_y = _variance_of_mean(baseline), _variance_of_mean(candidate)
    error = math.sqrt(of_x + of_y)
    freedom = _freedom([*_parts(baseline), *_parts(candidate)])
    t = float(stdtrit(freedom, 1 - ALPHA / 2))
    low, high = _fieller(x, y, t * t * of_x, t * t * of_y)
    n = min(one.n for one in (*baseline, *candidate))
    return _Contrast(
        difference=y - x,
        half=t * error,
        ratio=y / x,
        ci_low=low,
        ci_high=high,
        p_value=float(2 * stdtr(freedom, -abs(y - x) / error)),
        spread=math.log(high / low) / 2 / t * math.sqrt(n),
    )


def _mean(arm: Arm) -> float:
    return math.fsum(one.mean for one in arm) / len(arm)


def _variance_of_mean(arm: Arm) -> float:
    return math.fsum(variance for variance, _ in _parts(arm))


def _parts(arm: Arm) -> list[tuple[float, int]]:
    """What each summary adds to the variance of the arm's mean, with its degrees of freedom."""
    return [(one.sd**2 / one.n / len(arm) ** 2, one.n - 1) for one in arm]


def _freedom(parts: Sequence[tuple[float, int]]) -> float:
    """Satterthwaite's, of a sum of variances."""
    return math.fsum(part for part, _ in parts) ** 2 / math.fsum(part**2 / freedom for part, freedom in parts)


def _fieller(x: float, y: float, of_x: float, of_y: float) -> tuple[float, float]:
    """Where (y - theta x)^2 = of_y + theta^2 of_x."""
    leading = x * x - of_x
    if x <= 0 or y * y <= of_y or y <= 0 or leading <= 0:
        raise InputError("a mean is not clear of zero, a ratio needs positive numbers")
    root = math.sqrt(of_x * y * y + of_y * leading)
    return (x * y - root) / leading, (x * y + root) / leading
