"""The stopping rule of `--until-decided`: look after every round, and still err in at most 5 % of runs.

Intervals that hold at all looks together: each look's level comes from a boundary c (n / N)^(shape - 1/2) that a random
walk crosses anywhere between the first look and round N with probability alpha (Wang and Tsiatis, Biometrics 43, 1987);
the interval at that level is the same as `judge`'s. So it doesn't matter when, or why, one stops. Several comparisons
share alpha equally (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iolab.base.errors import InputError
from iolab.domain.definition import Nature
from iolab.domain.verdict.doubt import few_rounds
from iolab.domain.verdict.judgement import AMONG, Judgement, judge_at
from iolab.domain.verdict.looks import FIRST_LOOK, nominal_level, overall_p_value


def judge_sequential(
    baseline: Sequence[float | None],
    candidate: Sequence[float | None],
    *,
    nature: Nature,
    max_rounds: int,
    same_within: float = 0.02,
    comparisons: int = 1,
    confidence: float = 0.95,
) -> Judgement:
    """The verdict of `judge`, valid at every look: call it after each round, stop when it is decided or at
    `max_rounds`.

    `max_rounds` and `comparisons` (metrics x workloads x candidate settings that share the promise) are fixed before
    the first round. Before `FIRST_LOOK` rounds nothing is decided. `p_value` holds at any stopping time; `q_value` is
    that times `comparisons`. Raises InputError as `judge` does, and for numbers of rounds or comparisons out of range.
    """
    if max_rounds < FIRST_LOOK:
        raise InputError(f"max_rounds is {max_rounds}, expected at least {FIRST_LOOK}")
    if comparisons < 1:
        raise InputError(f"comparisons is {comparisons}, expected at least 1")
    alpha = (1 - confidence) / comparisons
    rounds = min(sum(_is_number(x) and _is_number(y) for x, y in zip(baseline, candidate, strict=False)), max_rounds)
    level = nominal_level(max(rounds, FIRST_LOOK), max_rounds, alpha)
    judgement = judge_at(level, baseline, candidate, nature=nature, same_within=same_within, is_look=True)
    if judgement.p_value is None:
        return judgement
    p = overall_p_value(judgement.p_value, max(rounds, FIRST_LOOK), max_rounds)
    judgement = replace(judgement, p_value=p)
    if judgement.verdict == "undecided" and p <= 1 - confidence:
        judgement = replace(judgement, why=AMONG.format(comparisons))
    if rounds < FIRST_LOOK:
        why = few_rounds(rounds)
        return replace(judgement, verdict="undecided", why=why, rounds_to_decide=FIRST_LOOK - rounds, q_value=1.0)
    return replace(judgement, q_value=min(1.0, p * comparisons))


def _is_number(value: float | None) -> bool:
    return value is not None and value == value
