"""How far off predictions are, and whether that is what was aimed at.

Errors are compared as factors: half and twice the published figure are equally far off.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from statistics import fmean

from iolab.base.quantity import plain
from iolab.studies.reproduction.options import AimOptions
from iolab.studies.reproduction.tables import Cell

FACTOR_MAX = 1000.0
"""Further off is not distinguished: 0 would be infinitely far from any published figure."""
QUARTER = 1.25
"""A figure is close within a quarter, up or down on a log scale."""


@dataclass(frozen=True)
class ComparedCell:
    """A cell, never published as 0, with the model's value, in the table's unit."""

    cell: Cell
    simulated: float

    @property
    def error(self) -> float:
        """The relative error, a share: 0.1 is 10 % above the published figure."""
        return (self.simulated - self.cell.published) / self.cell.published

    @property
    def factor(self) -> float:
        """How far the two are apart: 1.1 is a tenth, up or down."""
        return factor(self.simulated, self.cell.published)

    @property
    def independent(self) -> bool:
        """Whether it is evidence of its own: a prediction that follows from no other cell."""
        return self.cell.role == "prediction" and not self.cell.follows


@dataclass(frozen=True)
class Claim:
    """A published figure or statement that a model aims at, and whether it is met."""

    text: str
    """What came out beside what was aimed at."""
    met: bool
    date: str | None = None
    """The day on which it was set; None: it is part of the publication."""


def mean_error(cells: Sequence[ComparedCell]) -> float | None:
    """Mean of the sizes of (simulated - published) / published; None of no cells."""
    return fmean(abs(one.error) for one in cells) if cells else None


def factor(value: float, published: float) -> float:
    """By how much two figures differ, at least 1 and at most `FACTOR_MAX`; neither is negative."""
    if value <= 0 or published <= 0:
        return FACTOR_MAX
    return min(max(value / published, published / value), FACTOR_MAX)


def typical_factor(factors: Sequence[float]) -> float | None:
    """The geometric mean of factors; None of none."""
    return math.exp(fmean(map(math.log, factors))) if factors else None


def within_factor(one: ComparedCell, factor: float) -> bool:
    """Whether simulated and published differ by at most this factor, up or down."""
    published = one.cell.published
    return one.simulated > 0 and max(one.simulated / published, published / one.simulated) <= factor


def claims(aim: AimOptions, cells: Sequence[ComparedCell], *, unanswered: int) -> Iterator[Claim]:
    """Each thing that `aim` asks of `cells`, all of them predictions, row by row. `unanswered`: how many more the model
    was asked for and has nothing to say of."""
    for text, met in _claims(aim, cells, unanswered):
        yield Claim(text, met, aim.date)


def _claims(aim: AimOptions, cells: Sequence[ComparedCell], unanswered: int) -> Iterator[tuple[str, bool]]:
    count = len(cells) + unanswered
    if aim.mean_error is not None:
        found = mean_error(cells)
        text = f"mean error {percent(found)}, aim at most {percent(aim.mean_error)}"
        yield text, found is not None and found <= aim.mean_error and not unanswered
    if aim.cell_error is not None:
        good = sum(abs(one.error) <= aim.cell_error for one in cells)
        yield _counted(good, count, f"cells within {percent(aim.cell_error)}", 1.0)
    if aim.factor is not None:
        good = sum(within_factor(one, aim.factor) for one in cells)
        yield _counted(good, count, f"cells within a factor of {aim.factor:g}", aim.factor_share)
    if aim.order_beyond is not None:
        pairs = list(_distinct_pairs(cells, aim.order_beyond))
        good = sum((a.simulated > b.simulated) == (a.cell.published > b.cell.published) for a, b in pairs)
        what = f"pairs of a row that differ by more than {percent(aim.order_beyond - 1)} in the published order"
        if pairs or unanswered:
            text, met = _counted(good, len(pairs), what, 1.0)
            yield text, met and not unanswered


def times(factor: float | None) -> str:
    """A factor of three digits, `1.08x`; `-` for None."""
    return "-" if factor is None else f"{plain(factor, 3)}x" if factor >= 1.995 else f"{factor:.2f}x"


def percent(share: float | None) -> str:
    """A share as a percentage of three digits; `-` for None."""
    return "-" if share is None else f"{share * 100:.3g} %"


def _counted(good: int, count: int, what: str, share: float) -> tuple[str, bool]:
    aim = "all" if share == 1 else percent(share)
    return f"{good} of {count} {what}, aim {aim}", count > 0 and good >= share * count


def _distinct_pairs(cells: Sequence[ComparedCell], beyond: float) -> Iterator[tuple[ComparedCell, ComparedCell]]:
    for _, row in groupby(cells, key=lambda one: one.cell.row):
        for one, other in combinations(row, 2):
            low, high = sorted((one.cell.published, other.cell.published))
            if high > low * beyond:
                yield one, other
