"""Many comparisons at once: keeping the share of false discoveries in check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iolab.domain.verdict.judgement import Judgement, rounds_to_decide


def control_false_discovery(judgements: Sequence[Judgement]) -> list[Judgement]:
    """The judgements with their q-values; a difference whose q exceeds the interval's alpha becomes *undecided*.

    Benjamini and Hochberg's step-up (J. R. Stat. Soc. B 57, 1995): among the differences that are claimed, at most a
    share alpha is false on average, also for metrics that move together. Judgements without a p-value don't count.
    """
    counted = [index for index, one in enumerate(judgements) if one.p_value is not None]
    adjusted = list(judgements)
    found = q_values([one.p_value for one in judgements if one.p_value is not None])
    for index, q in zip(counted, found, strict=True):
        adjusted[index] = with_q_value(judgements[index], q)
    return adjusted


def q_values(p_values: Sequence[float]) -> list[float]:
    """Each p-value adjusted for their number (Benjamini and Hochberg), in the same order."""
    ranked = sorted((p, index) for index, p in enumerate(p_values))
    adjusted = [1.0] * len(ranked)
    q = 1.0
    for rank in range(len(ranked), 0, -1):
        p, index = ranked[rank - 1]
        q = min(q, p * len(ranked) / rank)
        adjusted[index] = q
    return adjusted


def with_q_value(judgement: Judgement, q: float) -> Judgement:
    """The judgement after adjusting its p-value for the number of comparisons."""
    held = replace(judgement, q_value=q)
    claimed = judgement.verdict in ("faster", "slower")
    if not claimed or q <= judgement.alpha:
        return held
    ratio, low, high, p = judgement.ratio, judgement.ci_low, judgement.ci_high, judgement.p_value
    assert ratio is not None and low is not None and high is not None and p is not None, "claimed without an interval"
    more = rounds_to_decide(
        ratio, low, high, judgement.n, judgement.same_within, judgement.alpha, alpha_difference=judgement.alpha * p / q
    )
    return replace(held, verdict="undecided", rounds_to_decide=more)
