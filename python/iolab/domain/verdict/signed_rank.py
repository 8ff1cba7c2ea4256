"""The null distribution of Wilcoxon's signed-rank statistic: the sum of the ranks that carry a plus sign.

When settings don't differ, the shuffled order makes every sign a fair coin, whatever the noise: this distribution is
exact by design of the experiment, not by an assumption about the noise.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

LARGEST_EXACT = 100
"""Rounds; beyond, the normal approximation is right to 1e-4."""


@lru_cache(maxsize=256)
def cumulative(rounds: int) -> NDArray[np.float64]:
    """P(statistic <= k) for k = 0, 1, ... rounds (rounds + 1) / 2."""
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


def critical(rounds: int, alpha: float) -> int:
    """The largest k with P(statistic <= k) <= alpha / 2; -1 when even k = 0 is likelier than that."""
    return int(np.searchsorted(cumulative(rounds), alpha / 2 * (1 + 1e-12), side="right")) - 1
