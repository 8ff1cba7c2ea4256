"""Where in a history the level of a metric changes: a posterior over how many changes there are, and where.

A history is versions 0 to n - 1, oldest first. A measurement is (version, value), in the order of time. The model of
its mean is a level that steps at zero to three versions, or one that creeps over a stretch of them; its noise is
Gaussian with weights that take outliers' say away (iteratively reweighted, Student's t), beside a drift that is
correlated in time. Level, sizes and noise are integrated out: the level with a flat prior, sizes with normal priors
of several widths in standard deviations of the noise, the noise with Jeffreys' prior. Drift is estimated (empirical
Bayes). The evidence of a regression with such priors is closed (O'Hagan and Forster, *Bayesian Inference*, 2004,
chapter 11); to average over subsets of regressors is Bayesian variable selection (George and McCulloch, 1993).

Two changes between neighbouring measured versions look like one: `docs/bisection.md` says what follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from iolab.domain.bisect.regression import Regression

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

PRIOR_OF_COUNT = (0.20, 0.60, 0.10, 0.04)
"""That there are 0, 1, 2, 3 changes."""
SMALLEST_SPREAD = 1e-6
"""Residuals closer together than this share of the values' range are rounding, and no scale for outliers."""
PRIOR_CREEP = 0.06
CREEP_LEAST_VERSIONS = 8
"""A stretch over which a level creeps has at least so many versions; a shorter one is steps."""
CREEP_POINTS_MAX = 24
WORTH_KEEPING = 1e-4
"""A hypothesis whose probability is less than this, against the likeliest's, is left out."""
THIRD_WORTH_A_LOOK = 6.0
"""Three changes are looked at where two have at least e to the minus this of the likeliest's probability."""
PAIRS_EXTENDED = 24
"""So many of the likeliest pairs of changes are looked at with a third."""
DRIFTS = ((0.0, 0.0), (0.6, 0.5), (0.6, 2.0), (0.95, 0.3), (0.95, 2.0), (0.995, 1.0), (0.995, 8.0))
"""What is tried of drift: correlation from one measurement to the next, and variance in units of the noise's."""
DRIFT_FROM = 12
"""With fewer measurements drift can't be told from noise."""
FREEDOM = 4.0
"""Degrees of freedom of the t distribution whose weights outliers get."""


@dataclass(frozen=True)
class Hypothesis:
    """One account of the history, with the probability that it has.

    `gaps`: the gaps (places in `Posterior.points`, the gap before point i + 1 is i) that hold one change each; of a
    creep the first and the last point's places. `levels`: the mean at each measured version, shape (points,).
    `sizes`, `errors`: of each change its size and that one's standard error, in the metric's unit.
    """

    probability: float
    gaps: tuple[int, ...]
    creeps: bool
    levels: Array
    sizes: Array
    errors: Array


@dataclass(frozen=True)
class Posterior:
    """What the measurements say. `points`: the measured versions, ascending; `noise`: the standard deviation of a
    measurement in the metric's unit; `drift`: correlation and relative variance, as in `DRIFTS`."""

    points: tuple[int, ...]
    hypotheses: tuple[Hypothesis, ...]
    noise: float
    drift: tuple[float, float]

    def none(self, margin: float) -> float:
        """The probability that nothing changes by more than `margin`, in the metric's unit."""
        return float(self._probabilities @ self._within(margin).prod(axis=1))

    def creeping(self, margin: float) -> float:
        """The probability that the level creeps, by more than `margin`."""
        creeps = [place for place, one in enumerate(self.hypotheses) if one.creeps]
        return float(self._probabilities[creeps] @ (1 - self._within(margin)[creeps].prod(axis=1)))

    def account(self, gaps: tuple[int, ...], margin: float) -> float:
        """The probability that the changes beyond `margin` are those in the gaps; of several, that one of these is
        beyond it is enough."""
        within = self._within(margin)
        wanted = set(gaps)
        total = 0.0
        for place, one in enumerate(self.hypotheses):
            if not one.creeps and wanted <= set(one.gaps):
                each = dict(zip(one.gaps, within[place].tolist(), strict=False))
                others = math.prod(share for gap, share in each.items() if gap not in wanted)
                total += one.probability * others * (1 - math.prod(each[gap] for gap in gaps))
        return total

    @property
    def creeps(self) -> float:
        """The probability that the level creeps."""
        return sum(one.probability for one in self.hypotheses if one.creeps)

    def in_gap(self, gap: int) -> float:
        """The probability that a step lies in the gap."""
        return sum(one.probability for one in self.hypotheses if gap in one.gaps and not one.creeps)

    @property
    def likeliest(self) -> Hypothesis:
        """The hypothesis with the highest probability."""
        return self.hypotheses[0]

    @cached_property
    def _probabilities(self) -> Array:
        import numpy as np

        return np.asarray([one.probability for one in self.hypotheses])

    def _within(self, margin: float) -> Array:
        """The probability that each change is at most `margin`, shape (hypotheses, most changes); 1 where there is
        none."""
        import numpy as np
        from scipy.special import ndtr

        most = max(len(one.sizes) for one in self.hypotheses)
        sizes, errors = np.zeros((2, len(self.hypotheses), most))
        for place, one in enumerate(self.hypotheses):
            sizes[place, : len(one.sizes)] = one.sizes
            errors[place, : len(one.sizes)] = one.errors
        with np.errstate(divide="ignore", invalid="ignore"):
            share = ndtr((margin - sizes) / errors) - ndtr((-margin - sizes) / errors)
        return np.where(errors > 0, share, np.abs(sizes) <= margin)


