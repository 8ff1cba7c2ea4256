"""The search for the best candidate, as a state machine: which block of trials next, and what is known.

It knows no machine, no clock and no sampler: `propose` offers candidates, whoever drives it measures a block and says
what came out. Simulations and real machines drive the same search.

A block is the default and some candidates, each once, in random order: the block's level is taken out
(`iolab.domain.tune.estimate`). First every candidate is new. Later some slots go to promising ones again: those that
may, by what is known, be the best. The last blocks hold only these. When trials or time are used up, mixtures of the
winner and the default show which keys matter, and fresh rounds of default, winner and the smaller setting decide.

While every trial gives what the default gives beside it, within 0.01 %, new candidates have values that were not
tried yet. If none is left, no key acts, and the search ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from iolab.domain.tune.estimate import Estimate, Variances
from iolab.domain.tune.keys import Reduction
from iolab.domain.tune.space import Point, Space
from iolab.domain.tune.tuning import Budget
from iolab.domain.tune.untried import untried

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Stage = Literal["search", "keys", "confirm"]
Arm = tuple[float, ...] | None
"""What a trial yielded: of each objective and then of each limited metric the logarithm, higher is better. None: it
could not be measured."""
Propose = Callable[[Sequence[tuple[Point, Sequence[float]]], int, int], Sequence[Point]]
"""From what is known of points (their gains, by objective), so many new points, with a seed."""

BLIND = 15
"""So many candidates are drawn blindly before the estimate has a say."""
NEW_ONLY = 0.2
"""Share of the search in which every candidate is new."""
RACE = 0.8
"""From this share on, only promising candidates are measured again."""
AGAIN_MAX = 12
"""So often one candidate is measured at most."""
PROMISING_SD = 1.0
"""A candidate may be the best while its estimate, with so many standard deviations, reaches the best one's."""
STEPS_MAX = 20
"""So many keys are changed of a proposal at most."""
BOLD_SD = 1.0
"""A proposal is improved by the estimate with so many standard deviations."""
SURE_SD = 0.5
"""The winner is the candidate whose estimate less so many standard deviations is highest."""
RACING_MAX = 8
FRONT_MAX = 4
"""So many candidates of a Pareto front are measured on fresh rounds."""
BEYOND_LIMIT = 3.0
"""What a candidate loses for each unit that it is beyond a limit, in the logarithm."""
GAIN_LEAST = 0.0
SAME_LOG = 1e-4
"""Values whose logarithms differ by no more are the same: 0.01 % is no reason to set a key."""
SEEDS_APART = 1_000_003
"""Between the seeds of two proposals for one block."""
IMPOSSIBLE_MAX = 4
"""So many blocks of which no point can be a setting, one after another, end the search."""


@dataclass(frozen=True)
class Block:
    """What is measured next: the default and these points, each once; of stage confirm for up to `rounds` rounds."""

    stage: Stage
    number: int
    points: tuple[Point, ...]
    rounds: int = 1


