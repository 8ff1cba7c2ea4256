"""What moved together with each result, the strongest evidence first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from iolab.base.strict_json import JsonObject
from iolab.domain.explain.correlation import rounds_needed
from iolab.domain.explain.evidence import (
    SUSPECTS,
    THROUGHPUT,
    ResultEvidence,
    SettingEvidence,
    judge_setting,
    name_of,
    with_result,
    with_setting,
)
from iolab.domain.explain.place import Arms, Name, arms_of, functions_of_each_other, nearly_equal_or_inverse

if TYPE_CHECKING:
    import polars as pl

    from iolab.domain.comparison import Comparison
    from iolab.domain.verdict.judgement import Judgement

Kind = Literal["both", "setting", "result", "contrary", "neither"]
RANKS: tuple[Kind, ...] = ("both", "setting", "result", "contrary", "neither")
"""Strongest first. Contrary: by both kinds of evidence, but the one's direction denies the other's."""

UNEXPLAINED_MAX = 0.05
"""The share of the variance of a result's logarithms that another measure of the throughput may leave, and be the
same."""


@dataclass(frozen=True)
class Finding:
    """What is known of one metric beside a result."""

    metric: str
    likewise: list[str]
    """Metrics that are functions of it: they have the same evidence."""
    with_setting: SettingEvidence
    with_result: ResultEvidence
    kind: Kind

    @property
    def strength(self) -> tuple[int, float, float]:
        """Sorts the strongest first: by kind, by how strictly it goes with the result, by how strongly it moved."""
        rank = abs(self.with_result.rank_correlation or 0.0) if self.with_result.moves else 0.0
        return (RANKS.index(self.kind), -rank, -self.with_setting.strength)

    def as_dict(self) -> JsonObject:
        """The documented JSON of a finding, its two kinds of evidence included."""
        return {
            "metric": self.metric,
            "likewise": self.likewise,
            "kind": self.kind,
            "with_setting": self.with_setting.as_dict(),
            "with_result": self.with_result.as_dict(),
        }


@dataclass(frozen=True)
class Explanation:
    """One result, with what moved together with it and what did not."""

    result: Comparison
    why_not: str | None
    """Why nothing is to be explained; the rest is empty then."""
    looked_at: list[Finding]
    """Every metric that could be looked at, the strongest evidence first."""
    same_measure: list[str]
    """Metrics that state the same as the result in other words."""
    constant: list[str]
    """Those with one value in all trials: they can't explain a difference."""
    absent: list[str]
    """Those without two rounds that have both settings."""

    @property
    def findings(self) -> list[Finding]:
        """The metrics that moved, with the setting or with the result, in the order of `looked_at`."""
        return [one for one in self.looked_at if one.kind != "neither"]

    @property
    def did_not_move(self) -> list[Finding]:
        """What is the same under both settings, and does not go with the result: the usual suspects first."""
        same = [one for one in self.looked_at if one.kind == "neither" and one.with_setting.movement == "same"]
        return sorted(same, key=lambda one: suspicion(one.metric))

    @property
    def rounds_needed(self) -> int:
        """The number of rounds from which a single metric can be shown to move with the result."""
        return rounds_needed(len(self.looked_at))

    def as_dict(self) -> JsonObject:
        """One JSON object; docs/why.md explains what is in it."""
        parts = {"result": self.result.as_dict(), "looked_at": [one.as_dict() for one in self.looked_at]}
        return {**vars(self), **parts, "rounds_needed": self.rounds_needed}


def explain(frame: pl.DataFrame, results: Sequence[Comparison]) -> list[Explanation]:
    """What moved together with each of the results.

    Args:
        frame: a row per (workload, setting, round), columns of these names and one per metric, in any unit; null or NaN
            if a number is absent. `workload` may be missing.
        results: verdicts on metrics of the frame. Only what differs is explained.
    """
    places = {_place(one): _Measures(arms_of(frame, _place(one))) for one in results if one.judgement.differs}
    listed: list[Comparison] = []
    why: list[str | None] = []
    for one in results:
        why.append(_why_not(one, listed, places))
        if why[-1] is None:
            listed.append(one)
    candidates = [_candidates(places[_place(one)], one.metric) for one in listed]
    margins = [one.judgement.same_within for one in listed]
    judged = [
        (arms, places[_place(one)].judged(first, margin))
        for one, margin, (_, metrics) in zip(listed, margins, candidates, strict=True)
        for first, arms in metrics.items()
    ]
    settings = iter(with_setting(judged))
    evidence = iter(
        {first: (next(settings), found) for first, found in of_result.items()} for of_result in with_result(candidates)
    )
    return [
        _nothing(one, reason) if reason else _explained(one, places[_place(one)], next(evidence))
        for one, reason in zip(results, why, strict=True)
    ]


