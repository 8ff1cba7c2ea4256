"""Numbers with their units, as people read them: one scale for a whole row, so that its cells compare at a glance."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

ABSENT = "-"

_STEPS: dict[str, list[tuple[float, str]]] = {
    "bytes/s": [(2**30, "GiB/s"), (2**20, "MiB/s"), (2**10, "KiB/s"), (1, "B/s")],
    "bytes": [(2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")],
    "ns": [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns")],
    "1/s": [(1e6, "M/s"), (1e3, "k/s"), (1, "/s")],
    "count": [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1, "")],
    "percent": [(1, "%")],
    "share": [(1, "")],
}

_SIGNIFICANT_DIGITS = 4
CHANGE_SHOWN_MAX_PERCENT = 9999


@dataclass(frozen=True)
class Scale:
    """How a row's values are shown: divided by `divisor`, followed by `suffix`."""

    divisor: float
    suffix: str
    decimals: int

    def number(self, value: float | None) -> str:
        if value is None or not math.isfinite(value):
            return ABSENT
        return f"{value / self.divisor:.{self.decimals}f}"

    def with_unit(self, value: float | None) -> str:
        number = self.number(value)
        return number if number == ABSENT or not self.suffix else f"{number}{_gap(self.suffix)}{self.suffix}"

    def with_spread(self, value: float | None, spread: float | None) -> str:
        """`183.4 ± 2.1`: the typical value and its spread, without the unit."""
        if value is None or spread is None or not math.isfinite(spread):
            return self.number(value)
        return f"{self.number(value)} ± {self.number(spread)}"


def scale_for(unit: str, values: Iterable[float | None]) -> Scale:
    """The scale that suits the largest of `values`, all given in `unit` (a metric's unit, as the registry has it)."""
    largest = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)
    steps = _STEPS.get(unit, [(1, unit)])
    divisor, suffix = next(((step, name) for step, name in steps if largest >= step), steps[-1])
    digits_before_point = math.floor(math.log10(largest / divisor)) + 1 if largest else 1
    return Scale(divisor, suffix, decimals=min(6, max(0, _SIGNIFICANT_DIGITS - digits_before_point)))


def change_percent(ratio: float) -> str:
    """`+3.1 %` for a ratio of 1.031; fewer decimals for what is more than twice as much."""
    percent = (ratio - 1) * 100
    if percent > CHANGE_SHOWN_MAX_PERCENT:
        return f">{CHANGE_SHOWN_MAX_PERCENT} %"
    return f"{percent:+.{1 if percent < 100 else 0}f} %"


def _gap(suffix: str) -> str:
    return "" if suffix in ("%", "k", "M", "G") else " "