@dataclass
class Search:
    """`limits`: of each limited metric how much worse than the default it may be, as a share."""

    space: Space
    propose: Propose
    budget: Budget
    objectives: int = 1
    limits: tuple[float, ...] = ()
    seed: int = 1
    first: Sequence[Point] = ()
    """Points to begin with."""
    points: list[Point] = field(default_factory=list)
    trials_used: int = 0
    time_used_s: float = 0.0
    refused: set[int] = field(default_factory=set)
    reduction: Reduction | None = None
    impossible: int = 0
    """Blocks since the last one that was measured of which no point could be a setting."""
    _trials: list[tuple[int, int, tuple[float, ...]]] = field(default_factory=list)
    _seconds: dict[int, list[float]] = field(default_factory=dict)
    _blocks: int = 0
    _estimates: list[Estimate] | None = None
    _variances: dict[int, Variances] = field(default_factory=dict)
    _gains: tuple[Array, Array] | None = None
    _confirmed: bool = False

    def next(self) -> Block | None:
        """What to measure now; None when the answer stands."""
        if self._confirmed:
            return None
        room = self.budget.trials - self.trials_used - 1  # beside the default's
        if room > 0 and self.share_used < 1 and self.impossible < IMPOSSIBLE_MAX:
            points = self._chosen()[:room]
            if points:
                return Block("search", self._blocks, tuple(points))
        winners = self.winners()
        if not winners:
            return None
        if self.objectives == 1 and self.budget.key_rounds:
            if self.reduction is None:
                self.reduction = Reduction(self.space, winners[0])
            if self.reduction.worthwhile and self.reduction.rounds < self.budget.key_rounds and not self.reduction.sure:
                return Block("keys", self.reduction.rounds, self.reduction.points)
        return Block("confirm", 0, tuple(self.finalists()), self.budget.confirm)

    def measured(self, block: Block, arms: Sequence[Arm], seconds: Sequence[float] = ()) -> None:
        """What a round of the block yielded: the default first, then its points; and how long each took."""
        if block.stage == "confirm":
            self._confirmed = True
            return
        if block.stage == "keys":
            if self.reduction is None:
                self.reduction = Reduction(self.space, self.winners()[0])
            self.reduction.measured([None if arm is None else arm[0] for arm in arms])
            return
        places = [-1, *(self._place(point) for point in block.points)]
        for place, arm in zip(places, arms, strict=True):
            if arm is not None:
                self._trials.append((self._blocks, place, arm))
            elif place >= 0:
                self.refused.add(place)
        for place, taken in zip(places, seconds, strict=False):
            self._seconds.setdefault(place, []).append(taken)
        self.trials_used += len(places)
        self.time_used_s += sum(seconds)
        self._blocks += 1
        self.impossible = 0
        self._estimates = self._gains = None

    @property
    def nothing_acts(self) -> bool:
        """Whether every trial gave what the default gave beside it, and no value of a key is left to try."""
        return bool(self._alive()) and not self._acts and not self._untried(1)

    @property
    def share_used(self) -> float:
        """How much of the search's budget is used: 1 or more ends it."""
        by_time = 0.0 if self.budget.time_s is None else self.time_used_s / self.budget.time_s
        return max(self.trials_used / self.budget.trials, by_time)

    def estimates(self) -> tuple[Array, Array]:
        """The gains of each measured point over the default, as logarithms, and their standard deviations: shape
        (points, objectives and limits)."""
        if self._gains is None:
            everywhere = range(len(self.points))
            both = [one.gains(self.points, measured=everywhere) for one in self._fitted()]
            self._gains = np.column_stack([mean for mean, _ in both]), np.column_stack([sd for _, sd in both])
        return self._gains

    @property
    def candidates(self) -> int:
        """How many points were measured."""
        return len(self.points) - len(self.refused)

    def repeats(self) -> list[int]:
        """How often each point was measured."""
        found = [0] * len(self.points)
        for _, place, _ in self._trials:
            if place >= 0:
                found[place] += 1
        return found

    def winners(self) -> list[Point]:
        """The best point, of several objectives the Pareto front; none if nothing looks better than the default."""
        if self.reduction is not None:
            return [self.reduction.winner]
        alive = self._alive()
        if not alive or self.nothing_acts:
            return []
        scores = self._scores(-SURE_SD)
        if self.objectives == 1:
            best = max(alive, key=lambda place: float(scores[place, 0]))
            means = self._scores(0.0)
            return [self.points[best]] if means[best, 0] > GAIN_LEAST else []
        front = [place for place in _front(scores, alive) if (scores[place] > GAIN_LEAST).any()]
        # The best of each objective in turn, so that few of a long front show both of its ends.
        orders = [sorted(front, key=lambda place: -float(row[place])) for row in scores.T[: self.objectives]]
        spread = dict.fromkeys(place for turn in zip(*orders, strict=True) for place in turn)
        return [self.points[place] for place in list(spread)[:FRONT_MAX]]

    def finalists(self) -> list[Point]:
        """What fresh rounds compare with the default: the winners, and the winner's smaller setting."""
        found = self.winners()
        if self.reduction is not None and self.reduction.minimal is not None:
            found = [*found, self.reduction.minimal]
        return found

    def best(self, count: int) -> list[Point]:
        """So many points, the best first, whether or not they look better than the default."""
        alive = self._alive()
        if not alive:
            return []
        scores = self._scores(0.0)
        alive.sort(key=lambda place: -float(scores[place].max()))
        return [self.points[place] for place in alive[:count]]

    def leading(self) -> float | None:
        """What the best point gives over the default by now, as a share; None before anything is known."""
        found = self.best(1)
        return None if not found else float(np.expm1(self._scores(0.0)[self.points.index(dict(found[0])), 0]))

    def refuse(self, point: Point) -> None:
        """Leaves a point out that nothing can be measured of."""
        self.refused.add(self._place(point))
        self._gains = None

    def _alive(self) -> list[int]:
        """The points of which there is a value beside one of the default."""
        if not any(place < 0 for _, place, _ in self._trials):
            return []
        return sorted({place for _, place, _ in self._trials if place >= 0} - self.refused)

    @property
    def _acts(self) -> bool:
        """Whether a trial differs from that of the default in its block. What was given to begin with is measured
        whatever it shows."""
        if self.first:
            return True
        default = {block: arm for block, place, arm in self._trials if place < 0}
        return any(
            abs(ours - theirs) > SAME_LOG
            for block, place, arm in self._trials
            if place >= 0 and block in default
            for ours, theirs in zip(arm, default[block], strict=True)
        )

    def _untried(self, count: int) -> list[Point]:
        return untried(self.space, self.points, count, self._seed)

    @property
    def _seed(self) -> int:
        """The seed of the next block's proposals."""
        return self.seed + self._blocks + self.impossible * SEEDS_APART

    def _place(self, point: Point) -> int:
        """The point's place among those measured; a new point is added."""
        if dict(point) not in self.points:
            self.points.append(dict(point))
        return self.points.index(dict(point))

    def _fitted(self) -> list[Estimate]:
        if self._estimates is None:
            self._estimates = []
            for column in range(self.objectives + len(self.limits)):
                trials = [(block, place, arm[column]) for block, place, arm in self._trials]
                found = Estimate(self.space, self.points, trials, self._variances.get(column))
                self._variances[column] = found.variances
                self._estimates.append(found)
        return self._estimates

    def _scores(self, sds: float, points: Sequence[Point] | None = None) -> Array:
        """Gains by objective with so many standard deviations, less what is beyond a limit; of points never measured
        by what others say of their values."""
        if points is None:
            means, errors = self.estimates()
        else:
            both = [one.gains(points) for one in self._fitted()]
            means, errors = np.column_stack([mean for mean, _ in both]), np.column_stack([sd for _, sd in both])
        limits = -np.log1p(np.asarray(self.limits))
        beyond = np.maximum(0.0, limits - means[:, self.objectives :]).sum(axis=1)
        found = means[:, : self.objectives] + sds * errors[:, : self.objectives]
        return np.asarray(found - BEYOND_LIMIT * beyond[:, None])

    def _chosen(self) -> list[Point]:
        """The next block's points: promising ones again, and new ones."""
        count = self.budget.per_block
        if self._alive() and not self._acts:
            return self._untried(count)
        started = [point for point in self.first if dict(point) not in self.points]
        if started or not self._alive() or len(self.points) < BLIND:
            fresh = [*started[:count], *self._new(count - len(started[:count]), blind=True)]
            if fresh or not self._alive():
                return self._distinct(fresh)
        share = self.share_used
        again = count if share >= RACE else max(0, round(count * (share - NEW_ONLY)))
        chosen = self._promising(again)
        chosen += self._new(count - len(chosen), blind=False) if share < RACE or not chosen else []
        return self._distinct(chosen) or self._promising(count)

    def _distinct(self, points: Sequence[Point]) -> list[Point]:
        found: list[Point] = []
        for point in points:
            if dict(point) not in found:
                found.append(dict(point))
        return found

    def _promising(self, count: int) -> list[Point]:
        """Measured points that may be the best: the least known of them first, by what a trial of it costs."""
        if not count:
            return []
        times = self.repeats()
        alive = [place for place in self._alive() if times[place] < AGAIN_MAX]
        low, high = self._scores(0.0), self._scores(PROMISING_SD)
        _, errors = self.estimates()
        found: list[int] = []
        for objective in range(self.objectives):
            best = max((float(low[place, objective]) for place in alive), default=0.0)
            may = [place for place in alive if high[place, objective] >= best]
            may.sort(key=lambda place: -float(high[place, objective]))
            found += may[:RACING_MAX]
        found = list(dict.fromkeys(found))
        found.sort(key=lambda place: -float(errors[place, : self.objectives].max()) / self._cost(place))
        return [self.points[place] for place in found[:count]]

    def _cost(self, place: int) -> float:
        """How long a trial of the point takes, by the square root: twice the time halves a trial's variance."""
        taken = self._seconds.get(place)
        return float(np.sqrt(np.mean(taken))) if taken and min(taken) > 0 else 1.0

    def _new(self, count: int, *, blind: bool) -> list[Point]:
        """New points, from what the sampler proposes; once something is known, all but one are improved by it."""
        if count <= 0:
            return []
        known: list[tuple[Point, Sequence[float]]] = []
        if not blind:
            scores = self._scores(0.0)
            known = [(self.points[place], scores[place].tolist()) for place in self._alive()]
        offered = self._distinct(self.propose(known, count, self._seed))
        chosen: list[Point] = []
        for slot, point in enumerate(offered):
            improved = point if blind or not slot else self._improved(point, slot % self.objectives, chosen)
            if dict(improved) not in [*self.points, *chosen]:
                chosen.append(dict(improved))
        return chosen

    def _improved(self, start: Point, objective: int, taken: Sequence[Point]) -> Point:
        """The best point, never measured, on the way from this one uphill: a key at a time, by the estimate with some
        of its standard deviation, so that what is little known counts as good."""
        gone = [*self.points, *taken]
        best, height = start, -np.inf
        now, at = start, -np.inf
        for _ in range(STEPS_MAX):
            near = [point for point in self.space.neighbours(now) if self.space.allows(point)]
            if not near:
                break
            scores = self._scores(BOLD_SD, near)[:, objective]
            for place in np.argsort(-scores):
                if scores[place] <= height:
                    break
                if near[place] not in gone:
                    best, height = near[place], float(scores[place])
                    break
            top = int(np.argmax(scores))
            if scores[top] <= at:
                break
            now, at = near[top], float(scores[top])
        return best


def _front(scores: Array, places: Sequence[int]) -> list[int]:
    """Those of these rows that no other one beats in everything."""

    def beaten(place: int) -> bool:
        return any(
            bool((scores[other] >= scores[place]).all() and (scores[other] > scores[place]).any()) for other in places
        )

    return [place for place in places if not beaten(place)]


def signed_log(value: float | None, better: str | None) -> float | None:
    """A metric's value as the search counts it: the logarithm, higher is better; None of what has none."""
    if value is None or not value > 0 or not math.isfinite(value):
        return None
    return math.log(value) if better != "lower" else -math.log(value)
