"""What came of asking a claim at one place, and whether it agrees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from iolab.domain.comparison import Comparison
from iolab.domain.cost.measure import Change
from iolab.domain.cost.path_cost import SAME_WITHIN, PathCost
from iolab.domain.definition import DIFFERENCES, Nature

Direction = Literal["more", "less", "same"]
Answer = Literal["agrees", "disagrees", "undecided", "not measured"]
State = Literal["agrees", "disagrees", "mixed", "undecided", "stated"]
SAME_AMOUNT = 0.01
"""Amounts other than instructions are the same if they differ by less per operation: reports of the suite leave such
differences out."""


class Finding(BaseModel):
    """One ask's answer. Shares are of the baseline's value; `low` and `high` are the ends of their 95 % interval."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ask: str
    by: str
    effect: str
    expected: Direction
    answer: Answer
    what: str
    """What was compared, in words: the measure, the experiment, the two sides."""
    baseline: float | None = None
    candidate: float | None = None
    share: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    confounded: str | None = None
    """What else differs between the two sides."""
    reason: str | None = None
    """Why nothing was measured, or why it is undecided."""
    date: str
    """The day on which it was asked."""
    iolab: str


class Findings(BaseModel):
    """All answers to a claim, as their file has them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    claim: str
    findings: list[Finding]


def state_of(findings: Sequence[Finding]) -> State:
    """All answers in a word; one that was not measured says nothing."""
    answers = {one.answer for one in findings} - {"not measured"}
    if not answers:
        return "stated"
    if {"agrees", "disagrees"} <= answers:
        return "mixed"
    decided = answers - {"undecided"}
    return "undecided" if not decided else "agrees" if "agrees" in decided else "disagrees"


def is_confounded(findings: Sequence[Finding]) -> bool:
    """Whether all that agrees or disagrees rests on sides that differ in more than what is claimed."""
    decided = [one for one in findings if one.answer in ("agrees", "disagrees")]
    return bool(decided) and all(one.confounded is not None for one in decided)


def answer_of_path(path: PathCost, measure: str, expected: Direction) -> Answer:
    """The answer of a path's measure. The kernel's instructions have the suite's own verdict, which leaves out what the
    layout of the kernel's text makes; other measures differ if their interval leaves out 0."""
    if path.why or measure not in path.changes:
        return "not measured"
    if measure == "kernel":
        if path.outcome in ("unclear", "not measured"):
            return "undecided"
        return "agrees" if path.outcome == expected else "disagrees"
    return answer_of_change(path.changes[measure], expected)


def answer_of_change(change: Change, expected: Direction) -> Answer:
    """The answer of an amount per operation with its interval."""
    margin = max(SAME_AMOUNT, SAME_WITHIN * abs(change.base))
    if -margin <= change.low and change.high <= margin:
        return "agrees" if expected == "same" else "disagrees"
    if not change.differs:
        return "undecided"
    return "agrees" if expected == ("more" if change.difference > 0 else "less") else "disagrees"


def answer_of_comparison(comparison: Comparison, expected: Direction) -> Answer:
    """The answer of a metric under two settings."""
    if comparison.judgement.reason is not None:
        return "not measured"
    verdict = comparison.judgement.verdict
    if verdict == "undecided":
        return "undecided"
    return "agrees" if verdict == verdict_of(expected, comparison.nature) else "disagrees"


def verdict_of(expected: Direction, nature: Nature) -> str:
    """What a setting is called whose metric of this nature changes so."""
    higher, lower = DIFFERENCES[nature]
    return {"more": higher, "less": lower, "same": "same"}[expected]
