"""Which keys matter, from trials of mixtures: a posterior over sets of keys.

A set's account of the values is a regression on its keys' sides, with or without the interactions of its pairs; level,
sizes and noise are integrated out (`iolab.domain.bisect.regression`). Sets of up to two keys are all looked at, larger
ones where they extend likely ones. An effect counts by the probability that it lies beyond a margin
(`iolab.domain.attribute.margin`). Outliers lose weight as in a search among versions, unless they lie where trials of
other settings do: those are in another mode of the metric, which comes by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from iolab.domain.attribute.margin import sets_that_count, sizes_of
from iolab.domain.bisect.outliers import EVEN, bimodality, is_in_modes, weights_of
from iolab.domain.bisect.regression import Regression

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

PRIOR_OF_COUNT = (0.42, 0.45, 0.115, 0.012, 0.002, 0.001)
"""That so many keys matter; within a count, every set alike."""
WIDTHS_SD = (1.0, 3.0, 10.0, 100.0)
"""Standard deviations of the priors of an effect, in standard deviations of the noise; smaller effects are none."""
PRIOR_WITH_INTERACTIONS = 0.3
"""The prior probability that pairs of keys in a set interact."""
INTERACTING_MAX = 3
"""Keys of a set whose pairs may interact."""
EXTENDED = 8
"""So many of the likeliest sets are looked at with another key."""
WORTH_KEEPING = 1e-6
SURE = 0.95
"""The confidence of an effect's interval."""

Account = tuple[tuple[int, ...], bool]
"""A set of keys, and whether its pairs interact."""


@dataclass(frozen=True)
class Effect:
    """What a key, or two together, do. `keys`: their places; `size`: from the good side to the bad, in the metric's
    unit, the mean over the other keys' sides, of an interaction how much more both do than each by itself would say;
    `low`, `high`: its 95 % interval; `probability`: that it is there, and beyond the margin."""

    keys: tuple[int, ...]
    size: float
    low: float
    high: float
    probability: float

    def is_within(self, margin: float) -> bool:
        """Whether its whole interval is."""
        return -margin <= self.low and self.high <= margin


@dataclass(frozen=True)
class Attribution:
    """What is known. `keys`: the likeliest set of keys with effects beyond the margin, which may be empty;
    `probability`: its own; `effects`: of the likeliest account in which these keys are, with effects that are too small
    to count; `inclusion`: of every key the probability that it has an effect beyond the margin; `trials`: how many
    there were; `resolution`: the largest effect that the intervals of single keys, 95 % together, leave possible;
    `modes`: whether the values may have modes that no key accounts for."""

    keys: tuple[int, ...]
    probability: float
    effects: tuple[Effect, ...]
    inclusion: tuple[float, ...]
    trials: int
    resolution: float
    modes: bool


def attribute(
    sides: Sequence[Sequence[bool]], values: Sequence[float], blocks: Sequence[int], margin: float = 0.0
) -> Attribution:
    """From trials: of each its keys' sides (True: bad), its value, and its block, whose level is its own. An effect of
    at most `margin`, in the metric's unit, does not count."""
    import numpy as np

    x = np.where(np.asarray(sides, dtype=np.bool_), 1.0, -1.0)
    y = np.asarray(values, dtype=np.float64)
    scale = float(np.ptp(y)) or 1.0
    first = _weigh(x, y, np.asarray(blocks), np.ones(len(y)), margin)
    left = (y - first.fitted) / scale
    weights = weights_of(left)
    in_modes = is_in_modes(left, y / scale)
    if np.ptp(weights) and not in_modes:
        return _weigh(x, y, np.asarray(blocks), weights, margin).attribution
    return replace(first.attribution, modes=bool(np.ptp(weights)) or bimodality(left) > EVEN)


@dataclass(frozen=True)
class _WeighedFit:
    attribution: Attribution
    fitted: Array


