"""Which version to measure next, and when enough is known: a state machine that simulation and reality share.

    search = Search(versions=1025)
    while (version := search.next()) is not None:
        search.measured(version, value)      # or search.unmeasurable(version)
    search.answer()

What is measured next is where the accounts of the history differ most: the information of a Gaussian channel, half
the logarithm of one plus signal over noise. Before that, one version of each of `spread` parts of the range is measured
once: that shows levels and noise, and shows changes that are reversed. If the machine drifts, an end is measured
again now and then, as the reference that distinguishes drift from change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.domain.bisect.posterior import Posterior, posterior
from iolab.domain.bisect.rounds import without_rounds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Kind = Literal["none", "changes", "creep", "unknown"]
Stopped = Literal["decided", "budget", "nothing left to measure", "going on"]

VALUE_MAX = 1e100
"""Squares of sums of what is measured stay numbers."""
STARTS = 3
"""Each end is measured so often before anything else."""
STARTS_WITH_SPREAD = 1
"""The same if other versions show the noise too."""
IN_DRIFT = 3
"""Measurements of other versions between two of an end, if the machine drifts."""
SCENARIOS = 300
"""Accounts drawn from the posterior, over which the variance of each candidate's level is taken."""
LOOKED_AT_FOR_NONE = 8
"""Parts of the range in each of which a version has been measured before the answer is that nothing changes: a change
and its reversal lie between equal ends."""
SPREAD_LEAST, SPREAD_MOST, VERSIONS_PER_PART = 8, 24, 8
"""Parts of the range in each of which a version is measured before changes are named, unless another number is asked
for: a change and its reversal within a part are not seen. A part of a short range has so many versions at least."""
OUTLIER_SD = 3.0
"""A version all of whose measurements lie so far from its level is measured again before the answer, until it was
measured `OUTLIERS_MAX` times: it may be an outlier, or the only one seen between two changes."""
OUTLIERS_MAX = 4
BESIDE = 3
"""The versions before and after each named change are measured so often, and once more for each measurement that is an
outlier. An outlier there would name the neighbour of the right one; and where each version was measured once, the modes
of the noise look like levels, and each place between them like a step's."""
WORTH_A_LOOK = 0.004
"""A gap that holds a change with less probability gets no new version measured."""


@dataclass(frozen=True)
class Change:
    """A change of level. `first`: the earliest version that may have brought it; `last`: the first version known to
    have it; the same if the change is named. `before`, `after`: the levels, in the metric's unit."""

    first: int
    last: int
    before: float
    after: float
    probability: float


@dataclass(frozen=True)
class Answer:
    """What is known. `probability`: of the whole account. `changes`: by version; of a creep one, from end to end."""

    kind: Kind
    probability: float
    changes: tuple[Change, ...]
    measurements: int
    stopped: Stopped

    @property
    def named(self) -> list[int]:
        """The versions that a search which is over names, each beside a measurable one before it."""
        if self.kind != "changes" or self.stopped != "decided":
            return []
        return [change.last for change in self.changes if change.first == change.last]