def posterior(versions: Sequence[int], values: Sequence[float]) -> Posterior:
    """From measurements in the order of time, shapes (n,) and (n,): at least three, of at least two versions."""
    import numpy as np

    points = np.unique(np.asarray(versions))
    places = np.searchsorted(points, versions)
    values_ = np.asarray(values, dtype=np.float64)
    scale, centre = float(np.ptp(values_)) or 1.0, float(values_.mean())
    y = (values_ - centre) / scale
    # A first pass takes the noise for Gaussian and alike; its residuals tell outliers and drift.
    mean = _mean(_weigh(points, places, y, np.ones(len(y)), (0.0, 0.0)))
    weights, drift = _noise(y - mean[places])
    found = _weigh(points, places, y, weights, drift)
    residuals = y - _mean(found)[places]
    noise = float(np.sqrt((weights * residuals**2).sum() / max(1, len(y) - 2)))
    hypotheses = tuple(
        replace(one, levels=one.levels * scale + centre, sizes=one.sizes * scale, errors=one.errors * noise * scale)
        for one in found
    )
    return Posterior(tuple(int(one) for one in points), hypotheses, noise * scale, drift)


def _noise(residuals: Array) -> tuple[Array, tuple[float, float]]:
    """The weight of each measurement, 1 on average and less for outliers, and the drift that explains them best."""
    import numpy as np

    middle = float(np.median(np.abs(residuals - np.median(residuals)))) * 1.4826
    if middle < SMALLEST_SPREAD:
        return np.ones(len(residuals)), (0.0, 0.0)
    weights = (FREEDOM + 1) / (FREEDOM + (residuals / middle) ** 2)
    weights = weights / weights.mean()
    if len(residuals) < DRIFT_FROM:
        return weights, (0.0, 0.0)
    return weights, max(DRIFTS, key=lambda one: _evidence_of_residuals(residuals, weights, one))


def _mean(hypotheses: Sequence[Hypothesis]) -> Array:
    """The expected level at each measured version."""
    import numpy as np

    return np.asarray(sum(one.probability * one.levels for one in hypotheses), dtype=np.float64)


def _root(count: int, weights: Array, drift: tuple[float, float]) -> Array:
    """The lower Cholesky factor of the noise's covariance, drift included, in units of the noise's variance."""
    import numpy as np

    correlation, variance = drift
    times = np.arange(count)
    covariance = np.diag(1.0 / weights) + variance * correlation ** np.abs(times[:, None] - times[None, :])
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)


def _whitened(columns: Array, weights: Array, drift: tuple[float, float]) -> Array:
    """The columns, shape (measurements, columns), in coordinates in which the noise is white and of one size."""
    import numpy as np

    if not drift[1]:
        return np.asarray(columns * np.sqrt(weights)[:, None], dtype=np.float64)
    from scipy.linalg import solve_triangular

    found = solve_triangular(_root(len(columns), weights, drift), columns, lower=True, check_finite=False)
    return np.asarray(found, dtype=np.float64)