def _weigh(x: Array, y: Array, blocks: NDArray[np.intp], weights: Array, margin: float) -> _WeighedFit:
    import numpy as np

    keys = x.shape[1]
    pairs = list(combinations(range(keys), 2))
    place_of = {pair: keys + place for place, pair in enumerate(pairs)}
    names = [*((key,) for key in range(keys)), *pairs]
    columns = np.concatenate([x, *(x[:, [a]] * x[:, [b]] for a, b in pairs)], axis=1)
    root = np.sqrt(weights)[:, None]
    levels = np.asarray(np.unique(blocks)[None, :] == blocks[:, None], dtype=np.float64) * root
    basis = np.linalg.qr(levels)[0]
    everything = np.column_stack([y - y.mean(), columns]) * root
    free = everything - basis @ (basis.T @ everything)
    target, free = free[:, 0], free[:, 1:]
    lost = levels.shape[1] - 1
    regression = Regression(free.T @ free, free.T @ target, float(target @ target), len(y) - lost, WIDTHS_SD)
    scores = _scores(regression, keys, place_of)
    best = max(scores.values())
    mass = {one: math.exp(score - best) for one, score in scores.items() if score > best + math.log(WORTH_KEEPING)}
    total = sum(mass.values())
    sizes = sizes_of(regression, {one: _columns(one[0], place_of, with_pairs=one[1]) for one in mass})

    of_keys: dict[tuple[int, ...], float] = {}
    by_account: dict[tuple[int, ...], dict[Account, float]] = {}
    of_effect: dict[tuple[int, ...], float] = {}
    for account, share in mass.items():
        beyond = sizes[account].beyond(margin / 2)
        effects_of = [names[column] for column in sizes[account].columns]
        for effect, probability in zip(effects_of, beyond, strict=True):
            of_effect[effect] = of_effect.get(effect, 0.0) + probability * share / total
        for counting, probability in sets_that_count(effects_of, beyond).items():
            of_keys[counting] = of_keys.get(counting, 0.0) + probability * share / total
            by_account.setdefault(counting, {})[account] = probability * share
    likeliest = max(of_keys, key=lambda one: of_keys[one])
    account = max(by_account[likeliest], key=lambda one: by_account[likeliest][one])
    inclusion = tuple(sum(share for chosen, share in of_keys.items() if key in chosen) for key in range(keys))
    used = sizes[account]
    effects = [
        Effect(names[column], 2 * size, 2 * low, 2 * high, of_effect[names[column]])
        for column, size, (low, high) in zip(used.columns, used.sizes, used.intervals(SURE), strict=True)
    ]
    left = target - free[:, used.columns] @ np.asarray(used.sizes)
    fitted = y - left / root[:, 0]
    alone = sizes_of(regression, {(): list(range(keys))})[()].intervals(1 - (1 - SURE) / keys)
    resolution = 2 * max(abs(end) for ends in alone for end in ends)
    found = Attribution(likeliest, of_keys[likeliest], tuple(effects), inclusion, len(y), resolution, modes=False)
    return _WeighedFit(found, fitted)


def _columns(chosen: tuple[int, ...], place_of: dict[tuple[int, int], int], *, with_pairs: bool) -> list[int]:
    return [*chosen, *(place_of[a, b] for a, b in combinations(chosen, 2) if with_pairs)]


def _scores(regression: Regression, keys: int, place_of: dict[tuple[int, int], int]) -> dict[Account, float]:
    """The log of prior times evidence, by set and whether its pairs interact."""
    found: dict[Account, float] = {}
    sets: list[tuple[int, ...]] = [()]
    for count in range(min(keys, len(PRIOR_OF_COUNT) - 1) + 1):
        if count <= 2:
            sets = list(combinations(range(keys), count))
        else:
            likely = sorted(sets, key=lambda one: -max(found[one, False], found.get((one, True), -math.inf)))[:EXTENDED]
            sets = sorted({tuple(sorted((*one, key))) for one in likely for key in range(keys) if key not in one})
        prior = math.log(PRIOR_OF_COUNT[count] / math.comb(keys, count))
        may_interact = 2 <= count <= INTERACTING_MAX
        for with_pairs in (False, True) if may_interact else (False,):
            share = 1.0 if not may_interact else PRIOR_WITH_INTERACTIONS if with_pairs else 1 - PRIOR_WITH_INTERACTIONS
            evidence = _evidence(regression, [_columns(one, place_of, with_pairs=with_pairs) for one in sets])
            for one, log_evidence in zip(sets, evidence, strict=True):
                found[one, with_pairs] = prior + math.log(share) + log_evidence
    return found


def _evidence(regression: Regression, subsets: list[list[int]]) -> list[float]:
    import numpy as np

    found: list[float] = regression.log_evidence(np.asarray(subsets, dtype=np.intp).reshape(len(subsets), -1)).tolist()
    return found
