"""Where the level of a series of values changes for good, or for a while: tests with a known rate of false alarms.

Values far from their neighbours count as if they were less far, so that outliers have no say. A step, or an episode
between two steps, is tested by a likelihood ratio of regressions, whose noise is white or drifts (an autoregression
beside white noise, of several sizes; the likeliest one each, with and without the step). What drift explains is no
step. The p-value is Student's, never below what the number of orders allows, nor below that of normal scores of the
ranks if few values lie on one side of the step. If many values equal the next, they count by their ranks, and the
p-value is never below that of the exact test whether as many lie above their level, or below it, on both sides: of
counts that are mostly 0, the noise of one level says nothing of another's. The tests of all places are combined by
weighted Cauchy variates (Liu and Xie, J. Am. Stat. Assoc. 115, 2020), which need not be independent: neighbours of a
step's place show it too, so that places that agree cost less than a multiplication by their number. Half of the false
alarms that are allowed fall to steps in the newest values, for which the user waits; the rest to all others.

What is found is taken out and the search goes on (forward selection). If no single step says more than drift does,
several are tried together, their number of tests multiplied. Then each place is looked for again beside the others. The
steps' places have a posterior with a flat prior, from which the earliest and the latest are told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Places = NDArray[np.intp]

FEWEST = 10
"""Values; of fewer nothing is said."""
MOST = 730
"""Values; of a longer series the newest are looked at."""
NEWEST = 7
"""Steps that leave so many values or fewer behind them are new."""
SHORTEST = 2
"""Values on each side of a step."""
SHORTEST_EPISODE = 4
SHARE_NEWEST, SHARE_STEPS, SHARE_EPISODES = 0.5, 0.3, 0.2
"""The shares of the allowed false alarms that new steps, other steps and episodes get."""
CHANGES_MAX = 20
TOGETHER_MAX = 6
"""Steps or episodes that are tried together."""
AS_SURE = 1.01
"""A p-value within this factor of the smallest that so few values can have is as sure as they can be. Chosen: above
rounding, below the next order's."""
STILL_A_CHANGE = 1e-3
"""A change whose p-value beside the others is larger is taken back."""
DRIFTS = (
    (0.0, 0.0, 0.0),
    *((rho, size, 2.0) for rho in (0.3, 0.6) for size in (1.0, 20.0)),
    *((0.8, size, 3.0) for size in (1.0, 20.0)),
    *((rho, size, 4.0) for rho in (0.9, 0.98) for size in (1.0, 20.0)),
    *((rho, size, 4.0) for rho in (0.95, 0.99) for size in (0.25, 0.6)),
    (0.998, 2.0, 4.0),
)
"""Correlation from one value to the next, variance in units of the white noise's, and the doubt: the nats by which it
has to be likelier than white noise before it may explain a step."""
DOUBTED_MOST_AT = 60
"""Values. The doubt shrinks with more, which show whether there is drift, and with fewer, which show neither."""
SURE = 0.95
"""The confidence of the interval of a change's size, and of that of its place."""
SMALL_SIDE = 8
"""A side with one in so many values or fewer is also tested by ranks."""
TIED_NEIGHBOURS = 1 / 3
"""The share of values equal to the next from which on a series is one of counts or steps, whose noise has no one size.
Chosen: below it Student's test errs no more often than allowed, as Poisson counts of a mean of 0.8 show."""
SPREADS_APART = 2.5
"""Levels whose spreads differ by this factor are scaled to one. Chosen: those of 20 values of one noise seldom do."""
SPREAD_OF = 8
"""Values that it takes to tell the spread of a level by itself."""
OUTLIERS_MAX = 0.05
"""The largest share of values that count as outliers."""
NEIGHBOURS = 9
CLIPPED_AT_SD = 3.0
"""Values further from the median of their neighbours, or from their level, count as if they were so far."""
NINE_OF_TEN = 1.2816
"""Standard errors by which a step has to exceed what is just seen, to be seen nine of ten times."""
CAUCHY_TAIL = 1e-9
"""Below this p-value a Cauchy variate is its reciprocal by pi, to 17 digits."""
LARGEST_SD, HALVINGS = 16.0, 10
"""The bounds of the search for the smallest step that would be seen."""
DRAWS, MANY = 10, 100
"""Draws of noise for each step in the newest values; of more values than `MANY` one is as good. Chosen."""
SMALLEST = 1e-9
"""Share of the sum of squares that counts as rounding."""