def _evidence_of_residuals(residuals: Array, weights: Array, drift: tuple[float, float]) -> float:
    """The log likelihood of residuals with that drift, the noise's size integrated out."""
    import numpy as np
    from scipy.linalg import solve_triangular

    columns = np.column_stack([np.ones(len(residuals)), residuals])
    if drift[1]:
        root = _root(len(residuals), weights, drift)
        white, volume = solve_triangular(root, columns, lower=True, check_finite=False), np.log(np.diag(root)).sum()
        bonus = 0.0
    else:
        white, volume = columns * np.sqrt(weights)[:, None], -0.5 * np.log(weights).sum()
        bonus = 1.0  # no drift, unless there is a reason
    one, r = np.asarray(white[:, 0]), np.asarray(white[:, 1])
    left = r @ r - (one @ r) ** 2 / (one @ one)
    return float(bonus - volume - 0.5 * np.log(one @ one) - 0.5 * (len(r) - 1) * np.log(left + 1e-12))


def _weigh(
    points: NDArray[np.intp], places: NDArray[np.intp], y: Array, weights: Array, drift: tuple[float, float]
) -> list[Hypothesis]:
    """The hypotheses that matter with their probabilities, likeliest first."""
    import numpy as np

    gaps = len(points) - 1
    shapes = [np.asarray(np.arange(gaps + 1)[:, None] > np.arange(gaps)[None, :], dtype=np.float64)]
    ramps = _stretches(points)
    shapes += [np.clip((points - points[a]) / (points[b] - points[a]), 0, 1)[:, None] for a, b in ramps]
    at_points = np.concatenate(shapes, axis=1)
    white = _whitened(np.column_stack([np.ones(len(y)), y, at_points[places]]), weights, drift)
    one = white[:, 0]
    free = white[:, 1:] - np.outer(one, (one @ white[:, 1:]) / (one @ one))
    regression = Regression(
        free[:, 1:].T @ free[:, 1:], free[:, 1:].T @ free[:, 0], float(free[:, 0] @ free[:, 0]), len(y)
    )

    lengths = np.diff(points)
    where = np.log(lengths / lengths.sum())
    prior = np.log(PRIOR_OF_COUNT)
    sets = [np.empty((1, 0), dtype=np.intp), np.arange(gaps)[:, None]]
    scores = [prior[0] + regression.log_evidence(sets[0]), prior[1] + where + regression.log_evidence(sets[1])]
    if ramps:
        sets.append(np.arange(gaps, gaps + len(ramps))[:, None])
        room = np.log(np.gradient(points.astype(np.float64)) / np.ptp(points))
        ends = np.asarray(ramps)
        scores.append(np.log(2 * PRIOR_CREEP) + room[ends].sum(axis=1) + regression.log_evidence(sets[-1]))
    if gaps >= 2:
        sets.append(np.stack(np.triu_indices(gaps, 1), axis=1))
        scores.append(prior[2] + np.log(2) + where[sets[-1]].sum(axis=1) + regression.log_evidence(sets[-1]))
    if gaps >= 3 and scores[-1].max() > max(one.max() for one in scores) - THIRD_WORTH_A_LOOK:
        likely = sets[-1][np.argsort(-scores[-1])[:PAIRS_EXTENDED]]
        triples = {tuple(sorted({*pair, gap})) for pair in likely.tolist() for gap in range(gaps) if gap not in pair}
        sets.append(np.asarray(sorted(triples)))
        scores.append(prior[3] + np.log(6) + where[sets[-1]].sum(axis=1) + regression.log_evidence(sets[-1]))

    flat = [tuple(one) for block in sets for one in block.tolist()]
    score = np.concatenate(scores)
    order = np.argsort(-score)
    order = order[score[order] > score[order[0]] + np.log(WORTH_KEEPING)]
    masses = np.exp(score[order] - score[order[0]])
    masses /= masses.sum()
    hypotheses = []
    kept = [flat[index] for index in order]
    mean, slopes = one @ white[:, 1] / (one @ one), one @ white[:, 2:] / (one @ one)
    for columns, mass, (sizes, errors) in zip(kept, masses, regression.sizes(kept), strict=True):
        found = list(columns)
        level = mean - slopes[found] @ sizes
        creeps = bool(found) and found[0] >= gaps
        gaps_of = ramps[found[0] - gaps] if creeps else tuple(found)
        hypotheses.append(Hypothesis(float(mass), gaps_of, creeps, level + at_points[:, found] @ sizes, sizes, errors))
    return hypotheses


def _stretches(points: NDArray[np.intp]) -> list[tuple[int, int]]:
    """The places of first and last point of each stretch over which the level may creep."""
    import numpy as np

    ends = list(range(len(points)))
    if len(points) > CREEP_POINTS_MAX:
        ends = sorted({int(one) for one in np.linspace(0, len(points) - 1, CREEP_POINTS_MAX)})
    return [(a, b) for a in ends for b in ends if b - a >= 2 and points[b] - points[a] >= CREEP_LEAST_VERSIONS]
