"""What fresh rounds make of the candidates: a winner, or the default."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iolab.domain.definition import GAINS, LOSSES
from iolab.domain.metric import describe

if TYPE_CHECKING:
    from iolab.domain.tune.space import Point
    from iolab.domain.tune.tuning import Tuning
    from iolab.domain.verdict.judgement import Judgement


@dataclass(frozen=True)
class ConfirmedCandidate:
    """A candidate on fresh rounds: the verdicts of its objectives, and of what is limited."""

    name: str
    point: Point
    objectives: tuple[Judgement, ...]
    limited: Mapping[str, Judgement]

    def beyond(self, tuning: Tuning) -> list[str]:
        """The limits that it is beyond, by the estimate."""
        return [
            key
            for key, judgement in self.limited.items()
            if (gain := _gain(judgement, key)) is not None and gain < -math.log1p(tuning.limits[key])
        ]

    def gains(self, tuning: Tuning) -> bool:
        """Whether one objective is better, none worse, and nothing beyond its limit."""
        verdicts = [judgement.verdict for judgement in self.objectives]
        return bool(GAINS & set(verdicts)) and not LOSSES & set(verdicts) and not self.beyond(tuning)


@dataclass(frozen=True)
class Answer:
    """`chosen`: names of the settings to take, the best first; none: keep the default. `fresh`: every candidate of the
    fresh rounds; none: no candidate looked better than the default, or the search is not over."""

    chosen: tuple[str, ...]
    fresh: Mapping[str, ConfirmedCandidate]


def answer(fresh: Mapping[str, ConfirmedCandidate], tuning: Tuning) -> Answer:
    """With one objective, the smaller setting, if it is the same as the winner within the margin, and then the winner;
    of several every one that gains."""
    chosen = [one for one in fresh.values() if one.gains(tuning)]
    if len(tuning.objectives) == 1 and len(chosen) == 2:
        key = tuning.objectives[0]
        winner, smaller = (_gain(one.objectives[0], key) or 0.0 for one in chosen)
        within = math.log1p(chosen[0].objectives[0].same_within)
        if winner - smaller <= within:
            chosen.reverse()
    return Answer(tuple(one.name for one in chosen), fresh)


def _gain(judgement: Judgement, key: str) -> float | None:
    """The logarithm of the ratio, higher is better."""
    if judgement.ratio is None:
        return None
    sign = 1 if describe(key).better == "higher" else -1
    return sign * math.log(judgement.ratio)
