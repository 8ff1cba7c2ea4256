"""Conditions under which a change is refused: `instructions > +0.5 %`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from iolab.base.errors import InputError, unknown
from iolab.domain.cost.measure import MEASURES, ON_REQUEST
from iolab.domain.cost.path_cost import PathCost
from iolab.domain.cost.repeatable import REPEATABLE

_FORM = re.compile(
    r"\s*(?P<measure>[a-z_]+)\s*(?P<sign>[<>])\s*(?P<number>[+-]?\d+(?:\.\d+)?)\s*(?P<percent>%?)\s*", re.ASCII
)
EXAMPLE = 'such as "instructions > +0.5 %" or "allocations > 0"'


@dataclass(frozen=True)
class Gate:
    """A condition on the change of a measure."""

    text: str
    measure: str
    is_above: bool
    threshold: float
    """In percent of the base, or an amount per operation."""
    in_percent: bool

    def holds(self, path: PathCost) -> bool:
        """Whether the whole interval of the path's change lies beyond the threshold."""
        change = path.changes.get(self.measure)
        if change is None or change.half_width is None:
            return False
        if self.in_percent and not change.base:
            # A share of nothing: any amount is beyond each share.
            return change.low > 0 if self.is_above else change.high < 0
        limit = self.threshold / 100 * change.base if self.in_percent else self.threshold
        return change.low > limit if self.is_above else change.high < limit


def gate(text: str, *, memory: bool) -> Gate:
    """The condition. InputError: it is none, or of a measure that there is not, or that is not counted without
    `memory`."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise InputError(f"{text!r} is no condition", where="--fail-on", remedy=f"expected one {EXAMPLE}")
    name = found["measure"]
    if name not in (known := (*MEASURES, REPEATABLE)):
        raise InputError(f"{name}: {unknown('measure', name, known)}", where="--fail-on")
    if name in ON_REQUEST and not memory:
        raise InputError(f"{name}: can never hold, they are not counted", where="--fail-on", remedy="give --memory")
    return Gate(text.strip(), name, found["sign"] == ">", float(found["number"]), bool(found["percent"]))