@dataclass(frozen=True)
class Change:
    """A step. `at`: the place of the first value at the new level; `earliest`, `latest`: where it lies with a
    probability of 95 %; `before`, `after`: levels, in the metric's unit; `low`, `high`: a 95 % interval of `after` less
    `before`; `p`: the p-value of a step between its neighbours, by the number of series; `may_be_drift`: drift explains
    it as well, if it is not doubted; `from_zero`: most values before it are 0, so that there is no ratio to them."""

    at: int
    earliest: int
    latest: int
    before: float
    after: float
    low: float
    high: float
    p: float
    may_be_drift: bool
    from_zero: bool = False


def changes_in(
    values: Sequence[float], *, series: float = 1, looks: int = 1, false_alarms: float = 0.05
) -> list[Change]:
    """The changes of a series, oldest first. `false_alarms`: the probability that any of `series` such series, which
    are independent, shows one, in any of `looks` looks, if there is none."""
    import numpy as np

    skipped = max(0, len(values) - MOST)
    y = np.asarray(values[skipped:], dtype=np.float64)
    if len(y) < FEWEST or np.ptp(y) == 0:
        return []
    tests = _Tests(len(y), series * looks)
    found: list[int] = []
    while len(found) < CHANGES_MAX:
        scores = _scores(y, found)
        p, places = tests.best(scores, found)
        if p > false_alarms:
            p, places = tests.together(scores, found)
        if p > false_alarms:
            break
        found = sorted({*found, *places})
    return _located_changes(y, tests, _settled(y, tests, found), skipped, false_alarms)


def detection_limit(values: Sequence[float], *, series: float = 1, looks: int = 1, false_alarms: float = 0.05) -> float:
    """The step, in the values' unit, that nine of ten times would have been found in the middle of a series in which
    none was: smaller ones may well hide there. Infinite for too few values."""
    import numpy as np

    y = np.asarray(values[-MOST:], dtype=np.float64)
    if len(y) < FEWEST:
        return math.inf
    if np.ptp(y) == 0:
        return 0.0
    tests = _Tests(len(y), series * looks)
    scores, place = _scores(y, []), len(y) // 2
    deviation = 1.4826 * float(np.median(np.abs(y - np.median(y)))) or float(y.std())

    def seen(size: float) -> bool:
        step = size * (np.arange(len(y)) >= place)
        # By the middle alone: its neighbours' evidence differs from noise to noise.
        looked = tests.look(scores + step, [], np.asarray([place]), np.asarray([len(y)]))
        return float(looked.p[0]) * tests.series * float(tests.times[place - SHORTEST]) <= false_alarms

    # The noise's own step, as far as there is one, adds to a rise what it takes from a fall.
    half = (_smallest(seen) + _smallest(lambda size: seen(-size))) / 2
    return deviation * (half + NINE_OF_TEN * 2 / math.sqrt(len(y)))


@lru_cache(maxsize=8)
def newest_unseen(count: int, *, series: float = 1, looks: int = 1, false_alarms: float = 0.05) -> int:
    """In how many of the newest of `count` values a step may hide that is 16 standard deviations of white noise: so few
    orders of the values are as uneven that more have to follow it, whatever its size."""
    import numpy as np

    if count < FEWEST:
        return count
    count = min(count, MOST)
    tests, after = _Tests(count, series * looks), SHORTEST - 1
    noises = np.random.default_rng(count).standard_normal((DRAWS if count <= MANY else 1, count))
    while after < count // 2:
        stepped = noises + LARGEST_SD * (np.arange(count) >= count - after - 1)
        if all(tests.best(_scores(one, []), [])[0] <= false_alarms for one in stepped):
            break
        after += 1
    return after


