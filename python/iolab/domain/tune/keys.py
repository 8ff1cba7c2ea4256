"""Which of the winner's keys matter, and the smallest setting that keeps nearly all of the gain.

Trials of mixtures: half of the keys as the winner has them, the others left as the default has them
(`iolab.domain.attribute`, which states what matters). What is lost without a key is estimated as a candidate's gain is
(`iolab.domain.tune.estimate`). Keys that mean something only beside another go with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from iolab.domain.attribute.design import mixtures
from iolab.domain.attribute.judgement import Attribution, attribute
from iolab.domain.tune.estimate import Estimate
from iolab.domain.tune.space import Parameter, Point, Space

KEPT = 0.95
"""Share of the gain that the smaller setting keeps."""
LOST_MOST = 0.01
"""What it may lose, in the logarithm: of a large gain, the share above is much."""
KEPT_SD = 1.0
"""The share is judged by the estimate less so many standard deviations."""
SURE = 0.95


@dataclass
class Reduction:
    """The mixtures' trials of one winner, and what they say."""

    space: Space
    winner: Point
    rounds: int = 0
    _values: list[tuple[int, tuple[bool, ...], float]] = field(default_factory=list)
    _found: Attribution | None = None

    @property
    def factors(self) -> list[tuple[str, ...]]:
        """The winner's keys, those together that go together."""
        found = [tuple(key for key in keys if key in self.winner) for keys in self.space.factors()]
        return [keys for keys in found if keys]

    @property
    def rows(self) -> list[tuple[bool, ...]]:
        """Which factors of each mixture are the winner's; the default is measured beside them."""
        return [row for row in mixtures(len(self.factors)) if any(row)]

    @property
    def points(self) -> tuple[Point, ...]:
        """The mixtures to measure in a round, beside the default."""
        return tuple(self.mixture(row) for row in self.rows)

    def mixture(self, row: Sequence[bool]) -> dict[str, int]:
        """The winner's values of the factors that are on; the rest is left alone."""
        keys = {key for factor, on in zip(self.factors, row, strict=True) if on for key in factor}
        return {key: place for key, place in self.winner.items() if key in keys}

    @property
    def worthwhile(self) -> bool:
        """Whether there is anything to leave out."""
        return len(self.factors) >= 2

    def measured(self, values: Sequence[float | None]) -> None:
        """A round: the default's value first, then each mixture's, as logarithms."""
        sides = [(False,) * len(self.factors), *self.rows]
        for row, value in zip(sides, values, strict=True):
            if value is not None:
                self._values.append((self.rounds, row, value))
        self.rounds += 1
        self._found = None

    @property
    def attribution(self) -> Attribution | None:
        """Which factors matter, and how much, in the logarithm; None before enough is measured."""
        if self._found is None and len({row for _, row, _ in self._values}) > len(self.factors):
            blocks, sides, values = zip(*self._values, strict=True)
            self._found = attribute(sides, values, blocks)
        return self._found

    @property
    def sure(self) -> bool:
        """Whether the likeliest set of keys is likely enough."""
        found = self.attribution
        return found is not None and found.probability >= SURE

    @property
    def minimal(self) -> Point | None:
        """The winner without the factors that, left out one after the other, cost the least, while `KEPT` of the gain
        is kept and no more than `LOST_MOST` lost; None if nothing can be left out, or nothing is gained."""
        if self._found is None and self.attribution is None:
            return None
        switches = [Parameter(str(place), (False, True), ordered=False) for place in range(len(self.factors))]
        rows = list(dict.fromkeys(row for _, row, _ in self._values))
        points = [_switched(row) for row in rows]
        trials = [(block, rows.index(row), value) for block, row, value in self._values]
        # Half of a winner's keys may do nothing, so none lends another its size.
        estimate = Estimate(Space(tuple(switches)), points, trials, prior_freedom=0.0)

        off, on = _switched((False,) * len(switches)), _switched((True,) * len(switches))
        whole = float(estimate.differences([on], off)[0][0])
        now = (True,) * len(switches)
        while sum(now) > 1:
            shorter = [tuple(on and at != place for at, on in enumerate(now)) for place, on in enumerate(now) if on]
            means, errors = estimate.differences([_switched(row) for row in shorter], on)
            kept, best = max(zip((whole + means - KEPT_SD * errors).tolist(), shorter, strict=True))
            if kept < max(KEPT * whole, whole - LOST_MOST):
                break
            now = best
        return None if all(now) or whole <= 0 else self.mixture(now)


def _switched(row: Sequence[bool]) -> dict[str, int]:
    return {str(place): int(on) for place, on in enumerate(row)}
