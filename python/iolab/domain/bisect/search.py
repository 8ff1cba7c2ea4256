"""Which version to measure next, and when enough is known: a state machine that simulation and reality share.

    search = Search(versions=1025)
    while (version := search.next()) is not None:
        search.measured(version, value)      # or search.unmeasurable(version)
    search.answer()

What is measured next is where the accounts of the history differ most: the information of a Gaussian channel, half
the logarithm of one plus signal over noise. The good end is measured again now and then, as the reference by which
drift is told from change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from iolab.base.errors import InputError
from iolab.domain.bisect.posterior import Posterior, posterior

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Kind = Literal["none", "changes", "creep", "unknown"]

STARTS = 3
"""Each end is measured so often before anything else."""
REFERENCE_EVERY = 9
REFERENCE_EVERY_IN_DRIFT = 4
SCENARIOS = 300
"""Accounts drawn from the posterior, over which the variance of each candidate's level is taken."""
LOOKED_AT_FOR_NONE = 9
"""Versions, ends included, that have been measured before it is said that nothing changes: a change and its reversal
lie between equal ends."""
SPREAD = 0
"""Stretches into which the measured versions part the range before changes are named; 0 asks for none."""
WORTH_A_LOOK = 0.004
"""A gap that holds a change with less probability gets no new version measured."""


@dataclass(frozen=True)
class Change:
    """A change of level. `first`: the earliest version that may have brought it; `last`: the first version known to
    have it; the same where the change is named. `before`, `after`: the levels, in the metric's unit."""

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
    stopped: Literal["decided", "budget", "nothing left to measure", "going on"]