def _smallest(seen: Callable[[float], bool]) -> float:
    """The size, in standard deviations of the noise, from which on steps are seen."""
    least, most = 0.0, LARGEST_SD
    for _ in range(HALVINGS):
        middle = (least + most) / 2
        least, most = (least, middle) if seen(middle) else (middle, most)
    return most


@dataclass(frozen=True)
class _Noise:
    """Noise with a drift, the mean taken out. `precision`: shape (n, n); `gram`: of the steps at 0 to n, of which the
    last is no step, shape (n + 1, n + 1); `cost`: half the logarithm of its determinant; `doubt`: of `DRIFTS`."""

    precision: Array
    gram: Array
    cost: float
    doubt: float


@lru_cache(maxsize=2)
def _noises(count: int) -> tuple[_Noise, ...]:
    import numpy as np

    times = np.arange(count)
    distance = np.abs(times[:, None] - times[None, :])
    found = []
    for rho, size, doubt in DRIFTS:
        covariance = (np.eye(count) + size * rho**distance) / (1 + size)
        inverse = np.linalg.inv(covariance)
        of_one = inverse.sum(axis=0)
        precision = inverse - np.outer(of_one, of_one) / of_one.sum()
        gram = np.zeros((count + 1, count + 1))
        gram[:count, :count] = precision[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
        cost = 0.5 * (float(np.linalg.slogdet(covariance)[1]) + math.log(float(of_one.sum())))
        found.append(_Noise(precision, gram, cost, doubt))
    return tuple(found)


@dataclass(frozen=True)
class _CandidateTests:
    """What every candidate has to say beside the steps that are known: `gain`, its log likelihood ratio; `p`."""

    gain: Array
    p: Array


class _Tests:
    """All tests of a series of `count` values. Candidates: a step at `begin`, to `end` (`count`: for good)."""

    def __init__(self, count: int, series: float) -> None:
        import numpy as np

        self.count = count
        steps = np.arange(SHORTEST, count - SHORTEST + 1)
        episodes = list(_episodes(count))
        self.begin = np.concatenate([steps, np.asarray([a for a, _ in episodes], dtype=np.intp)])
        self.end = np.concatenate([np.full(len(steps), count), np.asarray([b for _, b in episodes], dtype=np.intp)])
        new = steps >= count - NEWEST
        self.times = np.empty(len(self.begin))
        self.times[: len(steps)] = np.where(new, new.sum() / SHARE_NEWEST, max(1, (~new).sum()) / SHARE_STEPS)
        self.times[len(steps) :] = max(1, len(episodes)) / SHARE_EPISODES
        self.series = series
        self.doubted = min(count / DOUBTED_MOST_AT, DOUBTED_MOST_AT / count)

    def cost(self, noise: _Noise) -> float:
        """What this noise costs in log likelihood, before any value is seen. Few of many series that drift may alarm:
        the more there are, the less is drift doubted."""
        return noise.cost + max(0.0, noise.doubt * self.doubted - math.log(self.series))

    def undoubted(self) -> _Tests:
        """The same tests if drift is as likely as white noise."""
        tests = copy(self)
        tests.doubted = 0.0
        return tests

    def best(self, scores: Array, known: Sequence[int]) -> tuple[float, list[int]]:
        """The p-value of all candidates together, and the places of the one with the smallest p-value for its
        weight."""
        import numpy as np

        looked = self.look(scores, known, self.begin, self.end)
        p = np.where(self._near(known), 1.0, np.maximum(looked.p, self._by_ranks(scores)))
        one = int(np.lexsort((-looked.gain, p * self.times))[0])
        return self.series * _combined(p, 1 / self.times), self._places(one)

    def _by_ranks(self, scores: Array) -> Array:
        """The p-value of normal scores of the ranks, if one side of a candidate is so small that outliers could make it
        what it is; else 0."""
        import numpy as np
        from scipy.special import ndtr

        ranked = _normal_scores(scores)
        after = np.append((ranked - ranked.mean())[::-1].cumsum()[::-1], 0.0)
        inside = self.end - self.begin
        size = inside * (self.count - inside) / self.count
        p = 2 * ndtr(-np.abs(after[self.begin] - after[self.end]) / np.sqrt(size))
        fewer = np.minimum(inside, self.count - inside)
        return np.asarray(np.where(SMALL_SIDE * fewer <= self.count, p, 0.0), dtype=np.float64)

    def together(self, scores: Array, known: Sequence[int]) -> tuple[float, list[int]]:
        """Candidates one after the other, each the best in white noise, and then all of them against any drift: the
        smallest p-value, multiplied by the number of such sets, and the set's places. No such set is tested exactly, so
        that nothing is found if many values are equal."""
        import numpy as np
        from scipy.special import fdtrc

        if _are_tied(scores):
            return 1.0, []
        freedom = self.count - 1 - len(known)
        alone = self._likelihood(scores, known, freedom)
        best: tuple[float, list[int]] = (1.0, [])
        found, log_times = list(known), math.log(self.series)
        for _ in range(TOGETHER_MAX):
            looked = self.look(scores, found, self.begin, self.end, noises=1)
            worth = np.where(self._near(found), -np.inf, looked.gain - np.log(self.times))
            one = int(np.argmax(worth))
            found = sorted([*found, *self._places(one)])
            log_times += math.log(self.times[one])
            more = len(found) - len(known)
            if freedom - more < 2 or not np.isfinite(worth[one]):
                break
            gain = max(0.0, self._likelihood(scores, found, freedom) - alone)
            ratio = math.expm1(min(2 * gain / freedom, 600.0)) * (freedom - more) / more
            log_p = math.log(max(float(fdtrc(more, freedom - more, ratio)), 1e-300)) + log_times
            best = min(best, (math.exp(min(0.0, log_p)), [place for place in found if place not in known]))
        return best

    def _near(self, known: Sequence[int]) -> NDArray[np.bool_]:
        """Whether a candidate begins or ends where a step is known."""
        import numpy as np

        near = np.zeros(len(self.begin), dtype=np.bool_)
        for place in known:
            near |= (np.abs(self.begin - place) < SHORTEST) | (np.abs(self.end - place) < SHORTEST)
        return near

    def _places(self, candidate: int) -> list[int]:
        return [int(side[candidate]) for side in (self.begin, self.end) if side[candidate] < self.count]

    def _likelihood(self, scores: Array, known: Sequence[int], freedom: int) -> float:
        """The log likelihood of the steps, with the likeliest noise."""
        import numpy as np

        found = []
        for noise in _noises(self.count):
            weighted = noise.precision @ scores
            left = float(scores @ weighted)
            if known:
                against = weighted[::-1].cumsum()[::-1][list(known)]
                left -= float(against @ np.linalg.solve(noise.gram[np.ix_(known, known)], against))
            found.append(-self.cost(noise) - 0.5 * freedom * math.log(max(left, SMALLEST * self.count)))
        return max(found)

    def look(
        self, scores: Array, known: Sequence[int], begin: Places, end: Places, noises: int | None = None
    ) -> _CandidateTests:
        """Each candidate beside the known steps, with the first `noises` of `DRIFTS` (None: all)."""
        import numpy as np
        from scipy.special import stdtr

        freedom = self.count - 1 - len(known)
        floor = SMALLEST * self.count
        without, with_ = [], []
        for noise in _noises(self.count)[:noises]:
            weighted = noise.precision @ scores
            against = np.append(weighted[::-1].cumsum()[::-1], 0.0)
            left = float(scores @ weighted)
            gram = noise.gram
            size = gram[begin, begin] + gram[end, end] - 2 * gram[begin, end]
            sums = against[begin] - against[end]
            if known:
                root = np.linalg.cholesky(gram[np.ix_(known, known)])
                of_known = np.linalg.solve(root, against[list(known)])
                shared = np.linalg.solve(root, gram[list(known)][:, begin] - gram[list(known)][:, end])
                left -= float(of_known @ of_known)
                sums = sums - of_known @ shared
                size = size - (shared**2).sum(axis=0)
            explained = np.where(size > SMALLEST, sums**2 / np.maximum(size, SMALLEST), 0.0)
            without.append(-self.cost(noise) - 0.5 * freedom * math.log(max(left, floor)))
            with_.append(-self.cost(noise) - 0.5 * freedom * np.log(np.maximum(left - explained, floor)))
        gain = np.maximum(0.0, np.max(with_, axis=0) - max(without))
        t = np.sqrt((freedom - 1) * np.expm1(np.minimum(2 * gain / freedom, 600.0)))
        p = np.maximum(2 * stdtr(freedom - 1, -t), self.least(end - begin))
        return _CandidateTests(
            gain, np.maximum(p, self._by_sides(scores, known, begin, end)) if _are_tied(scores) else p
        )

    def _by_sides(self, scores: Array, known: Sequence[int], begin: Places, end: Places) -> Array:
        """The exact p-value of how many values lie above their level inside a candidate, or below it, among those
        between the known steps around it."""
        import numpy as np

        ends = np.asarray([0, *known, self.count])
        first = np.searchsorted(ends, begin, side="right") - 1
        last = np.where(end < self.count, np.searchsorted(ends, end, side="left") - 1, first)
        apart = last > first
        aligned = _aligned(scores, known)

        def inside(sums: Places) -> tuple[Places, Places]:
            """Of what is summed up: how much lies inside each candidate, and between the steps around it."""
            of_first, of_last = sums[ends[first + 1]] - sums[ends[first]], sums[ends[last + 1]] - sums[ends[last]]
            stop = np.where(end < self.count, end, ends[first + 1])
            within = sums[stop] - sums[begin] - np.where(apart, sums[ends[last]] - sums[ends[first + 1]], 0)
            return within, of_first + np.where(apart, of_last, 0)

        if not aligned.any():
            return np.ones(len(begin))
        size, total = inside(np.arange(self.count + 1))
        # What lies above is all that does not lie below, unless values equal their level.
        sides = [side for side in (aligned > 0, aligned < 0) if side.any()][: 2 if (aligned == 0).any() else 1]
        p = [_hypergeometric(*inside(np.append(0, side.cumsum())), size, total) for side in sides]
        return np.asarray(np.minimum(1.0, len(sides) * np.min(p, axis=0)), dtype=np.float64)

    def least(self, inside: Places) -> Array:
        """The smallest p-value that the number of orders allows a candidate of so many values."""
        import numpy as np
        from scipy.special import gammaln

        fewer = np.minimum(inside, self.count - inside)
        return np.asarray(
            2 * np.exp(gammaln(fewer + 1) + gammaln(self.count - fewer + 1) - gammaln(self.count + 1)), dtype=np.float64
        )

    def again(self, y: Array, others: Sequence[int], place: int) -> tuple[Places, _CandidateTests]:
        """The step at `place` looked for beside the others: the places between its neighbours."""
        import numpy as np

        before = max((one for one in others if one < place), default=0)
        after = min((one for one in others if one > place), default=self.count)
        places = np.arange(before + SHORTEST, after - SHORTEST + 1)
        return places, self.look(_scores(y, others), others, places, np.full(len(places), self.count))

    def of_steps(self, p: Array, places: Places) -> float:
        """The p-value of steps at these places together, from the p-value of each."""
        return self.series * _combined(p, 1 / self.times[places - SHORTEST])


def _are_tied(values: Array) -> bool:
    import numpy as np

    return bool(np.mean(values[1:] == values[:-1]) > TIED_NEIGHBOURS)


def _normal_scores(values: Array) -> Array:
    """Normal scores of the ranks; values that are equal share one."""
    import numpy as np
    from scipy.special import ndtri

    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(ndtri((counts.cumsum() - counts / 2)[which] / len(values)), dtype=np.float64)


def _hypergeometric(hits: Places, all_hits: Places, drawn: Places, count: Places) -> Array:
    """Two-sided p-values of so many hits among the drawn."""
    import numpy as np
    from scipy.special import gammaln

    log_factorials = gammaln(np.arange(int(count.max()) + 1) + 1.0)

    def log_choices(of: Places, chosen: Places) -> Array:
        possible = (chosen >= 0) & (chosen <= of)
        some = np.where(possible, chosen, 0)
        return np.where(possible, log_factorials[of] - log_factorials[some] - log_factorials[of - some], -np.inf)

    number = np.arange(int(all_hits.max()) + 1)[:, None]
    chances = np.exp(
        log_choices(
            np.broadcast_to(drawn, (len(number), len(drawn))), np.broadcast_to(number, (len(number), len(drawn)))
        )
        + log_choices(np.broadcast_to(count - drawn, (len(number), len(drawn))), all_hits - number)
        - log_choices(count, all_hits)
    )
    fewer, more = (chances * (number <= hits)).sum(axis=0), (chances * (number >= hits)).sum(axis=0)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(fewer, more)), dtype=np.float64)


