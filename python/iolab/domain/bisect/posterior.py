"""Where in a history the level of a metric changes: a posterior over how many changes there are, and where.

A history is versions 0 to n - 1, oldest first. A measurement is (version, value), in the order of time. The model of
its mean is a level that steps at zero to three versions, or one that creeps over a stretch of them; its noise is
Gaussian, or has the tails of Student's t, whose weights take outliers' say away (iteratively reweighted), beside a
drift that is correlated in time. Level, sizes and noise are integrated out: the level with a flat prior, sizes with
normal priors of several widths in standard deviations of the noise, the noise with Jeffreys' prior. Drift and the
kind of tails are estimated (empirical Bayes). The evidence of a regression with such priors is closed (O'Hagan and
Forster, *Bayesian Inference*, 2004, chapter 11); to average over subsets of regressors is Bayesian variable selection
(George and McCulloch, 1993).

Two changes between neighbouring measured versions look like one: `docs/bisection.md` explains what follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from iolab.domain.bisect.outliers import SMALLEST_SPREAD, weights_of
from iolab.domain.bisect.regression import Regression

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Places = NDArray[np.intp]

PRIOR_OF_COUNT = (0.20, 0.74, 0.03, 0.01)
"""That there are 0, 1, 2, 3 changes."""
CHANGES_MAX = len(PRIOR_OF_COUNT) - 1
PRIOR_CREEP = 0.02
CREEP_LEAST_VERSIONS = 8
"""A stretch over which a level creeps has at least so many versions; a shorter one is steps."""
CREEP_POINTS_MAX = 24
WORTH_KEEPING = 1e-4
"""A hypothesis whose probability is less than this, against the likeliest's, is left out."""
PAIRS_EXTENDED = 24
"""So many of the likeliest pairs of changes are looked at with a third."""
SINGLES_EXTENDED = 3
"""So many of the likeliest single changes are looked at with two more: of a change that is undone soon, neither half
alone explains more than no change does."""
EXTENDED_SPAN = 12
"""The two more lie so many gaps apart at most."""
DRIFTS = ((0.0, 0.0), (0.6, 0.5), (0.6, 2.0), (0.95, 0.3), (0.95, 2.0), (0.995, 1.0), (0.995, 8.0))
"""What is tried of drift: correlation from one measurement to the next, and variance in units of the noise's."""
DRIFT_FROM = 12
"""With fewer measurements drift can't be distinguished from noise."""