class Search:
    """The search for the changes between version 0 (good) and the last one (bad). Versions are 0 to `versions` - 1."""

    def __init__(
        self,
        versions: int,
        *,
        confidence: float = 0.95,
        budget: int | None = None,
        spread: int = SPREAD,
        margin: Callable[[float], float] = lambda _level: 0.0,
        seed: int = 1,
    ) -> None:
        """`confidence`: the probability at which it stops; `budget`: measurements at most; `spread`: no stretch
        without a measured version is longer than the range over this, when changes are named; `margin`: the largest
        difference from a level that is no change, in the metric's unit. InputError for fewer than two versions."""
        import numpy as np

        if versions < 2:
            raise InputError(f"{versions} versions: nothing to search between", remedy="name a good and a bad one")
        self.versions = versions
        self.confidence = confidence
        self.budget = budget
        self.spread = spread
        self.cost: Callable[[int], float] = lambda _version: 1.0
        """What a measurement of the version costs, in any unit: chosen is what tells most for its cost."""
        self.values: list[tuple[int, float]] = []
        self._margin = margin
        self._lost: set[int] = set()
        self._alive = np.arange(versions)
        self._random = np.random.default_rng(seed)
        self._posterior: Posterior | None = None
        self._kind: tuple[Kind, float] | None = None

    def measured(self, version: int, value: float) -> None:
        """A measurement has ended with this value of the metric."""
        self.values.append((version, value))
        self._posterior = self._kind = None

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
        if min(at_ends) < STARTS:
            return first if (at_ends[0], len(self.values) % 2) <= (at_ends[1], 0) else last
        drifts = self.posterior.drift[1] > 0
        since = next(back for back, (version, _) in enumerate(reversed(self.values)) if version in (first, last))
        if since + 1 >= (REFERENCE_EVERY_IN_DRIFT if drifts else REFERENCE_EVERY):
            return first
        return self._unseen_middle() if self._likeliest_kind()[1] >= self.confidence else self._most_informative()

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
        if min(self._at_ends()) < STARTS:
            return Answer("unknown", 0.0, (), len(self.values), stopped)
        now = self.posterior
        kind, probability = self._likeliest_kind()
        likeliest = next((one for one in now.hypotheses if _kind(one.gaps, creeps=one.creeps) == kind), now.likeliest)
        changes: tuple[Change, ...] = ()
        if kind == "creep":
            a, b = likeliest.gaps
            ends = Change(
                now.points[a], now.points[b], float(likeliest.levels[a]), float(likeliest.levels[b]), probability
            )
            changes = (ends,)
        elif kind == "changes":
            changes = tuple(
                Change(
                    now.points[gap] + 1,
                    now.points[gap + 1],
                    float(likeliest.levels[gap]),
                    float(likeliest.levels[gap + 1]),
                    now.in_gap(gap),
                )
                for gap in likeliest.gaps
            )
        return Answer(kind, probability, changes, len(self.values), stopped)

    def _likeliest_kind(self) -> tuple[Kind, float]:
        """The account with the highest probability: nothing, a creep, or the likeliest set of changes."""
        if self._kind is not None:
            return self._kind
        now = self.posterior
        margin = self.margin
        accounts: list[tuple[float, Kind]] = [(now.none(margin), "none")]
        accounts.append((now.creeping(margin), "creep"))
        for likeliest in [one for one in now.hypotheses if one.gaps and not one.creeps][:1]:
            # Beside further changes that are too small to count, it is the same account.
            accounts.append((now.account(likeliest.gaps, margin), "changes"))
        probability, kind = max(accounts)
        self._kind = kind, probability
        return self._kind

    @property
    def margin(self) -> float:
        """The largest difference that is no change, in the metric's unit, at the level of the good end."""
        return self._margin(float(self.posterior.hypotheses[0].levels[0]))

    def _stopped(self) -> Literal["decided", "budget", "nothing left to measure", "going on"]:
        first, last = self._ends()
        if first >= last:
            return "nothing left to measure"
        if self.budget is not None and len(self.values) >= self.budget:
            return "budget"
        if min(self._at_ends()) < STARTS:
            return "going on"
        kind, probability = self._likeliest_kind()
        if probability < self.confidence:
            return "going on"
        now = self.posterior
        if kind == "none" and len(now.points) < min(LOOKED_AT_FOR_NONE, len(self._alive)):
            return "going on"
        if kind == "changes":
            likeliest = next(one for one in now.hypotheses if one.gaps and not one.creeps)
            if any(len(self._inside(now.points[gap], now.points[gap + 1])) for gap in likeliest.gaps):
                return "going on"
            if self.spread and (unseen := self.unseen()) and unseen[1] - unseen[0] > self.versions / self.spread:
                return "going on"
        return "decided"

    def unseen(self) -> tuple[int, int] | None:
        """The measured versions around the longest stretch that has none and could have one: a change that is reversed
        within it is not seen. None where every version was measured."""
        points = self.posterior.points
        found = [(before, after) for before, after in pairwise(points) if len(self._inside(before, after))]
        return max(found, key=lambda ends: ends[1] - ends[0], default=None)

    def _ends(self) -> tuple[int, int]:
        """The oldest and the newest version that can be measured."""
        return (int(self._alive[0]), int(self._alive[-1])) if len(self._alive) else (0, 0)

    def _at_ends(self) -> list[int]:
        """How often each end was measured."""
        return [sum(version == end for version, _ in self.values) for end in self._ends()]

    def _inside(self, before: int, after: int) -> NDArray[np.intp]:
        """The versions strictly between two that can still be measured."""
        return self._alive[(self._alive > before) & (self._alive < after)]

    def _candidates(self) -> list[int]:
        now = self.posterior
        found = {*now.points} - self._lost
        creeps, none = now.creeps, now.none(self.margin)
        for gap, (before, after) in enumerate(zip(now.points[:-1], now.points[1:], strict=True)):
            inside = self._inside(before, after)
            holds = now.in_gap(gap) + creeps + none * (after - before) / self.versions
            if len(inside) and holds >= WORTH_A_LOOK:
                found |= {int(inside[(len(inside) * quarter) // 4]) for quarter in (1, 2, 3)}
        return sorted(found)

    def _unseen_middle(self) -> int:
        """The middle of the widest gap in which nothing was measured: of those that hold the named changes while one
        can be narrowed down, then of all."""
        now = self.posterior
        insides = [self._inside(*ends) for ends in pairwise(now.points)]
        if self._likeliest_kind()[0] == "changes":
            named = next(one.gaps for one in now.hypotheses if one.gaps and not one.creeps)
            insides = [insides[gap] for gap in named if len(insides[gap])] or insides
        widest = max(insides, key=len)
        return int(widest[len(widest) // 2])

    def _most_informative(self) -> int:
        import numpy as np

        now = self.posterior
        candidates = np.asarray(self._candidates())
        signal = self._levels(candidates).var(axis=0)
        noise = now.noise**2 or 1e-12 * float(signal.max() or 1.0)
        worth = np.log1p(signal / noise) / np.asarray([self.cost(int(version)) for version in candidates])
        return int(candidates[int(np.argmax(worth * (1 + 1e-3 * self._random.random(len(worth)))))])

    def _levels(self, candidates: NDArray[np.intp]) -> NDArray[np.float64]:
        """Levels of accounts drawn from the posterior, shape (SCENARIOS, candidates), in the metric's unit."""
        import numpy as np

        now = self.posterior
        points = np.asarray(now.points)
        share = np.asarray([one.probability for one in now.hypotheses])
        drawn = self._random.choice(len(share), SCENARIOS, p=share)
        before = np.searchsorted(points, candidates, side="right") - 1
        inside = points[before] != candidates
        levels = np.stack([one.levels for one in now.hypotheses])[drawn]
        out = levels[:, before]
        after = levels[:, np.minimum(before + 1, len(points) - 1)]
        low, high = points[before], points[np.minimum(before + 1, len(points) - 1)]
        position = np.where(inside, (candidates - low) / np.maximum(high - low, 1), 0.0)
        # One place for each gap and scenario, so that candidates of one gap agree on where its change is.
        at = self._random.random((SCENARIOS, len(points)))[:, before]
        creeping = np.asarray([one.creeps for one in now.hypotheses])[drawn][:, None]
        part = np.where(creeping, position, (at < position).astype(np.float64))
        return np.asarray(out + part * (after - out), dtype=np.float64)


def _kind(gaps: tuple[int, ...], *, creeps: bool) -> Kind:
    return "creep" if creeps else "changes" if gaps else "none"
