"""How good each candidate is, from single noisy trials in blocks: a mixed linear model.

The logarithm of a trial's value is the level of its block, the effect of its candidate, and noise. A candidate's effect
is a sum of random effects: one of each key, alike for near values of a range; one of each range whose near values have
nothing to do with each other; one of each pair of keys; one of its own. So a trial of one candidate is evidence on all
that share values with it. A key's effects sum to nothing over its
values, so that pairs explain nothing that keys alone do (the orthogonal kernels of Lu, Boukouvalas and Hensman, ICML
2022).

The variances are estimated by restricted maximum likelihood with the multiplicative steps of Zhou, Hu, Zhou and Lange
(J. Comput. Graph. Stat. 28, 2019), which never leave the allowed range; a variance that data don't call for goes to
zero. Those of keys have a prior that they share: an inverse chi-squared around their mean, which few trials of a key do
not outweigh. Those of pairs have one that few pairs leave, and these by far: the standard deviation of a pair is
half-Cauchy (Carvalho, Polson and Scott, Biometrika 97, 2010) around its usual one, which follows from its keys' own. As
long as no pair stands out, there is one variance of all pairs. Those of unrelated values have the same prior, around a
share of a key's usual variance. The terms of both priors enter the same steps (derived
here: a prior's logarithm is bounded by its tangent).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from iolab.domain.tune.space import Point, Space

    Array = NDArray[np.float64]

STEPS_AT_FIRST, STEPS = 100, 30
"""The steps of the search for the variances: from nothing, and from the estimate of fewer trials."""
NEAR = 0.35
"""Distance, as a share of a range, at which two values' effects have a correlation of 0.6. Chosen."""
OUTLIER_SD = 3.0
"""A residual beyond is drawn in to here: a burst is evidence on nothing."""
KEYS_SHARE, PAIRS_SHARE, OWN_SHARE, BLOCKS_SHARE, NOISE_SHARE = 0.4, 0.1, 0.05, 0.2, 0.25
"""The shares of the values' variance with which the search begins."""
UNRELATED_SHARE = 0.1
"""The usual variance of a range's unrelated values, as a share of a key's. Chosen on searches of other seeds than those
that docs/tuning.md shows; from 0.01 to 0.3 it hardly matters."""
HEREDITY = 0.8
"""How far a pair's usual variance goes with its keys' own; the rest is the same for all pairs. Chosen."""
SPREAD_LEAST = 1e-18
"""Variance of logarithms: simulated values that nothing changes are equal, and equations need some. No value is so
exact that a ratio of 1 + 1e-9 differs from 1."""
TAKEN_UP = 1e-9
"""The share of a part of the values that is left without the fixed effects; below this one, it is rounding."""
PRIOR_FREEDOM = 1.5
"""The degrees of freedom of the prior of a key's variance: how many effects' worth of evidence it is. Chosen."""
PAIRS_EVERY = 3
"""Pairs take part in every third step, to save time."""
PAIR_LEAST = 1e-9
"""No pair's variance gets smaller than this share of the usual one of all."""
LEAST = 1e-7
"""No variance gets smaller than this share of the values', so that equations can be solved."""


class EncodedPoints:
    """Points as places of values and whether each key is in force, for the kernels of all keys."""

    def __init__(self, space: Space, points: Sequence[Point]) -> None:
        """An estimate over any points of the space."""
        self.space = space
        keys = space.parameters
        # A key out of force is a value of its own, the last, and has no effect.
        self.places = np.array([[point.get(one.key, -1) for one in keys] for point in points], dtype=np.intp)
        self.places = self.places.reshape(len(points), len(keys))
        ranges = [place for place, one in enumerate(keys) if one.ordered and len(one.values) > 2]
        self._terms = [(place, _likeness(len(one.values), one.ordered)) for place, one in enumerate(keys)]
        self._terms += [(place, _likeness(len(keys[place].values), ordered=False)) for place in ranges]

    def alike(self, other: EncodedPoints) -> Array:
        """How alike the effects of values are, by key, then by range as if its values were unrelated: shape (keys +
        ranges, points of one, points of the other)."""
        return np.array([table[self.places[:, at][:, None], other.places[:, at]] for at, table in self._terms])

    def alike_itself(self) -> Array:
        """How much the effect of each point's value varies, in the same order: shape (keys + ranges, points)."""
        return np.array([table.diagonal()[self.places[:, at]] for at, table in self._terms])


