"""Which metrics are evidence, and the two kinds of it, each with its own false-discovery rate over all that was
looked at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, cast

import numpy as np

from iolab.base.plain_text import counted
from iolab.base.strict_json import JsonObject
from iolab.domain.explain.correlation import ALPHA, FEWEST_ROUNDS, rank_correlations
from iolab.domain.explain.place import Arms
from iolab.domain.verdict.interval import p_value_of_differences
from iolab.domain.verdict.judgement import Judgement, control_false_discovery, judge, q_values

THROUGHPUT = frozenset(
    {
        *("rate_bytes_per_s", "rate_sum_bytes_per_s", "iops", "ops", "bytes", "elapsed_s", "measured_s"),
        *("files_per_s", "files_per_s_wall", "latency_ns_mean", "time_total_ns_mean"),
        *("bios_queued_per_s", "requests_issued_per_s", "page_in_bytes_per_s", "page_out_bytes_per_s"),
        "rpc_ops_per_s",
    }
)
"""Metrics that count the same work, or its time: of fixed work by a fixed number of jobs at a fixed depth each is a
function of the others (Little's law for the mean latency). They state a result in other words, and explain nothing."""

SUSPECTS = (
    *("time_in_device_ns_mean", "time_in_scheduler_ns_mean", "time_in_queue_ns_mean", "queue_depth_mean"),
    *("request_bytes_mean", "merged_percent", "merges_per_s", "seek_sectors_mean", "sequential_share"),
    *("context_switches_per_s", "context_switches_per_io", "machine_switches_per_s", "switch_stall_ns_mean"),
    *("wakeup_latency_ns_mean", "run_queue_delay_ns_mean", "cpu_busy_percent", "cpu_percent", "cpu_ns_per_io"),
    *("machine_cpu_ns_per_io", "page_cache_hit_share", "dirty_bytes_mean", "extents_per_file_mean"),
    *("rpc_rtt_ns_mean", "rpc_backlog_wait_ns_mean"),
)
"""What is asked about first: that one of these did not move rules an explanation out. In the order of the output."""


def name_of(key: str) -> str:
    """`random_read/read.iops` -> `iops`."""
    return key.rpartition("/")[2].rpartition(".")[2]


OFFSET_SHARE = 0.01
"""The share of the larger level that is added to both, so that a fall to zero is a movement by a finite factor
(101)."""

Movement = Literal["higher", "lower", "same", "undecided"]


@dataclass(frozen=True)
class SettingEvidence:
    """What the candidate setting does to a metric, compared within rounds like any result."""

    movement: Movement
    judgement: Judgement
    """The judgement of a neutral metric. Without a ratio, for instance because of a zero, p is that of the
    differences."""
    strength: float
    """As of `strength`, without a floor."""

    @property
    def moved(self) -> bool:
        """Whether the setting changed the metric beyond its margin, up or down."""
        return self.movement in ("higher", "lower")

    def as_dict(self) -> JsonObject:
        """The documented JSON: the movement, and the judgement's numbers without its verdict."""
        fields = self.judgement.as_dict()
        del fields["verdict"]
        return {"movement": self.movement, "strength": self.strength, **fields, "reason": self.judgement.reason}


@dataclass(frozen=True)
class ResultEvidence:
    """How a metric's movement goes with the result's, over rounds: in each both are candidate against baseline, so that
    what the setting does in all rounds alike has no part in it."""

    n: int
    """Rounds used."""
    rank_correlation: float | None
    """Spearman's; None, like p and q, if there is none."""
    p_value: float | None
    q_value: float | None
    reason: str | None
    """Why there is none."""

    @property
    def moves(self) -> bool:
        """Whether the correlation holds after correction for the number of metrics."""
        return self.q_value is not None and self.q_value <= ALPHA

    def as_dict(self) -> JsonObject:
        """The documented JSON: coefficient, p and q, or why there are none."""
        return {"moves": self.moves, **asdict(self)}


def strength(arms: Arms, floor: float = 0.0) -> float:
    """How strongly a metric moved, by its evidence: rank separation times relative size.

    The separation is Cliff's delta, the share of all pairs of a candidate's and a baseline's value in which the one is
    higher, less that in which it is lower: 1 without any overlap. The size is the logarithm of the ratio of the arms'
    medians, each with an offset of `OFFSET_SHARE` of the larger one (or the floor, if that is more): a metric that
    falls to zero moved by a factor of 101, and one that was next to nothing and still is has not moved.
    """
    x, y = arms.baseline[arms.present], arms.candidate[arms.present]
    if not len(x):
        return 0.0
    delta = float(np.sign(y[:, None] - x[None, :]).mean())
    before, after = abs(float(np.median(x))), abs(float(np.median(y)))
    offset = max(OFFSET_SHARE * max(before, after), floor)
    return abs(delta) * abs(math.log((after + offset) / (before + offset))) if offset > 0 else 0.0


def judge_setting(arms: Arms, same_within: float) -> Judgement:
    """What the setting does to the metric, on its own: `with_setting` adjusts it for how many are looked at."""
    judgement = judge(list(arms.baseline), list(arms.candidate), nature="neutral", same_within=same_within)
    if judgement.ratio is None and judgement.n >= 2:
        x, y = arms.baseline[arms.present], arms.candidate[arms.present]
        return replace(judgement, verdict="undecided", p_value=float(p_value_of_differences(x, y)))
    return judgement


def with_setting(looked_at: Sequence[tuple[Arms, Judgement]]) -> list[SettingEvidence]:
    """For each, whether the setting moved it. Without the results themselves: that they moved is known, and would make
    it easier for noise to seem to."""
    adjusted = control_false_discovery([judgement for _, judgement in looked_at])
    return [
        SettingEvidence(_movement(one, arms), one, strength(arms))
        for one, (arms, _) in zip(adjusted, looked_at, strict=True)
    ]


def with_result(pairs: Sequence[tuple[Arms, Mapping[str, Arms]]]) -> list[dict[str, ResultEvidence]]:
    """For each result, how each of its metrics goes with it."""
    found = [{key: _with_result(result, arms) for key, arms in metrics.items()} for result, metrics in pairs]
    flat = [(at, key, one.p_value) for at, of_result in enumerate(found) for key, one in of_result.items()]
    tested = [(at, key, p) for at, key, p in flat if p is not None]
    for (at, key, _), q in zip(tested, q_values([p for *_, p in tested]), strict=True):
        found[at][key] = replace(found[at][key], q_value=q)
    return found


def _with_result(result: Arms, metric: Arms) -> ResultEvidence:
    common = result.present & metric.present
    n = int(common.sum())
    if n < FEWEST_ROUNDS:
        return ResultEvidence(
            n, None, None, None, f"{counted(n, 'round has', 'rounds have')} both, it takes at least {FEWEST_ROUNDS}"
        )
    moves = Arms(metric.baseline[common], metric.candidate[common]).movements()
    of_result = Arms(result.baseline[common], result.candidate[common]).movements()
    rho, p = rank_correlations(of_result, moves[None, :])
    if np.isnan(rho[0]):
        return ResultEvidence(n, None, None, None, "it is the same in all rounds")
    return ResultEvidence(n, float(rho[0]), float(p[0]), None, None)


def _movement(judgement: Judgement, arms: Arms) -> Movement:
    if judgement.ratio is None:
        if judgement.q_value is None or judgement.q_value > ALPHA:
            return "undecided"
        return "higher" if (arms.candidate - arms.baseline)[arms.present].mean() > 0 else "lower"
    return cast(Movement, judgement.verdict)