@dataclass(frozen=True)
class Posterior:
    """What the measurements say. `points`: the measured versions, ascending; `noise`: the standard deviation of a
    measurement in the metric's unit; `drift`: correlation and relative variance, as in `DRIFTS`.

    Hypotheses are accounts of the history, likeliest first; of each

    `probabilities`, shape (hypotheses,): the probability that it has;
    `gaps`, shape (hypotheses, 3): the gaps (gap i lies between points i and i + 1) that hold one change each; of a
    creep the places of its first and last point; -1 if there is none;
    `creeping`, shape (hypotheses,): whether it is a creep;
    `levels`, shape (hypotheses, points): the mean at each measured version;
    `sizes`, `errors`, shape (hypotheses, 3): of each change its size and that one's standard error. Levels, sizes and
    errors are in the metric's unit.
    """

    points: tuple[int, ...]
    noise: float
    drift: tuple[float, float]
    probabilities: Array
    gaps: Places
    creeping: NDArray[np.bool_]
    levels: Array
    sizes: Array
    errors: Array

    def none(self, margin: float) -> float:
        """The probability that nothing changes by more than `margin`, in the metric's unit."""
        return _at_most_1(self.probabilities @ self.within(margin).prod(axis=1))

    def creep(self, margin: float) -> float:
        """The probability that the level creeps, by more than `margin`."""
        return _at_most_1(self.probabilities @ (self.creeping * (1 - self.within(margin).prod(axis=1))))

    def account(self, gaps: tuple[int, ...], margin: float) -> float:
        """The probability that the changes beyond `margin` are those in the gaps; of several, that one of these is
        beyond it is enough."""
        import numpy as np

        within = self.within(margin)
        wanted = np.isin(self.gaps, gaps)
        has_all = (wanted.sum(axis=1) == len(gaps)) & ~self.creeping
        others = np.where(wanted, 1.0, within).prod(axis=1)
        these = np.where(wanted, within, 1.0).prod(axis=1)
        return _at_most_1(self.probabilities @ (has_all * others * (1 - these)))

    def in_gaps(self, margin: float = 0.0) -> Array:
        """The probability that a step by more than `margin` lies in each gap, shape (points - 1,)."""
        import numpy as np

        found = np.zeros(len(self.points) - 1)
        for column, within in zip(self.gaps.T, self.within(margin).T, strict=True):
            steps = (column >= 0) & ~self.creeping
            np.add.at(found, column[steps], (self.probabilities * (1 - within))[steps])
        return found.clip(max=1.0)

    @cached_property
    def mean_levels(self) -> Array:
        """The expected level at each measured version, shape (points,), in the metric's unit."""
        return self.probabilities @ self.levels

    @cached_property
    def likeliest_steps(self) -> int | None:
        """The place of the likeliest hypothesis with steps."""
        import numpy as np

        found = np.flatnonzero((self.gaps[:, 0] >= 0) & ~self.creeping)
        return int(found[0]) if len(found) else None

    def gaps_of(self, hypothesis: int) -> tuple[int, ...]:
        """The gaps of a hypothesis, ascending."""
        return tuple(int(gap) for gap in self.gaps[hypothesis] if gap >= 0)

    def within(self, margin: float) -> Array:
        """The probability that each change is at most `margin`, shape (hypotheses, 3); 1 if there is none."""
        import numpy as np
        from scipy.special import ndtr

        with np.errstate(divide="ignore", invalid="ignore"):
            share = ndtr((margin - self.sizes) / self.errors) - ndtr((-margin - self.sizes) / self.errors)
        return np.where(self.errors > 0, share, np.abs(self.sizes) <= margin)


def _at_most_1(probability: np.float64) -> float:
    """A sum of many shares may be rounded to more."""
    return min(1.0, float(probability))


def posterior(versions: Sequence[int], values: Sequence[float]) -> Posterior:
    """From measurements in the order of time, shapes (n,) and (n,): at least three, of at least two versions."""
    import numpy as np

    points = np.unique(np.asarray(versions))
    places = np.searchsorted(points, versions)
    values_ = np.asarray(values, dtype=np.float64)
    scale, centre = float(np.ptp(values_)) or 1.0, float(values_.mean())
    y = (values_ - centre) / scale
    # A first pass takes the noise for Gaussian and alike; its residuals show outliers and drift.
    first = _weigh(points, places, y, np.ones(len(y)), (0.0, 0.0))
    weights, drift = _noise(y - first.mean_levels[places])
    found = _weigh(points, places, y, weights, drift) if drift[1] or np.ptp(weights) else first
    residuals = y - found.mean_levels[places]
    noise = float(np.sqrt((weights * residuals**2).sum() / max(1, len(y) - 2)))
    return Posterior(
        tuple(points.tolist()),
        noise * scale,
        drift,
        found.probabilities,
        found.gaps,
        found.creeping,
        found.levels * scale + centre,
        found.sizes * scale,
        found.errors * noise * scale,
    )


def _noise(residuals: Array) -> tuple[Array, tuple[float, float]]:
    """The weight of each measurement, 1 on average and less for outliers, and the drift that explains them best."""
    import numpy as np

    weights = weights_of(residuals)
    if float(np.median(np.abs(residuals - np.median(residuals)))) < SMALLEST_SPREAD:
        return weights, (0.0, 0.0)
    if len(residuals) < DRIFT_FROM:
        return weights, (0.0, 0.0)
    return weights, max(DRIFTS, key=lambda one: _evidence_of_residuals(residuals, weights, one))


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