@lru_cache(maxsize=256)
def _likeness(count: int, ordered: bool) -> Array:
    """How alike the effects of a key's values are, which sum to nothing over all of its values and have a variance of 1
    in the mean of them: shape (values + 1, values + 1); the last is that of a key out of force."""
    places = np.arange(count) / max(1, count - 1)
    near = np.exp(-(((places[:, None] - places[None, :]) / NEAR) ** 2) / 2) if ordered else np.eye(count)
    near = near - near.mean(axis=0) - near.mean(axis=1)[:, None] + near.mean()
    likeness = np.zeros((count + 1, count + 1))
    if count > 1:
        likeness[:count, :count] = near * (count / float(np.trace(near)))
    return likeness


@dataclass(frozen=True)
class Variances:
    """The variances of each key's effects and of each range's as unrelated values, of each pair's, of candidates by
    themselves, of blocks, and of the noise. `terms`: shape (keys + ranges,); `pairs`: shape (keys, keys), symmetric,
    without a diagonal; `usual`: their sum, if no pair stood out."""

    terms: Array
    pairs: Array
    usual: float
    own: float
    blocks: float
    noise: float


@dataclass(frozen=True)
class _Solution:
    """The model's equations for some variances: the inverse covariance of the values, and what is left of it without
    the fixed effects; the values with outliers drawn in, and both applied to each other."""

    inverse: Array
    free: Array
    values: Array
    alpha: Array


