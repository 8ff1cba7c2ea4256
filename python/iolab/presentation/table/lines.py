"""`show --as lines`: what lines of the kernel's source cost in a guest machine, per operation, the most expensive
first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.domain.phase_record import InstructionsObservation
from iolab.domain.probe.instructions import NAME, per_operation
from iolab.presentation.table.probe_observations import PlaceObservations, columns, observations_of

if TYPE_CHECKING:
    from iolab.files.store import RunData

ROWS_SHOWN = 25


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """The tables. InputError if there are no lines, or if metrics are asked for."""
    if metrics:
        raise InputError("the lines have fixed columns", where="--metric", remedy="leave --metric out")
    places: list[PlaceObservations[InstructionsObservation]] = observations_of(run, NAME)
    blocks = [_block(place) for place in places if any("lines" in one for one in place.observations)]
    if not blocks:
        raise InputError(
            "the run has no lines",
            where=str(run.path),
            remedy="measure with [probes] instructions = { inlined = true }",
        )
    return "\n".join(blocks)


def _block(place: PlaceObservations[InstructionsObservation]) -> str:
    counted = [one for one in place.observations if "lines" in one]
    sums: dict[str, float] = {}
    for one in counted:
        for line, amount in zip(one["lines"]["lines"], one["lines"]["instructions"], strict=True):
            sums[line] = sums.get(line, 0.0) + (per_operation(one, amount) or 0.0) / len(counted)
    total = sum(per_operation(one, one["total"]) or 0.0 for one in counted) / len(counted)
    dearest = sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:ROWS_SHOWN]
    rows: list[tuple[str, ...]] = [("line", "per op", "share")]
    rows += [(line, f"{amount:,.1f}", f"{100 * amount / total:.1f} %") for line, amount in dearest if total]
    return f"{place.title}\n{columns(rows, left=1)}\n"