def _weigh(points: Places, places: Places, y: Array, weights: Array, drift: tuple[float, float]) -> Posterior:
    """The hypotheses that matter with their probabilities; errors in units of the noise's standard deviation."""
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
        pairs = np.stack(np.triu_indices(gaps, 1), axis=1)
        sets.append(pairs)
        scores.append(prior[2] + np.log(2) + where[pairs].sum(axis=1) + regression.log_evidence(pairs))
    if gaps >= CHANGES_MAX:
        likely = pairs[np.argsort(-scores[-1])[:PAIRS_EXTENDED]]
        alone = np.argsort(-scores[1])[:SINGLES_EXTENDED, None]
        sets.append(np.unique(np.concatenate([_with_another(likely, gaps), _with_two(alone, pairs)]), axis=0))
        scores.append(prior[3] + np.log(6) + where[sets[-1]].sum(axis=1) + regression.log_evidence(sets[-1]))

    best = max(float(one.max()) for one in scores)
    mean, slopes = one @ white[:, 1] / (one @ one), one @ white[:, 2:] / (one @ one)
    parts: list[tuple[Array, Places, NDArray[np.bool_], Array, Array, Array]] = []
    for block, score in zip(sets, scores, strict=True):
        kept = np.flatnonzero(score > best + math.log(WORTH_KEEPING))
        columns, width = block[kept], block.shape[1]
        sizes, errors = np.zeros((2, len(kept), CHANGES_MAX))
        named = np.full((len(kept), CHANGES_MAX), -1, dtype=np.intp)
        levels = np.full((len(kept), gaps + 1), mean)
        creeping = np.zeros(len(kept), dtype=np.bool_)
        if width and len(kept):
            sizes[:, :width], errors[:, :width] = regression.sizes(columns)
            named[:, :width] = columns
            of_columns = (at_points - slopes).T[columns]
            levels = mean + np.einsum("hw,hwp->hp", sizes[:, :width], of_columns)
            creeping = columns[:, 0] >= gaps
            if creeping.any():
                named[creeping, :2] = np.asarray(ramps)[columns[creeping, 0] - gaps]
        parts.append((np.exp(score[kept] - best), named, creeping, levels, sizes, errors))
    masses, named, creeping, levels, sizes, errors = (np.concatenate(one) for one in zip(*parts, strict=True))
    order = np.argsort(-masses, kind="stable")
    share = masses[order] / masses.sum()
    return Posterior(
        tuple(points.tolist()),
        1.0,
        drift,
        share,
        named[order],
        creeping[order],
        levels[order],
        sizes[order],
        errors[order],
    )


def _with_another(pairs: Places, gaps: int) -> Places:
    """Each pair with each third gap, ascending, every set once."""
    import numpy as np

    both = np.repeat(pairs, gaps, axis=0)
    third = np.tile(np.arange(gaps), len(pairs))
    new = (both != third[:, None]).all(axis=1)
    return np.unique(np.sort(np.column_stack([both, third])[new], axis=1), axis=0)


def _with_two(singles: Places, pairs: Places) -> Places:
    """Each single gap with each two others that lie near each other, ascending."""
    import numpy as np

    near = pairs[pairs[:, 1] - pairs[:, 0] <= EXTENDED_SPAN]
    found = np.concatenate([np.column_stack([np.broadcast_to(one, (len(near), 1)), near]) for one in singles])
    return np.sort(found[(found[:, :1] != found[:, 1:]).all(axis=1)], axis=1)


def _stretches(points: Places) -> list[tuple[int, int]]:
    """The places of first and last point of each stretch over which the level may creep."""
    import numpy as np

    ends = list(range(len(points)))
    if len(points) > CREEP_POINTS_MAX:
        ends = sorted({int(one) for one in np.linspace(0, len(points) - 1, CREEP_POINTS_MAX)})
    return [(a, b) for a in ends for b in ends if b - a >= 2 and points[b] - points[a] >= CREEP_LEAST_VERSIONS]
