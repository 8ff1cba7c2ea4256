"""Which functions differ between two settings of a guest machine, those that moved or were inlined as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iolab.domain import chains
from iolab.domain.phase_record import InstructionsObservation
from iolab.domain.symbols import (
    Difference,
    calls_per_operation,
    depends_on_slab_page,
    differences,
    means,
    per_operation,
    with_inlined,
    with_renamed,
)


def compared(before: Sequence[InstructionsObservation], after: Sequence[InstructionsObservation]) -> list[Difference]:
    """The functions of two settings, of this many rounds each, the largest change first; those that were renamed or
    inlined as one."""
    rounds = [[per_operation(round) for round in side] for side in (before, after)]
    calls = [means([calls_per_operation(round) for round in side]) for side in (before, after)]
    called_by = [chains.callers(chains.means([chains.per_operation(one) for one in side])) for side in (before, after)]
    found = [
        replace(one, is_named=False)
        if depends_on_slab_page(one.symbol, one.change, *(side.get((one.symbol, one.module), 0.0) for side in calls))
        else one
        for one in differences(*rounds)
    ]
    return with_inlined(with_renamed(found, *calls), *called_by)
