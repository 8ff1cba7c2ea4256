"""Fits whole numbers to rates, with intervals.

The intervals are those of least squares where the search ends: t * s * sqrt(diag((J'J)^-1)), with Student's t and s of
the residuals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iolab.domain.calibration.key import Key
from iolab.domain.calibration.search import IsOver, Rates, Search, TimeOver, Values, huber

SLOPE_MIN = 0.1
"""A key is shown by the cells if 10 % of it move some rate by 1 % or more: the scatter of a simulated rate is less."""
WIDTH_MAX = math.log(20)
"""Half an interval, in logarithms, that says nothing: the cells don't show the key."""
SHARE = 0.95
MISSED = 0.03
"""If all cells are off by more than this in logarithms, the search is made again."""


@dataclass(frozen=True)
class FittedKey:
    """The value of one key, and between which it lies with 95 %. No interval: the cells don't show it, and it kept its
    start; or they bound it on one side only, or are no more than the keys; or the search was ended."""

    key: Key
    value: int
    start: int
    low: int | None = None
    high: int | None = None

    @property
    def shown(self) -> bool:
        """Whether the cells show it."""
        return self.low is not None

    @property
    def kept(self) -> bool:
        """Whether it has the value that the search began with, because no cell shows it."""
        return not self.shown and self.value == self.start


def fit(
    keys: Sequence[Key],
    start: Values,
    measured: Sequence[float],
    rates: Rates,
    first: Sequence[int] = (),
    is_over: IsOver = lambda: False,
) -> tuple[list[FittedKey], bool]:
    """The keys with the smallest sum of (Huber's) squared differences of logarithms; those that no cell shows keep
    their start. And whether the search came to its end: if not, they are the best so far, and have no interval.

    Args:
        measured: rates, all above 0.
        first: the numbers of the cells that the search begins with alone, such as those of depth 1: what limits the
        others is then looked for from there.
        is_over: whether the time for the search is over.
    """
    search = Search(keys, start, measured, rates, is_over)
    found: list[tuple[float, Values]] = []
    try:
        if first:
            search.run(first)
        begin = search.values
        found.append(search.run_whole(begin, keys))
        if found[0][0] > len(measured) * huber(MISSED):
            # One of several keys that make up for one another went too far; in the other order another does.
            found.append(search.run_whole(begin, list(reversed(keys))))
            found.append(search.run_whole(found[0][1], keys))
        search.loss, search.values = min(found, key=lambda one: one[0])
        search.keys = keys
        return _with_intervals(search), True
    except TimeOver:
        # A search with all cells before this one has their loss; else this one has at least begun.
        _, values = min([*found, (search.loss, search.values)], key=lambda one: one[0]) if found else (0, search.values)
        return [FittedKey(key, values[key.name], start[key.name]) for key in keys], False


def _with_intervals(search: Search) -> list[FittedKey]:
    import numpy as np
    from scipy.special import stdtrit

    here = np.array(search.residuals(search.values))
    slopes = search.slopes(SLOPE_MIN)
    shown = list(slopes)
    half = {}
    # With no more cells than keys, nothing is left to see how well they are met.
    if shown and len(here) > len(shown):
        matrix = np.array([slopes[name] for name in shown]).T
        freedom = len(here) - len(shown)
        scatter = math.sqrt(float(here @ here) / freedom)
        inverse = np.linalg.pinv(matrix.T @ matrix)
        width = float(stdtrit(freedom, 0.5 + SHARE / 2)) * scatter * np.sqrt(np.diag(inverse))
        half = dict(zip(shown, map(float, width), strict=True))
    return [_fitted(search, key, half.get(key.name)) for key in search.keys]


def _fitted(search: Search, key: Key, half: float | None) -> FittedKey:
    value, start = search.values[key.name], search.start[key.name]
    if half is None or half >= WIDTH_MAX:
        # One after the other: two that make up for one another can't both go back.
        if search.is_as_good({key.name: start}):
            search.values[key.name] = start
        return FittedKey(key, search.values[key.name], start)
    wide = math.exp(half)
    return FittedKey(key, value, start, key.clipped(value / wide), key.clipped(value * wide))
