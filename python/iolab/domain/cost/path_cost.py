"""What a path costs under two kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from iolab.base.strict_json import JsonObject
from iolab.domain.cost.measure import MEASURES, Change, change_of
from iolab.domain.cost.repeatable import CERTAIN_FROM, REPEATABLE, repeatable_change
from iolab.domain.cost.unseen import Circumstances, unseen
from iolab.domain.phase_record import InstructionsObservation
from iolab.domain.symbol_changes import compared
from iolab.domain.symbols import USER, Difference, floor_of

Outcome = Literal["more", "less", "same", "unclear", "not measured"]
SAME_WITHIN = 1e-3
"""A path is the same if the whole interval lies within this share of the base: a tenth of a percent."""


@dataclass(frozen=True)
class PathCost:
    """A path's counts under base and tip. `why` is empty if both were measured. `is_broken`: the base was, and the
    tip could not be."""

    name: str
    title: str
    rounds: int = 0
    changes: dict[str, Change] = field(default_factory=dict)
    """By the name of the measure."""
    functions: list[Difference] = field(default_factory=list)
    """The kernel's that differ for certain, the largest change first."""
    unseen: list[str] = field(default_factory=list)
    why: str = ""
    is_broken: bool = False

    @property
    def outcome(self) -> Outcome:
        """The verdict about the kernel's instructions. More and less: the interval leaves out 0, the change is above
        what the layout of the kernel's text makes, and a function is named that changed."""
        if self.why:
            return "not measured"
        of_kernel = self.changes["kernel"]
        floor = floor_of(of_kernel.base)
        if of_kernel.differs and abs(of_kernel.difference) >= floor and self.functions:
            return "more" if of_kernel.difference > 0 else "less"
        margin = max(floor, SAME_WITHIN * of_kernel.base)
        return "same" if -margin <= of_kernel.low and of_kernel.high <= margin else "unclear"

    @property
    def of_repeatable(self) -> Literal["more", "less", "same"] | None:
        """What is certain of the functions whose counts repeat, if nothing is of the path. The same: none changed."""
        change = self.changes.get(REPEATABLE)
        if change is None or self.outcome not in ("same", "unclear"):
            return None
        if self.outcome == "unclear" and change.base == change.tip == 0:
            return "same"
        if not change.differs or abs(change.difference) < CERTAIN_FROM:
            return None
        return "more" if change.difference > 0 else "less"

    def as_dict(self) -> JsonObject:
        """As JSON has it; a function has `symbol`, `module`, `base`, `tip` and `change`."""
        return {
            "path": self.name,
            "title": self.title,
            "outcome": self.outcome,
            "of_repeatable": self.of_repeatable,
            "rounds": self.rounds,
            "per_operation": {name: change.as_dict() for name, change in self.changes.items()},
            "functions": [
                {
                    "symbol": one.symbol,
                    "module": one.module,
                    "base": one.baseline,
                    "tip": one.candidate,
                    "change": one.change,
                }
                for one in self.functions
            ],
            "not_seen": self.unseen,
            "why": self.why or None,
            "broken": self.is_broken,
        }


def path_cost(
    name: str,
    title: str,
    how: Circumstances,
    base: Sequence[InstructionsObservation],
    tip: Sequence[InstructionsObservation],
) -> PathCost:
    """The cost of a path whose rounds were counted under both kernels, paired by index."""
    measured = {key: change for key, one in MEASURES.items() if (change := change_of(one, base, tip)) is not None}
    if "kernel" not in measured:
        return PathCost(name, title, why="no operation completed")
    if (of_repeatable := repeatable_change(base, tip)) is not None:
        measured[REPEATABLE] = of_repeatable
    functions = [one for one in compared(base, tip) if one.is_named and one.symbol != USER]
    return PathCost(name, title, len(base), measured, functions, unseen(how, base, tip, functions))
