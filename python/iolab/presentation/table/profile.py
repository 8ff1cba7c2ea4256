"""`show --as profile`: which functions of the kernel ran, over time: percent of each interval's samples.

Of the first round. A longer recording's intervals are taken together to fit the page; `peak` is of the intervals as
they were recorded, so that a burst is not averaged away. `self` is the function itself, `total` what it called too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.base.quantity import ABSENT
from iolab.domain import native_types as native
from iolab.domain.probe.profile import NAME
from iolab.presentation.table.probe_observations import PlaceObservations, columns, observations_of

if TYPE_CHECKING:
    from iolab.files.store import RunData

ROWS_SHOWN = 20
INTERVALS_SHOWN = 12


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """The tables. InputError if the run was not measured with the probe, or if metrics are asked for."""
    if metrics:
        raise InputError("the profile has fixed columns", where="--metric", remedy="leave --metric out")
    return "\n".join(_block(place) for place in observations_of(run, NAME))


def _block(place: PlaceObservations[native.ProfileObservation]) -> str:
    found = place.observations[0]
    lines = [place.title, f"{counted(found['samples'], 'sample')} in {found['elapsed_ns'] / 1e9:.1f} s"]
    if found["samples_lost"]:
        lines.append(f"{counted(found['samples_lost'], 'sample was', 'samples were')} lost")
    if not found["functions"]:
        return "\n".join([*lines, "", "No function ran.", ""])
    at_once = -(-len(found["functions"][0]["own_shares"]) // INTERVALS_SHOWN)
    starts = [number * at_once * found["interval_ns"] / 1e9 for number in range(_shown(found, at_once))]
    header = ("function", "total", "self", "peak", *(f"{start:g} s" for start in starts))
    rows = [header, *(_row(function, found, at_once) for function in found["functions"][:ROWS_SHOWN])]
    left = len(found["functions"]) - ROWS_SHOWN
    more = [f"... {counted(left, 'more function')}"] if left > 0 else []
    return "\n".join([*lines, "", columns(rows), *more, ""])


def _row(function: native.FunctionReport, found: native.ProfileObservation, at_once: int) -> tuple[str, ...]:
    overall = (function["total_share"], function["own_share"], function["own_share_max"])
    shares = function["own_shares"]
    over_time = (_mean(shares[start : start + at_once]) for start in range(0, len(shares), at_once))
    return (function["function"], *map(_percent, (*overall, *over_time)))


def _shown(found: native.ProfileObservation, at_once: int) -> int:
    return -(-len(found["functions"][0]["own_shares"]) // at_once)


def _mean(shares: list[float | None]) -> float | None:
    """The mean of equal intervals; one without samples does not count."""
    present = [share for share in shares if share is not None]
    return sum(present) / len(present) if present else None


def _percent(share: float | None) -> str:
    return ABSENT if share is None else f"{100 * share:.1f}"