class Estimate:
    """What trials say. `points` are the candidates measured so far; a trial is (block, candidate, value), the candidate
    a place in `points` or -1 for the default; values are logarithms, higher is better."""

    def __init__(
        self,
        space: Space,
        points: Sequence[Point],
        trials: Sequence[tuple[int, int, float]],
        start: Variances | None = None,
        prior_freedom: float = PRIOR_FREEDOM,
    ) -> None:
        """`start`: of fewer trials, to go on from; `prior_freedom`: 0 if keys have nothing in common."""
        self._prior_freedom = prior_freedom
        self._encoded = EncodedPoints(space, points)
        blocks, of, values = (np.asarray(column) for column in zip(*trials, strict=True))
        self._candidate = of.astype(np.intp)
        self._values = values.astype(np.float64) - values.mean()  # the level is a fixed effect, and takes digits
        is_default = self._candidate < 0
        self._there = (~is_default).astype(np.float64)
        self._row = np.where(is_default, 0, self._candidate)
        alike = self._encoded.alike(self._encoded)[:, self._row][:, :, self._row]
        terms = alike * (self._there[:, None] * self._there[None, :])
        own = self._of_candidate(self._candidate)
        in_block = (blocks[:, None] == blocks[None, :]).astype(np.float64)
        self._parts = np.stack([*terms, own, in_block, np.eye(len(values))])
        self._fixed = np.column_stack([np.ones(len(values)), is_default.astype(np.float64)])
        self.variances = self._fitted(start)
        """From which an estimate of more trials starts."""
        self._now = self._solved(_weights(self.variances), _together(self.variances.pairs, terms))

    def gains(self, points: Sequence[Point], *, measured: Sequence[int] | None = None) -> tuple[Array, Array]:
        """By point, the logarithm of its ratio to the default, and that estimate's standard deviation. `measured`:
        the places of the points among those measured, of which what is their own is known too."""
        variances = self.variances
        covariance = self._covariance(points)
        if measured is not None:
            covariance = covariance + variances.own * self._of_candidate(np.asarray(measured, dtype=np.intp))
        # The fixed effects are the level of all and what the default has beyond it: a candidate minus the default.
        contrast = np.column_stack([np.zeros(len(points)), -np.ones(len(points))])
        return self._effects(covariance, contrast, self._before(points) + variances.own)

    def differences(self, points: Sequence[Point], other: Point) -> tuple[Array, Array]:
        """By point, the logarithm of its ratio to another one, and that estimate's standard deviation, without what is
        each one's own."""
        variances = self.variances
        alike = EncodedPoints(self._encoded.space, points).alike(EncodedPoints(self._encoded.space, [other]))
        near = np.tensordot(variances.terms, alike, axes=1) + _together(variances.pairs, alike)
        before = self._before(points) + self._before([other]) - 2 * near[:, 0]
        covariance = self._covariance(points) - self._covariance([other])
        return self._effects(covariance, np.zeros((len(points), 2)), before)

    def _before(self, points: Sequence[Point]) -> Array:
        """The variance of the points' effects of keys and pairs before any trial: shape (points,)."""
        variances = self.variances
        itself = EncodedPoints(self._encoded.space, points).alike_itself()
        return np.asarray(variances.terms @ itself + _together(variances.pairs, itself))

    def _covariance(self, points: Sequence[Point]) -> Array:
        """The covariance of the points' effects of keys and pairs with the values of all trials: shape (points,
        trials)."""
        variances = self.variances
        between = EncodedPoints(self._encoded.space, points).alike(self._encoded)[:, :, self._row] * self._there
        return np.asarray(np.tensordot(variances.terms, between, axes=1) + _together(variances.pairs, between))

    def _effects(self, covariance: Array, contrast: Array, before: Array) -> tuple[Array, Array]:
        """What the trials show of effects: of each its covariance with the values, what it holds of the fixed effects,
        and its variance before any trial."""
        now = self._now
        half = now.inverse @ self._fixed
        bread = np.linalg.pinv(self._fixed.T @ half)
        means = contrast @ bread @ (half.T @ now.values) + covariance @ now.alpha
        left = contrast - covariance @ half
        squares = before - ((covariance @ now.inverse) * covariance).sum(axis=1) + ((left @ bread) * left).sum(axis=1)
        return np.asarray(means), np.sqrt(np.maximum(squares, 0.0))

    def _of_candidate(self, places: NDArray[np.intp]) -> Array:
        """Whether a candidate is that of a trial: shape (places, trials)."""
        same = places[:, None] == self._candidate[None, :]
        return np.asarray(same & (places >= 0)[:, None], dtype=np.float64)

    def _fitted(self, start: Variances | None) -> Variances:
        keys, terms = len(self._encoded.space.parameters), len(self._parts) - 3
        spread = max(float(np.var(self._values)), SPREAD_LEAST)
        if start is None:
            of_a_key = KEYS_SHARE / keys
            shares = [of_a_key] * keys + [UNRELATED_SHARE * of_a_key] * (terms - keys)
            now = spread * np.asarray([*shares, OWN_SHARE, BLOCKS_SHARE, NOISE_SHARE])
            usual = PAIRS_SHARE * spread
            pairs = usual * _heredity(now[:keys])
        else:
            # A share of what is new, so that nothing stays at zero for good.
            now = _weights(start) + 1e-3 * spread / keys
            pairs, usual = start.pairs, start.usual
        flat = self._parts.reshape(len(now), -1)
        together = _together(pairs, self._parts)
        for step in range(STEPS if start is not None else STEPS_AT_FIRST):
            solved = self._solved(now, together)
            squares = np.outer(solved.alpha, solved.alpha).ravel()
            free = solved.free.ravel()
            forms, traces, whole = (flat @ np.column_stack([squares, free, solved.inverse.ravel()])).T
            # What the fixed effects take up, such as the level of a single block, or all of two trials, is unknown.
            identified = traces > TAKEN_UP * np.maximum(traces[-1], whole)
            traces = np.where(identified, traces, 1.0)
            forms = np.maximum(forms, 0.0)
            forms[:keys] += self._prior_freedom * now[:keys].mean() / now[:keys] ** 2
            traces[:keys] += self._prior_freedom / now[:keys]
            unrelated = now[keys:terms]
            forms[keys:terms] += 1 / unrelated
            traces[keys:terms] += 2 / (UNRELATED_SHARE * now[:keys].mean() + unrelated)
            if keys > 1 and step % PAIRS_EVERY == 0:
                pairs, usual = self._pairs_after_a_step(now[:keys], pairs, usual, squares, free, LEAST * spread)
                together = _together(pairs, self._parts)
            now = np.maximum(np.where(identified, now * np.sqrt(forms / traces), now), LEAST * spread)
        *of_terms, own, blocks, noise = now.tolist()
        return Variances(np.asarray(of_terms), pairs, usual, own, blocks, noise)

    def _pairs_after_a_step(
        self, keys: Array, pairs: Array, usual: float, squares: Array, free: Array, least: float
    ) -> tuple[Array, float]:
        """The variances of pairs and their usual sum, `least` or more: first all by one factor, then each by itself."""
        flat = self._parts[: len(keys)].reshape(len(keys), -1)
        forms, traces = np.maximum((flat * squares) @ flat.T, 0.0), np.maximum((flat * free) @ flat.T, 0.0)
        identified = float((pairs * traces).sum())
        if identified > TAKEN_UP:
            step = max(float(np.sqrt((pairs * forms).sum() / identified)), least / usual)
            pairs, usual = pairs * step, usual * step
        expected = usual * _heredity(keys)
        now = np.maximum(pairs, PAIR_LEAST * usual)
        after = now * np.sqrt((forms + 1 / now) / (traces + 2 / (expected + now)))
        return after * ~np.eye(len(keys), dtype=bool), usual

    def _solved(self, weights: Array, together: Array) -> _Solution:
        covariance = np.tensordot(weights, self._parts, axes=1) + together
        inverse = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
        half = inverse @ self._fixed
        free = inverse - half @ np.linalg.pinv(self._fixed.T @ half) @ half.T
        alpha = free @ self._values
        # The noise that each trial had, in standard deviations of what such an estimate strays; what the fixed effects
        # take up, such as the only trial of the default, has none.
        room = np.diag(free)
        identified = room > TAKEN_UP * np.maximum(room.max(), np.diag(inverse))
        strays = np.where(identified, alpha / np.sqrt(np.where(identified, room, 1.0)), 0.0)
        drawn_in = self._values - (strays - np.clip(strays, -OUTLIER_SD, OUTLIER_SD)) * np.sqrt(weights[-1])
        return _Solution(inverse, free, drawn_in, free @ drawn_in)


def _weights(variances: Variances) -> Array:
    """Of all that is not of pairs, in the order of an estimate's parts."""
    return np.asarray([*variances.terms, variances.own, variances.blocks, variances.noise])


def _together(pairs: Array, alike: Array) -> Array:
    """How alike the effects of all pairs of keys are: the products of two keys' likenesses, each with its variance.
    `alike` has those of keys first."""
    flat = alike[: len(pairs)].reshape(len(pairs), -1)
    return np.asarray(((pairs @ flat) * flat).sum(axis=0).reshape(alike.shape[1:]) / 2)


def _heredity(keys: Array) -> Array:
    """The usual share of each pair in the variance of all, by its keys' own: shape (keys, keys), without a diagonal.
    Keys that matter by themselves are the likelier ones to matter together."""
    shares = (1 - HEREDITY) / len(keys) + HEREDITY * keys / keys.sum()
    both = np.outer(shares, shares)
    np.fill_diagonal(both, 0.0)
    return np.asarray(2 * both / (both.sum() or 1.0))
