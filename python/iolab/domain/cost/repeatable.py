"""What changed in those functions of the kernel whose counts repeat from boot to boot.

Where workers of a filesystem run and which pages are free differs between two boots of one kernel, and moves a create
on btrfs by some hundred instructions. Functions that each operation runs, such as those that look up its name, have the
same count in every boot. Their sum shows what a patch does to them, whatever the others do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from iolab.domain.cost.measure import Change, paired_change
from iolab.domain.phase_record import InstructionsObservation
from iolab.domain.symbols import USER, Key, calls_per_operation, is_of_places, means, per_operation

REPEATABLE = "repeatable"
"""The measure's name."""
CALLED_FROM = 0.5
"""Calls per operation from which on a function counts as run by each: timers and daemons stay below."""
REPEATS_WITHIN = 0.3
"""The largest difference between boots of one kernel, in instructions per operation."""
CERTAIN_FROM = 0.5
"""The smallest change that is stated, in instructions per operation: of 39 commits that cannot matter, none had 0.2.
The three limits were chosen with the answers to the first list in sight (docs/reference/commit-costs.md)."""


def repeatable_change(base: Sequence[InstructionsObservation], tip: Sequence[InstructionsObservation]) -> Change | None:
    """Instructions per operation of all functions that repeat. None: most of the change is that of functions which one
    kernel lacks; the compiler may have inlined them into functions that do not repeat."""
    sides = [[per_operation(one) for one in side] for side in (base, tip)]
    calls = [means([calls_per_operation(one) for one in side]) for side in (base, tip)]
    before, after = (means(side) for side in sides)
    found = {
        key
        for key in before.keys() | after.keys()
        if key[0] != USER
        and max(one.get(key, 0.0) for one in calls) >= CALLED_FROM
        and all(_spread(side, key) <= REPEATS_WITHIN for side in sides)
        and not is_of_places(key, after.get(key, 0.0) - before.get(key, 0.0), *calls)
    }
    change = paired_change(*([math.fsum(one.get(key, 0.0) for key in found) for one in side] for side in sides))
    in_one = math.fsum(
        before.get(key, 0.0) + after.get(key, 0.0) for key in found if key not in before or key not in after
    )
    return None if in_one and abs(change.difference) > in_one / 2 else change


def _spread(side: Sequence[Mapping[Key, float]], key: Key) -> float:
    amounts = [one.get(key, 0.0) for one in side]
    return max(amounts) - min(amounts)
