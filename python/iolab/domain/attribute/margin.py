"""Which effects are large enough to count: of each account of the trials the sizes of its effects, how far they may be
off, and the probability that they lie beyond a margin.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from iolab.domain.bisect.regression import Regression

AccountT = TypeVar("AccountT", bound=Hashable)


@dataclass(frozen=True)
class EffectSizes:
    """Least-squares sizes of the effects in some columns of a regression, and their standard errors; both are in the
    target's unit, and stray as Student's t of `freedom` does."""

    columns: list[int]
    sizes: list[float]
    errors: list[float]
    freedom: int

    def beyond(self, margin: float) -> list[float]:
        """Of each effect the probability that it is larger than the margin, up or down; every effect is larger than
        no margin."""
        from scipy.special import stdtr

        if margin <= 0:
            return [1.0] * len(self.sizes)
        return [
            float(stdtr(self.freedom, (size - margin) / error) + stdtr(self.freedom, (-margin - size) / error))
            if error > 0
            else float(abs(size) > margin)
            for size, error in zip(self.sizes, self.errors, strict=True)
        ]

    def intervals(self, confidence: float) -> list[tuple[float, float]]:
        """Of each effect its interval."""
        from scipy.special import stdtrit

        wide = float(stdtrit(self.freedom, 1 - (1 - confidence) / 2))
        return [(size - wide * error, size + wide * error) for size, error in zip(self.sizes, self.errors, strict=True)]


def sizes_of(regression: Regression, accounts: Mapping[AccountT, list[int]]) -> dict[AccountT, EffectSizes]:
    """Of each account, given as columns of the regression."""
    import numpy as np

    found: dict[AccountT, EffectSizes] = {}
    for count in sorted({len(columns) for columns in accounts.values()}):
        alike = [one for one, columns in accounts.items() if len(columns) == count]
        subsets = np.asarray([accounts[one] for one in alike], dtype=np.intp).reshape(len(alike), count)
        sizes, errors = regression.sizes(subsets)
        left = np.maximum(regression.total - (sizes * regression.against[subsets]).sum(axis=1), 0.0)
        freedom = max(1, regression.count - 1 - count)
        for one, size, error, rest in zip(alike, sizes, errors, left, strict=True):
            noise = math.sqrt(float(rest) / freedom)
            found[one] = EffectSizes(accounts[one], size.tolist(), (noise * error).tolist(), freedom)
    return found


def sets_that_count(effects: Sequence[tuple[int, ...]], beyond: Sequence[float]) -> dict[tuple[int, ...], float]:
    """By set of keys the probability that these and no others have an effect that counts. `effects`: the keys of each;
    `beyond`: the probability that it counts."""
    found: dict[tuple[int, ...], float] = {(): 1.0}
    for keys, probability in zip(effects, beyond, strict=True):
        following: dict[tuple[int, ...], float] = {}
        for counting, share in found.items():
            for outcome, part in ((counting, 1 - probability), (tuple(sorted({*counting, *keys})), probability)):
                if part > 0:
                    following[outcome] = following.get(outcome, 0.0) + share * part
        found = following
    return found