def _combined(p: Array, weights: Array) -> float:
    """One p-value of all, by the sum of their Cauchy variates; weights that sum to less than 1 are filled up by 0."""
    import numpy as np

    # The tangent of what is near a half has no digits left; its expansion has. A p-value of 1, as discrete tests have
    # it, would outweigh everything, so the largest is that of the middle of so many.
    kept = np.clip(p, 1e-300, 1 - 1 / (2 * len(p)))
    variates = np.where(kept < CAUCHY_TAIL, 1 / (np.pi * kept), np.tan(np.pi * (0.5 - kept)))
    return float(np.arctan2(1.0, weights @ variates) / np.pi)


def _episodes(count: int) -> list[tuple[int, int]]:
    """First and end of each episode that is looked at: lengths in powers of the root of 2, places a quarter apart."""
    lengths = sorted({round(SHORTEST_EPISODE * 2 ** (half / 2)) for half in range(40)})
    return [
        (begin, begin + length)
        for length in lengths
        if length <= count // 2
        for begin in range(SHORTEST, count - length - SHORTEST + 1, max(1, length // 4))
    ]


def _segments(count: int, places: Sequence[int]) -> list[slice]:
    ends = [0, *places, count]
    return [slice(a, b) for a, b in pairwise(ends)]


def _aligned(y: Array, places: Sequence[int]) -> Array:
    """The values less the median of their segment."""
    import numpy as np

    out = y.copy()
    for one in _segments(len(y), places):
        out[one] -= np.median(y[one])
    return out


def _scores(y: Array, known: Sequence[int]) -> Array:
    """What the known steps leave, with a standard deviation of 1; a value far from the median of its neighbours counts
    as if it were less far. Values of which many are equal count by their ranks."""
    import numpy as np

    aligned = _aligned(y, known) if known else y - y.mean()
    if _are_tied(aligned):
        ranked = _normal_scores(aligned)
        ranked -= ranked.mean()
        return np.asarray(ranked / (ranked.std() or 1.0), dtype=np.float64)
    aligned = _of_one_spread(aligned, known)
    inside = np.lib.stride_tricks.sliding_window_view(aligned, NEIGHBOURS)
    edge = NEIGHBOURS // 2
    around = np.pad(np.median(inside, axis=1), edge, mode="edge")
    spread = 1.4826 * float(np.median(np.abs(aligned - around)))
    if spread:
        # More values than a few are no outliers, but a mode of the noise.
        far = max(CLIPPED_AT_SD * spread, float(np.quantile(np.abs(aligned - around), 1 - OUTLIERS_MAX)))
        aligned = around + np.clip(aligned - around, -far, far)
    aligned = aligned - aligned.mean()
    return np.asarray(aligned / (aligned.std() or 1.0), dtype=np.float64)


def _of_one_spread(aligned: Array, known: Sequence[int]) -> Array:
    """Each level's noise with the spread of the widest, if they differ: noise that is little in one level makes none
    of another's steps any surer."""
    import numpy as np

    long = [one for one in _segments(len(aligned), known) if one.stop - one.start >= SPREAD_OF]
    spreads = [float(np.median(np.abs(aligned[one]))) for one in long]
    if not spreads or not 0 < SPREADS_APART * min(spreads) < max(spreads):
        return aligned
    scaled = aligned.copy()
    for one, spread in zip(long, spreads, strict=True):
        scaled[one] *= max(spreads) / spread
    return scaled


def _settled(y: Array, tests: _Tests, found: list[int]) -> list[int]:
    """The steps, each looked for again beside the others until none moves; one that explains little then is left
    out."""
    import numpy as np

    for _ in range(CHANGES_MAX):
        before = list(found)
        worst = (STILL_A_CHANGE, -1)
        for index, place in enumerate(before):
            others = [one for one in found if one != place]
            places, looked = tests.again(y, others, place)
            best = int(np.argmax(looked.gain))
            found[index] = int(places[best])
            # What is as sure as so few values can be explains enough; two may be outliers.
            after = tests.count - places[best]
            if min(after, places[best]) <= SHORTEST or looked.p[best] > AS_SURE * tests.least(after):
                worst = max(worst, (float(looked.p[best]), index))
        if worst[1] >= 0:
            del found[worst[1]]
        if found == before:
            break
    return found


def _located_changes(y: Array, tests: _Tests, found: list[int], skipped: int, false_alarms: float) -> list[Change]:
    """The steps with their sizes, how sure their places are, and which ones drift explains too."""
    import numpy as np
    from scipy.special import stdtrit

    if not found:
        return []
    aligned = _aligned(y, found)
    spread = 1.4826 * float(np.median(np.abs(aligned)))
    clipped = y - aligned + np.clip(aligned, -CLIPPED_AT_SD * spread, CLIPPED_AT_SD * spread) if spread else y
    centre = float(clipped.mean())
    # Drift would give a level of counts that are all 0 another value.
    noises = _noises(len(y))[: 1 if _are_tied(aligned) else None]
    fits = [_fit(noise, tests.cost(noise), clipped - centre, found) for noise in noises]
    _, sizes, errors = max(fits, key=lambda one: one[0])
    levels = np.concatenate([[0.0], sizes.cumsum()])
    weights = np.asarray([one.stop - one.start for one in _segments(len(y), found)]) / len(y)
    levels += centre - levels @ weights
    if len(noises) == 1:
        # The same, without rounding: no level of what is all 0.
        levels = np.asarray([clipped[one].mean() for one in _segments(len(y), found)])
    wide = float(stdtrit(len(y) - 1 - len(found), 1 - (1 - SURE) / 2))
    found_steps = []
    for index, place in enumerate(found):
        others = [one for one in found if one != place]
        places, looked = tests.again(y, others, place)
        undoubted = tests.undoubted()
        likely = np.exp(looked.gain - looked.gain.max())
        order = np.argsort(-likely)
        enough = int(np.searchsorted(likely[order].cumsum(), SURE * likely.sum())) + 1
        within = places[order[:enough]]
        size, error = float(sizes[index]), wide * float(errors[index])
        found_steps.append(
            Change(
                place + skipped,
                int(within.min()) + skipped,
                int(within.max()) + skipped,
                float(levels[index]),
                float(levels[index + 1]),
                size - error,
                size + error,
                min(1.0, tests.of_steps(looked.p, places)),
                may_be_drift=undoubted.of_steps(undoubted.again(y, others, place)[1].p, places) > false_alarms,
                from_zero=float(np.median(y[_segments(len(y), found)[index]])) == 0,
            )
        )
    return found_steps


def _fit(noise: _Noise, cost: float, y: Array, found: Sequence[int]) -> tuple[float, Array, Array]:
    """The log likelihood with that noise, the steps' sizes and their standard errors."""
    import numpy as np

    weighted = noise.precision @ y
    against = weighted[::-1].cumsum()[::-1][list(found)]
    inverse = np.linalg.inv(noise.gram[np.ix_(found, found)])
    sizes = inverse @ against
    freedom = len(y) - 1 - len(found)
    left = max(0.0, float(y @ weighted - against @ sizes))
    likelihood = -cost - 0.5 * freedom * math.log(max(left, SMALLEST * float(y @ y), 1e-300))
    return likelihood, sizes, np.sqrt(np.diag(inverse) * left / freedom)
