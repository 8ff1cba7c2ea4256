"""The boundary of the stopping rule: the level of each look, so that all looks together err in at most alpha.

Each look's level comes from a boundary c (n / N)^(shape - 1/2) that a random walk crosses anywhere between the first
look and round N with probability alpha (Wang and Tsiatis, Biometrics 43, 1987).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

FIRST_LOOK = 5
SHAPE = 0.4
"""0: O'Brien and Fleming's boundary, late and powerful; 1/2: Pocock's, early. Chosen in
docs/reference/statistics.md."""
SPENT = 0.85
"""Share of alpha that the boundary spends; the rest covers for ranks of few rounds not being a random walk."""
ROUNDS_MAX_UNTIL_DECIDED = 50
"""The most rounds of a run that continues until it is decided, unless it sets another number."""


def level_of_final(rounds: int, alpha: float) -> float:
    """The level at which a verdict is final after so many rounds: that of a run until decided which may take twice as
    many. A verdict at a coarser level is one that a few further rounds may well overturn."""
    looked = min(max(rounds, FIRST_LOOK), ROUNDS_MAX_UNTIL_DECIDED // 2)
    return nominal_level(looked, 2 * looked, alpha)


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
    import numpy as np

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
