"""The stopping rule of `--until-decided`: look after every round, and still err in at most 5 % of runs.

Intervals that hold at all looks together: each look's level comes from a boundary c (n / N)^(shape - 1/2) that a random
walk crosses anywhere between the first look and round N with probability alpha (Wang and Tsiatis, Biometrics 43, 1987);
the interval at that level is the same as `judge`'s. So it doesn't matter when, or why, one stops. Several comparisons
share alpha equally (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from iolab.base.errors import InputError
from iolab.domain.definition import Nature
from iolab.domain.verdict.judgement import Judgement, judge_at

FIRST_LOOK = 5
SHAPE = 0.4
"""0: O'Brien and Fleming's boundary, late and powerful; 1/2: Pocock's, early. Chosen in
docs/reference/statistics.md."""
SPENT = 0.85
"""Share of alpha that the boundary spends; the rest covers for ranks of few rounds not being a random walk."""


def judge_sequential(
    baseline: Sequence[float | None],
    candidate: Sequence[float | None],
    *,
    nature: Nature,
    max_rounds: int,
    same_within: float = 0.02,
    comparisons: int = 1,
    confidence: float = 0.95,
) -> Judgement:
    """What `judge` says, valid at every look: call it after each round, stop when it is decided or at `max_rounds`.

    `max_rounds` and `comparisons` (metrics x workloads x candidate settings that share the promise) are fixed before
    the first round. Before `FIRST_LOOK` rounds nothing is decided. `p_value` holds at any stopping time; `q_value` is
    that times `comparisons`. Raises InputError as `judge` does, and for numbers of rounds or comparisons out of range.
    """
    if max_rounds < FIRST_LOOK:
        raise InputError(f"max_rounds is {max_rounds}, expected at least {FIRST_LOOK}")
    if comparisons < 1:
        raise InputError(f"comparisons is {comparisons}, expected at least 1")
    alpha = (1 - confidence) / comparisons
    rounds = min(sum(_is_number(x) and _is_number(y) for x, y in zip(baseline, candidate, strict=False)), max_rounds)
    level = nominal_level(max(rounds, FIRST_LOOK), max_rounds, alpha)
    judgement = judge_at(level, baseline, candidate, nature=nature, same_within=same_within)
    if judgement.p_value is None:
        return judgement
    p = overall_p_value(judgement.p_value, max(rounds, FIRST_LOOK), max_rounds)
    judgement = replace(judgement, p_value=p)
    if rounds < FIRST_LOOK:
        return replace(judgement, verdict="undecided", rounds_to_decide=FIRST_LOOK - rounds, q_value=1.0)
    return replace(judgement, q_value=min(1.0, p * comparisons))


@lru_cache(maxsize=4096)
def nominal_level(rounds: int, max_rounds: int, alpha: float) -> float:
    """The level of the interval after `rounds`, for alpha over all looks."""
    from scipy.special import ndtr

    return 2 * float(ndtr(-_height(max_rounds, SPENT * alpha) * (rounds / max_rounds) ** (SHAPE - 0.5)))


def overall_p_value(p_value: float, rounds: int, max_rounds: int) -> float:
    """Probability that a random walk crosses, at any look, the boundary through this look's p-value."""
    if p_value <= 0:
        return 0.0
    from scipy.special import ndtri

    z = -float(ndtri(min(1.0, p_value) / 2))
    overall = _crossing_probability(z * (rounds / max_rounds) ** (0.5 - SHAPE), max_rounds)
    return min(1.0, max(p_value, overall / SPENT))


@lru_cache(maxsize=256)
def _height(max_rounds: int, alpha: float) -> float:
    """The c at which the boundary is crossed with probability alpha."""
    from scipy.special import ndtri

    target = -float(ndtri(alpha / 2))
    height = target
    for _ in range(50):
        step = target + float(ndtri(_crossing_probability(height, max_rounds) / 2))
        height += step
        if abs(step) < 1e-7:
            break
    return height


def _crossing_probability(height: float, max_rounds: int) -> float:
    """By recursive integration over the walk's density inside the boundary (Armitage, McPherson and Rowe, J. R. Stat.
    Soc. A 132, 1969), with Gauss-Legendre nodes."""
    looks = np.arange(FIRST_LOOK, max_rounds + 1)
    bounds = height * np.sqrt(looks) * (looks / max_rounds) ** (SHAPE - 0.5)
    nodes, weights = np.polynomial.legendre.leggauss(24 + int(3 * bounds[-1]))
    places = bounds[0] * nodes
    density = np.exp(-(places**2) / (2 * FIRST_LOOK)) / np.sqrt(2 * np.pi * FIRST_LOOK)
    for before, now in pairwise(bounds):
        places = now * nodes
        step = np.exp(-((places[:, None] - before * nodes[None, :]) ** 2) / 2) / np.sqrt(2 * np.pi)
        density = step @ (before * weights * density)
    return float(min(1.0, max(0.0, 1 - (bounds[-1] * weights * density).sum())))


def _is_number(value: float | None) -> bool:
    return value is not None and value == value
