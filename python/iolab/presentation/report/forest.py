"""The forest plot of a page's first screen: a line per ratio with its interval, drawn without a script."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iolab.base.quantity import MULTIPLE_FROM
from iolab.domain.comparison import Comparison
from iolab.domain.definition import NO_DIFFERENCE
from iolab.presentation.table.words import change_with_interval, label, verdict_with_rounds

ROWS_MAX = 10
"""Lines that the first screen has room for: those that lead, then those that differ most."""
REACH_MIN, REACH_MAX = math.log(1.1), math.log(64)
"""How far the axis reaches to either side of 1; what lies beyond ends at its edge."""
TICKS = (1 / 16, 1 / 4, 1 / 2, 0.8, 0.95, 1.0, 1.05, 1.25, 2.0, 4.0, 16.0)
TICKS_APART = 12.0
"""In percent of the width."""


@dataclass(frozen=True)
class Line:
    """A ratio; places are percentages of the plot's width."""

    what: str
    verdict: str
    verdict_text: str
    change: str
    low: float
    at: float
    high: float


@dataclass(frozen=True)
class Forest:
    """The plot: `ticks` by place, and how many comparisons have no line here."""

    lines: list[Line]
    ticks: list[tuple[float, str]]
    same_from: float
    same_to: float
    left_out: int


def forest(comparisons: Sequence[Comparison]) -> Forest | None:
    """None if no comparison has a ratio."""
    known = [one for one in comparisons if one.judgement.ratio is not None]
    if not known:
        return None
    chosen = sorted(known, key=_importance, reverse=True)[:ROWS_MAX]
    shown = [one for one in known if one in chosen]
    far = max(abs(math.log(end or 1)) for one in shown for end in (one.judgement.ci_low, one.judgement.ci_high))
    reach = min(max(1.1 * far, REACH_MIN), REACH_MAX)

    def place(ratio: float | None) -> float:
        return round(50 + 50 * max(-1.0, min(1.0, math.log(ratio or 1) / reach)), 2)

    margin = 1 + shown[0].judgement.same_within
    return Forest(
        [_line(one, place) for one in shown],
        _ticks(reach, place(1.0), {ratio: place(ratio) for ratio in TICKS}),
        place(1 / margin),
        place(margin),
        len(comparisons) - len(shown),
    )


def _importance(one: Comparison) -> tuple[bool, bool, float]:
    judgement = one.judgement
    return one.leads, judgement.verdict not in NO_DIFFERENCE, abs(math.log(judgement.ratio or 1))


def _line(one: Comparison, place: Callable[[float | None], float]) -> Line:
    judgement = one.judgement
    where = f", {one.place}" if one.place else ""
    return Line(
        f"{one.setting}: {label(one.metric)}{where}",
        judgement.verdict,
        verdict_with_rounds(judgement),
        change_with_interval(judgement) or "",
        place(judgement.ci_low),
        place(judgement.ratio),
        place(judgement.ci_high),
    )


def _ticks(reach: float, middle: float, places: dict[float, float]) -> list[tuple[float, str]]:
    """The middle first, then outwards, as many as have room."""
    kept = [(middle, "0 %")]
    for ratio in sorted(places, key=lambda one: abs(math.log(one))):
        at = places[ratio]
        inside = abs(math.log(ratio)) < 0.95 * reach
        if inside and all(abs(at - other) >= TICKS_APART for other, _ in kept):
            kept.append((at, f"{ratio:g}x" if ratio >= MULTIPLE_FROM else f"{100 * (ratio - 1):+.3g} %"))
    return sorted(kept)
