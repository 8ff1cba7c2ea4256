"""A ratio on several hosts: how much it differs between them, and whether that is more than the noise of their rounds.

Each round was measured on one host, so each host has logarithms of ratios of its own. The spread between hosts is the
standard deviation of their true mean logarithms, by the method of moments: the variance of the hosts' means less what
the noise of their rounds accounts for (Cochran's estimator, unbiased before it is cut at zero). Whether they differ is
Welch's test of equal means under unequal variances (Biometrika 38, 1951).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROUNDS_MIN = 2
"""The rounds of a host that the spread takes into account: one round shows no noise."""


@dataclass(frozen=True)
class Spread:
    """How a ratio differs between hosts."""

    between: float
    """Standard deviation of the hosts' true ln ratios; 0 if the noise of the rounds accounts for all."""
    p_value: float | None
    """That all hosts have the same ratio; None if a host's rounds have no noise at all."""

    @property
    def share(self) -> float:
        """The spread as a share: 0.02 if hosts typically differ by 2 % from their middle."""
        return math.expm1(self.between)


def logs_by_host(
    baseline: Sequence[float | None], candidate: Sequence[float | None], hosts: Sequence[str | None]
) -> dict[str, NDArray[np.float64]]:
    """By host, ln(candidate / baseline) of its rounds that have both, in their order; those without a positive pair, or
    without a host, are left out."""
    found: dict[str, list[float]] = {}
    for x, y, host in zip(baseline, candidate, hosts, strict=True):
        if host is not None and _is_positive(x) and _is_positive(y):
            assert x is not None and y is not None
            found.setdefault(host, []).append(math.log(y) - math.log(x))
    return {host: np.array(values) for host, values in found.items()}


def spread(logs: Mapping[str, NDArray[np.float64]]) -> Spread | None:
    """How the hosts differ. None with fewer than two hosts of at least two rounds."""
    values = [one for one in logs.values() if len(one) >= ROUNDS_MIN]
    if len(values) < 2:
        return None
    means = np.array([one.mean() for one in values])
    errors = np.array([one.var(ddof=1) / len(one) for one in values])
    between = math.sqrt(max(0.0, float(means.var(ddof=1) - errors.mean())))
    counts = np.array([len(one) for one in values], dtype=np.float64)
    return Spread(between, _p_same(means, errors, counts))


def _p_same(means: NDArray[np.float64], errors: NDArray[np.float64], counts: NDArray[np.float64]) -> float | None:
    """Welch's p-value that the means are of one value; `errors` are their squared standard errors."""
    from scipy.special import fdtrc

    if not (errors > 0).all():
        return None
    hosts = len(means)
    weights = 1 / errors
    middle = float((weights * means).sum() / weights.sum())
    lack = float(((1 - weights / weights.sum()) ** 2 / (counts - 1)).sum())
    numerator = float((weights * (means - middle) ** 2).sum()) / (hosts - 1)
    f = numerator / (1 + 2 * (hosts - 2) / (hosts**2 - 1) * lack)
    return float(fdtrc(hosts - 1, (hosts**2 - 1) / (3 * lack), f))


def _is_positive(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0
