"""Pairs of settings of runs, judged together, each workload with its own metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iolab.compare import Comparison

Numbers = list[float | None]
"""A value per round, None where it is absent."""


@dataclass(frozen=True)
class Pair:
    """Two settings' values of one metric on one workload, paired by index."""

    workload: str
    metric: str
    """The metric's key."""
    baseline: str
    candidate: str
    baseline_values: Numbers
    candidate_values: Numbers

    @property
    def unpaired_rounds(self) -> int:
        return sum((ours is None) != (theirs is None) for ours, theirs in self._rounds)

    @property
    def _rounds(self) -> list[tuple[float | None, float | None]]:
        return list(zip(self.baseline_values, self.candidate_values, strict=True))


def compare_pairs(pairs: Sequence[Pair], *, same_within: float, max_rounds: int | None = None) -> list[Comparison]:
    """A verdict for each pair, with the false-discovery rate over all of them controlled.

    `max_rounds`: the most rounds of a run that could stop at any round; its verdicts hold wherever it stopped.
    """
    from iolab.compare import Comparison, direction
    from iolab.verdict import control_false_discovery, judge, judge_sequential

    ways = [direction(pair.metric) for pair in pairs]
    judge_pair = judge
    if max_rounds is not None:
        judge_pair = partial(judge_sequential, max_rounds=max_rounds, comparisons=len(pairs))
    judgements = [
        judge_pair(pair.baseline_values, pair.candidate_values, better=way, same_within=same_within)
        for pair, way in zip(pairs, ways, strict=True)
    ]
    if max_rounds is None:
        judgements = control_false_discovery(judgements)
    return [
        Comparison(pair.metric, pair.workload, pair.candidate, pair.baseline, judgement, way, pair.unpaired_rounds)
        for pair, judgement, way in zip(pairs, judgements, ways, strict=True)
    ]
