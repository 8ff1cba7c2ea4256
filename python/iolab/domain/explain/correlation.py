"""Rank correlation with a permutation test: does one column of numbers rise and fall with another?"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEWEST_ROUNDS = 5
"""Even the strictest order of four has a chance of 2 / 4! = 8 %."""
EXACT_MAX = 8
"""Rounds up to which all orders are tried: 8! = 40,320."""
ORDERS_DRAWN = 20_000
"""Beyond, so many are drawn, always the same ones; no p-value is below 1 in that."""
SEED = 20111
ALPHA = 0.05


def rounds_needed(metrics: int) -> int:
    """The number of rounds from which a single one of this many metrics can be shown to move with the result: the
    strictest order has the chance 2 / n!, and the first of Benjamini and Hochberg's steps asks for alpha / metrics."""
    rounds = FEWEST_ROUNDS
    while 2 / math.factorial(rounds) > ALPHA / max(metrics, 1):
        rounds += 1
    return rounds


def rank_correlations(result: Array, metrics: Array) -> tuple[Array, Array]:
    """Spearman's coefficient of each row of `metrics` (metrics x rounds) with `result` (rounds), and its two-sided
    p-value: the share of the orders of the rounds whose coefficient is as far from zero. Ties have their mean rank, and
    the p-values are exact with them. Rows, and a result, without any variation have NaN.
    """
    ours, theirs = _unit(_ranks(result[None, :])[0]), _unit(_ranks(metrics))
    found = theirs @ ours
    shuffled = ours[_orders(len(result))]
    as_far = np.array([(np.abs(shuffled @ row) >= abs(value) - 1e-9).sum() for row, value in zip(theirs, found)])  # noqa: B905
    all_tried = len(result) <= EXACT_MAX
    p = as_far / len(shuffled) if all_tried else (as_far + 1) / (len(shuffled) + 1)
    return found, np.where(np.isnan(found), np.nan, p)


def _ranks(rows: Array) -> Array:
    """Within each row, from 1; equal values share their mean rank."""
    below = (rows[:, None, :] < rows[:, :, None]).sum(-1)
    equal = (rows[:, None, :] == rows[:, :, None]).sum(-1)
    ranks: Array = below + (equal + 1) / 2
    return ranks


def _unit(rows: Array) -> Array:
    """Less their mean, of length 1; NaN if all are equal."""
    centred = rows - rows.mean(-1, keepdims=True)
    length = np.sqrt((centred**2).sum(-1, keepdims=True))
    unit: Array = np.divide(centred, length, out=np.full_like(centred, np.nan), where=length > 0)
    return unit


@lru_cache(maxsize=8)
def _orders(rounds: int) -> NDArray[np.intp]:
    """Orders of the rounds, a row each."""
    if rounds <= EXACT_MAX:
        return np.array(list(permutations(range(rounds))), dtype=np.intp)
    source = np.random.default_rng(SEED)
    return source.permuted(np.tile(np.arange(rounds), (ORDERS_DRAWN, 1)), axis=1)