def spread_of(versions: int) -> int:
    """Into how many parts so many versions are divided unless another number is asked for."""
    return min(versions - 1, SPREAD_MOST, max(SPREAD_LEAST, versions // VERSIONS_PER_PART))


class Search:
    """The search for the changes between version 0 (good) and the last one (bad). Versions are 0 to `versions` - 1."""

    def __init__(
        self,
        versions: int,
        *,
        confidence: float = 0.95,
        budget: int | None = None,
        spread: int | None = None,
        margin: Callable[[float], float] = lambda _level: 0.0,
        seed: int = 1,
    ) -> None:
        """`confidence`: the probability at which it stops; `budget`: measurements at most; `spread`: no stretch
        without a measured version is longer than the range over this, when changes are named (0: however long; None:
        `spread_of` the versions); `margin`: the largest difference from a level that is no change, in
        the metric's unit. InputError for fewer than two versions."""
        import numpy as np

        if versions < 2:
            raise InputError(
                f"{counted(versions, 'version')}: nothing to search between", remedy="name a good and a bad one"
            )
        self.versions = versions
        self.confidence = confidence
        self.budget = budget
        self.spread = spread_of(versions) if spread is None else spread
        self.cost: Callable[[int], float] = lambda _version: 1.0
        """What a measurement of the version costs, in any unit: the search chooses what shows most for its cost."""
        self._as_measured: list[tuple[int, int, float]] = []
        """Version, round, value."""
        self._values: list[tuple[int, float]] | None = []
        self._margin = margin
        self._lost: set[int] = set()
        self._alive = np.arange(versions)
        self._seed = seed
        self._posterior: Posterior | None = None
        self._kind: tuple[Kind, float] | None = None

    def measured(self, version: int, value: float, round_: int = 0) -> None:
        """A measurement has ended with this value of the metric. `round_`: what it has in common with those of other
        versions in the same round, such as a seed."""
        self._as_measured.append((version, round_, value))
        self._values = self._posterior = self._kind = None

    @property
    def values(self) -> list[tuple[int, float]]:
        """Version and value of each measurement, without what rounds have in common."""
        if self._values is None:
            versions, rounds, values = zip(*self._as_measured, strict=True)
            self._values = list(zip(versions, without_rounds(versions, rounds, values), strict=True))
        return self._values

    def unmeasurable(self, version: int) -> None:
        """The version can't be built, started or measured: it is never asked for again."""
        self._lost.add(version)
        self._alive = self._alive[self._alive != version]

    def next(self) -> int | None:
        """The version to measure now; None when the search is over."""
        if self._stopped() != "going on":
            return None
        first, last = self._ends()
        at_ends = self._at_ends()
        if min(at_ends) < self._starts:
            return first if (at_ends[0], len(self.values) % 2) <= (at_ends[1], 0) else last
        for version in (self._in_the_widest(self.spread), self._alone()):
            if version is not None:
                return version
        kind, probability = self._likeliest_kind()
        if probability >= self.confidence:
            if kind == "changes" and (version := self._before_it_is_named()) is not None:
                return version
            return self._in_the_widest(self.versions)
        # If drift is seen, an end is the reference that distinguishes it from change.
        if self.posterior.drift[1] > 0 and not {first, last} & {version for version, _ in self.values[-IN_DRIFT:]}:
            return first if at_ends[0] <= at_ends[1] else last
        return self._most_informative()

    @property
    def posterior(self) -> Posterior:
        """What the measurements say now."""
        if self._posterior is None:
            versions, values = zip(*self.values, strict=True)
            self._posterior = posterior(versions, values)
        return self._posterior

    def answer(self) -> Answer:
        """What is known by now, whether or not the search is over."""
        stopped = self._stopped()
        if len(self.values) < 2 * STARTS or len({version for version, _ in self.values}) < 2:
            return Answer("unknown", 0.0, (), len(self.values), stopped)
        now = self.posterior
        kind, probability = self._likeliest_kind()
        changes: tuple[Change, ...] = ()
        if kind == "creep":
            likeliest = int(now.creeping.argmax())
            a, b = now.gaps_of(likeliest)
            level = now.levels[likeliest]
            changes = (Change(now.points[a], now.points[b], float(level[a]), float(level[b]), probability),)
        elif kind == "changes":
            assert now.likeliest_steps is not None
            level, in_gaps = now.levels[now.likeliest_steps], now.in_gaps(self.margin)
            changes = tuple(
                Change(
                    now.points[gap] + 1,
                    now.points[gap + 1],
                    float(level[gap]),
                    float(level[gap + 1]),
                    float(in_gaps[gap]),
                )
                for gap in self._named()
            )
        return Answer(kind, probability, changes, len(self.values), stopped)

    @property
    def margin(self) -> float:
        """The largest difference that is no change, in the metric's unit, at the level of the good end."""
        return self._margin(float(self.posterior.levels[0, 0]))

    def longest_unmeasured(self) -> tuple[int, int] | None:
        """The measured versions around the longest stretch that has none and could have one: a change that is reversed
        within it is not seen. None if every version was measured."""
        found = [ends for ends in pairwise(self.posterior.points) if len(self._inside(*ends))]
        return max(found, key=lambda ends: ends[1] - ends[0], default=None)

    def largest_step(self) -> tuple[int, float]:
        """The largest step of the likeliest account with any, however small: the first measured version that has it,
        and its size as a share of the level before; none has a size of 0."""
        now = self.posterior
        if (likeliest := now.likeliest_steps) is None:
            return self.versions - 1, 0.0
        gap, size = max(zip(now.gaps[likeliest], now.sizes[likeliest], strict=True), key=lambda one: abs(one[1]))
        before = abs(float(now.levels[likeliest, gap]))
        return now.points[int(gap) + 1], float(size) / before if before else 0.0

    def _likeliest_kind(self) -> tuple[Kind, float]:
        """The account with the highest probability: nothing, a creep, or the likeliest set of changes."""
        now, margin = self.posterior, self.margin
        if self._kind is None:
            accounts: list[tuple[float, Kind]] = [(now.none(margin), "none"), (now.creep(margin), "creep")]
            if now.likeliest_steps is not None:
                # Beside further changes that are too small to count, it is the same account.
                accounts.append((now.account(self._named(), margin), "changes"))
            probability, kind = max(accounts)
            self._kind = kind, probability
        return self._kind

    def _named(self) -> tuple[int, ...]:
        """The gaps of the likeliest steps, without those that are too small to count beside a larger one."""
        now = self.posterior
        assert now.likeliest_steps is not None
        gaps, within = now.gaps_of(now.likeliest_steps), now.within(self.margin)[now.likeliest_steps]
        return tuple(gap for gap, small in zip(gaps, within, strict=False) if small < 0.5) or gaps

    def _stopped(self) -> Stopped:
        first, last = self._ends()
        if first >= last:
            return "nothing left to measure"
        if self.budget is not None and len(self.values) >= self.budget:
            return "budget"
        if min(self._at_ends()) < self._starts:
            return "going on"
        kind, probability = self._likeliest_kind()
        if probability < self.confidence or self._alone() is not None:
            return "going on"
        if kind == "changes" and self._before_it_is_named() is not None:
            return "going on"
        parts = max(self.spread, LOOKED_AT_FOR_NONE) if kind == "none" else self.spread
        return "decided" if self._in_the_widest(parts) is None else "going on"

    @property
    def _starts(self) -> int:
        return STARTS_WITH_SPREAD if self.spread >= LOOKED_AT_FOR_NONE else STARTS

    def _ends(self) -> tuple[int, int]:
        """The oldest and the newest version that can be measured."""
        return (int(self._alive[0]), int(self._alive[-1])) if len(self._alive) else (0, 0)

    def _at_ends(self) -> list[int]:
        """How often each end was measured."""
        return [sum(version == end for version, _ in self.values) for end in self._ends()]

    def _inside(self, before: int, after: int) -> NDArray[np.intp]:
        """The versions strictly between two that can still be measured."""
        return self._alive[(self._alive > before) & (self._alive < after)]

    def _in_the_widest(self, parts: int) -> int | None:
        """A version that halves the longest stretch without a measured one, if it is longer than one of so many parts:
        its middle, or beside it, so that as few versions as possible make such parts."""
        if not parts or (unmeasured := self.longest_unmeasured()) is None:
            return None
        pieces = math.ceil((unmeasured[1] - unmeasured[0]) / math.ceil((self.versions - 1) / parts))
        if pieces < 2:
            return None
        middle = unmeasured[0] + (unmeasured[1] - unmeasured[0]) * (pieces // 2) / pieces
        return int(min(self._inside(*unmeasured), key=lambda version: abs(int(version) - middle)))

    def _before_it_is_named(self) -> int | None:
        """A version to measure before the likeliest changes are said."""
        return self._within_the_named() or self._beside_the_named()

    def _within_the_named(self) -> int | None:
        """The middle of the widest gap that holds a change by the answer and can be narrowed down."""
        now = self.posterior
        named = [self._inside(*now.points[gap : gap + 2]) for gap in self._named()]
        widest = max(named, key=len)
        return int(widest[len(widest) // 2]) if len(widest) else None

    def _beside_the_named(self) -> int | None:
        """A version next to a named change that was measured too seldom."""
        counts, of_far = self._outliers()
        enough = (BESIDE + of_far).clip(max=OUTLIERS_MAX)
        beside = [place for gap in self._named() for place in (gap, gap + 1) if counts[place] < enough[place]]
        return self._measurable(beside)

    def _alone(self) -> int | None:
        """A version that was measured a few times, each time far from the level that it is said to have."""
        import numpy as np

        counts, of_far = self._outliers()
        return self._measurable(np.flatnonzero((of_far == counts) & (counts < OUTLIERS_MAX)).tolist())

    def _outliers(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """By measured version: how often it was, and how often far from the level that it is said to have."""
        import numpy as np

        now = self.posterior
        places = np.searchsorted(np.asarray(now.points), [version for version, _ in self.values])
        left = np.abs(np.asarray([value for _, value in self.values]) - now.mean_levels[places])
        far = max(OUTLIER_SD * 1.4826 * float(np.median(left)), self.margin)
        return np.bincount(places), np.bincount(places[left > far], minlength=len(now.points))

    def _measurable(self, places: list[int]) -> int | None:
        """The first of the measured versions, by their places, that can be measured again."""
        found = (self.posterior.points[place] for place in places)
        return next((version for version in found if version not in self._lost), None)

    def _candidates(self) -> list[int]:
        now = self.posterior
        found = {*now.points} - self._lost
        in_gaps = now.in_gaps()
        creeps, none = float(now.probabilities @ now.creeping), now.none(self.margin)
        for gap, (before, after) in enumerate(pairwise(now.points)):
            inside = self._inside(before, after)
            holds = in_gaps[gap] + creeps + none * (after - before) / self.versions
            if len(inside) and holds >= WORTH_A_LOOK:
                found |= {int(inside[(len(inside) * quarter) // 4]) for quarter in (1, 2, 3)}
        return sorted(found)

    def _most_informative(self) -> int:
        import numpy as np

        # Drawn from the beginning each time: a search that is gone on with chooses what it would have chosen.
        random = np.random.default_rng(self._seed)
        now = self.posterior
        candidates = np.asarray(self._candidates())
        signal = self._levels(candidates, random).var(axis=0)
        noise = now.noise**2 or 1e-12 * float(signal.max() or 1.0)
        worth = np.log1p(signal / noise) / np.asarray([self.cost(int(version)) for version in candidates])
        return int(candidates[int(np.argmax(worth * (1 + 1e-3 * random.random(len(worth)))))])

    def _levels(self, candidates: NDArray[np.intp], random: np.random.Generator) -> NDArray[np.float64]:
        """Levels of accounts drawn from the posterior, shape (SCENARIOS, candidates), in the metric's unit."""
        import numpy as np

        now = self.posterior
        points = np.asarray(now.points)
        drawn = random.choice(len(now.probabilities), SCENARIOS, p=now.probabilities)
        before = np.searchsorted(points, candidates, side="right") - 1
        inside = points[before] != candidates
        levels = now.levels[drawn]
        out = levels[:, before]
        after = levels[:, np.minimum(before + 1, len(points) - 1)]
        low, high = points[before], points[np.minimum(before + 1, len(points) - 1)]
        position = np.where(inside, (candidates - low) / np.maximum(high - low, 1), 0.0)
        # One place for each gap and scenario, so that candidates of one gap agree on where its change is.
        at = random.random((SCENARIOS, len(points)))[:, before]
        creeping = now.creeping[drawn][:, None]
        part = np.where(creeping, position, (at < position).astype(np.float64))
        return np.asarray(out + part * (after - out), dtype=np.float64)
