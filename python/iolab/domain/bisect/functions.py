"""Functions as evidence: one that steps once, exactly, in a history whose total is too noisy to show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from iolab.domain.bisect.rounds import without_rounds
from iolab.domain.symbols import Key, floor_of

EACH_SIDE_MIN = 3
"""A step has so many measurements on each side: two may be alike by chance."""


@dataclass(frozen=True)
class FunctionStep:
    """A function whose instructions per operation have one level before a change and another one after it."""

    symbol: str
    module: str
    before_version: int
    """The last measured version without the change."""
    version: int
    """The first measured version with it."""
    before: float
    after: float

    @property
    def change(self) -> float:
        """In instructions per operation."""
        return self.after - self.before


def steps_of_functions(measured: Sequence[tuple[int, int, Mapping[Key, float]]]) -> list[FunctionStep]:
    """The functions that step at a single place, further than they vary on either side and than layout moves them; by
    version, then the largest change first.

    Args:
        measured: version, round, and each function's instructions per operation.
    """
    versions, rounds = [version for version, *_ in measured], [turn for _, turn, _ in measured]
    points = sorted(set(versions))
    floor = floor_of(max((sum(functions.values()) for *_, functions in measured), default=0.0))
    found = []
    for key in {key for *_, functions in measured for key in functions}:
        values = [functions.get(key, 0.0) for *_, functions in measured]
        if max(values) - min(values) < floor:
            continue
        apart = _steps(points, versions, values, floor) or _steps(
            points, versions, without_rounds(versions, rounds, values), floor
        )
        if len(apart) == 1:
            ((gap, (before, after)),) = apart.items()
            found.append(FunctionStep(*key, *gap, before, after))
    return sorted(found, key=lambda one: (one.version, -abs(one.change), one.symbol))


def _steps(
    points: Sequence[int], versions: Sequence[int], values: Sequence[float], floor: float
) -> dict[tuple[int, int], tuple[float, float]]:
    """The levels before and after, by the neighbours between which the values step."""
    return {gap: step for gap in pairwise(points) if (step := _step(versions, values, gap[1], floor))}


def _step(versions: Sequence[int], values: Sequence[float], at: int, floor: float) -> tuple[float, float] | None:
    """The levels before the version and from it on, if they lie at least the floor apart."""
    before = [value for version, value in zip(versions, values, strict=True) if version < at]
    after = [value for version, value in zip(versions, values, strict=True) if version >= at]
    if min(len(before), len(after)) < EACH_SIDE_MIN:
        return None
    apart = max(min(after) - max(before), min(before) - max(after))
    spread = max(max(before) - min(before), max(after) - min(after))
    return (sum(before) / len(before), sum(after) / len(after)) if apart >= max(spread, floor) else None
