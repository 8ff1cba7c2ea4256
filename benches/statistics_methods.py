"""Other ways to judge a difference, for docs/reference/statistics.md: the usual ones, and the candidates that were
tried.

Each takes baseline and candidate, (experiments, rounds), and says for which experiments it claims a difference at 5 %.
"""

from collections.abc import Callable

import numpy as np
from iolab.domain.verdict.interval import interval, signed_rank_cumulative
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr, stdtrit

Array = NDArray[np.float64]
Claims = NDArray[np.bool_]
Rejects = Callable[[Array, Array], Claims]


def welch(x: Array, y: Array) -> Claims:
    n = x.shape[1]
    a, b = x.var(1, ddof=1) / n, y.var(1, ddof=1) / n
    freedom = (a + b) ** 2 / ((a**2 + b**2) / (n - 1))
    t = (y.mean(1) - x.mean(1)) / np.sqrt(a + b)
    return _small(2 * stdtr(freedom, -np.abs(t)))


def mann_whitney(x: Array, y: Array) -> Claims:
    """Exact for up to ten rounds, the normal approximation with continuity correction beyond."""
    n = x.shape[1]
    wins = (y[:, :, None] > x[:, None, :]).sum((1, 2))
    fewer = np.minimum(wins, n * n - wins)
    if n > 10:
        return _small(2 * ndtr(-(n * n / 2 - fewer - 0.5) / np.sqrt(n * n * (2 * n + 1) / 12)))
    return _small(2 * np.cumsum(_mann_whitney_shares(n))[fewer])


def _mann_whitney_shares(n: int) -> Array:
    """P(U = u) for two samples of n: the Gaussian binomial coefficient, normalised."""
    counts = np.zeros(n * n + 1)
    counts[0] = 1
    for k in range(1, n + 1):
        for u in range(n * n, n + k - 1, -1):
            counts[u] -= counts[u - n - k]
        for u in range(k, n * n + 1):
            counts[u] += counts[u - k]
    return np.asarray(counts / counts.sum())


def overlap(x: Array, y: Array) -> Claims:
    """The arms' own 95 % intervals don't overlap."""
    n = x.shape[1]
    reach = stdtrit(n - 1, 0.975) / np.sqrt(n)
    return np.asarray(np.abs(y.mean(1) - x.mean(1)) > reach * (x.std(1, ddof=1) + y.std(1, ddof=1)))


def trimmed_t(differences: Array, share: float = 0.0) -> Claims:
    """Student's t, and with trimming Tukey and McLaughlin's."""
    n = differences.shape[1]
    cut = int(share * n)
    ordered = np.sort(differences, axis=1)
    kept = n - 2 * cut
    mean = ordered[:, cut : n - cut].mean(1)
    ordered[:, :cut] = ordered[:, [cut]]
    ordered[:, n - cut :] = ordered[:, [n - cut - 1]]
    error = ordered.std(1, ddof=1) * np.sqrt((n - 1) / (kept * (kept - 1)))
    return _small(2 * stdtr(kept - 1, -np.abs(mean / error)))


def signed_ranks(differences: Array) -> Claims:
    n = differences.shape[1]
    ranks = np.argsort(np.argsort(np.abs(differences), axis=1), axis=1) + 1
    plus = np.where(differences > 0, ranks, 0).sum(1)
    fewer = np.minimum(plus, n * (n + 1) // 2 - plus)
    return _small(2 * signed_rank_cumulative(n)[fewer])


def iolab(x: Array, y: Array) -> Claims:
    low, high = interval(x, y, 0.05)
    return np.asarray((low > 1) | (high < 1))


def log_ratios(x: Array, y: Array) -> Array:
    """1e-4 stands for values at or below zero, which the widest Gaussian noise can draw."""
    return np.asarray(np.log(np.maximum(y, 1e-4) / np.maximum(x, 1e-4)))


def _small(p_values: Array) -> Claims:
    return np.asarray(p_values <= 0.05)


COMPARED: dict[str, Rejects] = {
    "iolab": iolab,
    "Welch's t": welch,
    "Mann-Whitney": mann_whitney,
    "interval overlap": overlap,
}

CANDIDATES: dict[str, Rejects] = {
    "paired t on log ratios": lambda x, y: trimmed_t(log_ratios(x, y)),
    "paired t on differences": lambda x, y: trimmed_t(y - x),
    "the same, both agree": lambda x, y: trimmed_t(log_ratios(x, y)) & trimmed_t(y - x),
    "trimmed t, 10 %, log ratios": lambda x, y: trimmed_t(log_ratios(x, y), 0.1),
    "trimmed t, 20 %, log ratios": lambda x, y: trimmed_t(log_ratios(x, y), 0.2),
    "signed ranks of log ratios": lambda x, y: signed_ranks(log_ratios(x, y)),
    "signed ranks of differences": lambda x, y: signed_ranks(y - x),
    **COMPARED,
}
