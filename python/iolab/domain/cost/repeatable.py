"""What changed in those functions of the kernel whose counts repeat from boot to boot.

Where workers of a filesystem run and which pages are free differs between two boots of one kernel, and moves a create
on btrfs by some hundred instructions. Functions that each operation runs, such as those that look up its name, have the
same count in every boot, and most others the same in every call. The sum of those that changed shows what a patch does
to them, whatever the others do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iolab.domain.cost.measure import Change, paired_change
from iolab.domain.phase_record import InstructionsObservation
from iolab.domain.symbols import USER, calls_per_operation, depends_on_slab_page, per_operation

REPEATABLE = "repeatable"
"""The measure's name."""
CALLED_FROM = 0.25
"""Calls per operation from which on a function counts as run by each: timers and daemons stay below."""
REPEATS_WITHIN = 0.3
"""The largest difference between boots of one kernel, in instructions per operation, of a function that each runs."""
CALLS_FROM = 20
"""So often must any other function be called during a load."""
CALLS_ALIKE = 0.002
"""The largest difference of the calls of a function that is called as often as before, as a share of them; or twice
what they differ by between boots of one kernel."""
REPEATS_WITHIN_CALL = 0.1
"""The largest difference between boots of one kernel, in instructions per call, of such a function."""
CHANGED_FROM = 0.5
"""The smallest change of such a function, in instructions per call."""
CERTAIN_FROM = 0.1
"""The smallest change that is stated, in instructions per operation: of 60 commits that cannot matter, none had 0.07.
All of these limits were chosen with commits' answers in sight (docs/reference/commit-costs.md)."""


def repeatable_change(base: Sequence[InstructionsObservation], tip: Sequence[InstructionsObservation]) -> Change | None:
    """Instructions per operation of all functions that repeat and changed. None: most of the change is that of
    functions which one kernel lacks; the compiler may have inlined them into functions that do not repeat."""
    found = [one for one in _functions(base, tip) if one.repeats_and_changed]
    change = paired_change(
        *([math.fsum(one.amounts[side][boot] for one in found) for boot in range(len(base))] for side in (0, 1))
    )
    in_one = math.fsum(max(one.means) for one in found if not min(one.means))
    return None if in_one and abs(change.difference) > in_one / 2 else change


Sides = list[list[float]]
"""Amounts per operation under base and tip, a value for each boot."""


@dataclass(frozen=True)
class _Function:
    """A function's instructions and calls. `operations`: of one load."""

    name: str
    amounts: Sides
    calls: Sides
    operations: int

    @property
    def means(self) -> list[float]:
        """In instructions per operation."""
        return _means(self.amounts)

    @property
    def repeats_and_changed(self) -> bool:
        before, after = _means(self.calls)
        is_run_by_each = max(before, after) >= CALLED_FROM and _spread(self.amounts) <= REPEATS_WITHIN
        if abs(after - before) > max(CALLS_ALIKE * max(before, after), 2 * _spread(self.calls)):
            return is_run_by_each
        if min(map(min, self.calls)) * self.operations < CALLS_FROM:
            return False
        base, tip = self.means
        if abs(tip / after - base / before) < CHANGED_FROM or depends_on_slab_page(
            self.name, tip - base, before, after
        ):
            return False
        return is_run_by_each or _spread(self._by_call) <= REPEATS_WITHIN_CALL

    @property
    def _by_call(self) -> Sides:
        sides = zip(self.amounts, self.calls, strict=True)
        return [[amount / calls for amount, calls in zip(*side, strict=True)] for side in sides]


def _functions(base: Sequence[InstructionsObservation], tip: Sequence[InstructionsObservation]) -> Iterator[_Function]:
    """All of the kernel's."""
    amounts = [[per_operation(boot) for boot in side] for side in (base, tip)]
    calls = [[calls_per_operation(boot) for boot in side] for side in (base, tip)]
    for key in {key for side in amounts for boot in side for key in boot if key[0] != USER}:
        of_key = [[[boot.get(key, 0.0) for boot in side] for side in sides] for sides in (amounts, calls)]
        yield _Function(key[0], of_key[0], of_key[1], base[0]["operations"])


def _spread(sides: Sides) -> float:
    """The largest difference between boots of one kernel."""
    return max(max(side) - min(side) for side in sides)


def _means(sides: Sides) -> list[float]:
    return [math.fsum(side) / len(side) for side in sides]