def suspicion(key: str) -> int:
    """The place among the usual suspects; after all of them, if it is none."""
    name = name_of(key)
    return SUSPECTS.index(name) if name in SUSPECTS else len(SUSPECTS)


class _Measures:
    """The metrics of one place, those that are functions of each other together."""

    def __init__(self, arms: dict[str, Arms]) -> None:
        self.arms = arms
        self.absent = [key for key, one in arms.items() if one.present.sum() < 2]
        self.constant = [key for key, one in arms.items() if key not in set(self.absent) and one.is_constant]
        left_out = {*self.absent, *self.constant}
        # Those of a phase as a whole first: a single operation's are the ones that say the same again.
        varying = sorted((key for key in arms if key not in left_out), key=lambda key: "." in key.rpartition("/")[2])
        self.groups: dict[str, list[str]] = {}
        self._judged: dict[str, Judgement] = {}
        for key in varying:
            first = next((one for one in self.groups if functions_of_each_other(arms[one], arms[key])), None)
            self.groups.setdefault(first or key, []).append(key)

    def judged(self, first: str, same_within: float) -> Judgement:
        """What the setting does to a group, made once however many results it is looked at for."""
        if first not in self._judged:
            self._judged[first] = judge_setting(self.arms[first], same_within)
        return self._judged[first]

    def same_as(self, key: str) -> list[str]:
        """The firsts of the groups that state the same as `key`."""
        result = self.arms[key]
        return [
            first
            for first, members in self.groups.items()
            if key in members
            or (
                {name_of(key)} & THROUGHPUT
                and any(name_of(one) in THROUGHPUT for one in members)
                and nearly_equal_or_inverse(result, self.arms[first], UNEXPLAINED_MAX)
            )
        ]


def _place(result: Comparison) -> Name:
    return (result.workload, result.against, result.setting)


def _why_not(result: Comparison, listed: Sequence[Comparison], places: dict[Name, _Measures]) -> str | None:
    verdict = result.judgement.verdict
    if verdict == "same":
        return "it is the same under both"
    if verdict == "undecided":
        return "it is undecided whether there is a difference"
    place = places[_place(result)]
    same = place.same_as(result.metric)
    for other in listed:
        if _place(other) == _place(result) and set(same) & set(place.same_as(other.metric)):
            return f"it states the same as {other.metric}"
    return None


def _candidates(place: _Measures, result: str) -> tuple[Arms, dict[str, Arms]]:
    same = set(place.same_as(result))
    return place.arms[result], {first: place.arms[first] for first in place.groups if first not in same}


def _explained(
    result: Comparison, place: _Measures, evidence: dict[str, tuple[SettingEvidence, ResultEvidence]]
) -> Explanation:
    looked_at = [_finding(result, place.groups[first], *found) for first, found in evidence.items()]
    same = [key for first in place.same_as(result.metric) for key in place.groups[first] if key != result.metric]
    return Explanation(
        result, None, sorted(looked_at, key=lambda one: one.strength), same, place.constant, place.absent
    )


def _finding(result: Comparison, group: list[str], setting: SettingEvidence, found: ResultEvidence) -> Finding:
    kind: Kind = "neither"
    if setting.moved and found.moves:
        kind = "both" if _is_consistent(result, setting, found) else "contrary"
    elif setting.moved:
        kind = "setting"
    elif found.moves:
        kind = "result"
    return Finding(group[0], group[1:], setting, found, kind)


def _is_consistent(result: Comparison, setting: SettingEvidence, found: ResultEvidence) -> bool:
    """Whether the metric goes with the result, within settings, in the direction in which the setting moved both."""
    together = ((result.judgement.ratio or 1) > 1) == (setting.movement == "higher")
    return together == ((found.rank_correlation or 0) > 0)


def _nothing(result: Comparison, why_not: str) -> Explanation:
    return Explanation(result, why_not, [], [], [], [])
