"""What writes did to a drive: a summary, and a picture of the rate over the bytes written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from iolab.base.plain_text import counted
from iolab.base.quantity import plain, scale_for

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.studies.wear import Wear

_BAR = 40
_ROWS_MAX = 24
_FASTER_AT_LAST = 1.1
"""Times the rate of the whole, from which on the last quarter is no picture of it. Chosen."""


def wear_tables(found: Wear) -> Iterator[RenderableType]:
    """Lines of the whole, then a row for each slice or pair of slices with a bar of its rate."""
    from rich.table import Table

    if not found.erases:
        yield "! no block was erased yet: the drive uses its spare blocks, and gives less later"
        yield "! what helps: more bytes (--amount), or --start steady"
    sizes = scale_for("bytes", [found.host_bytes])
    rates = scale_for("bytes/s", [one.bytes_per_s for one in found.slices])
    if found.slices and not found.is_paced:
        of_parts = found, found.slices[0], found.last_quarter
        whole, first, last = (rates.with_unit(one.bytes_per_s) for one in of_parts)
        yield f"Rate: {whole} of all, {first} at first, {last} in the last quarter"
        if found.last_quarter.bytes_per_s > _FASTER_AT_LAST * found.bytes_per_s:
            yield "! the last quarter is faster than the whole: the drive collects in longer turns than it lasted"
            yield "! what helps: more bytes (--amount)"
    yield f"Written: {sizes.with_unit(found.host_bytes)} in {plain(found.elapsed_ns / 1e9, 4)} s, {_drives(found)}"
    late = f"{_factor(found.last_quarter.amplification)} in the last quarter"
    yield f"Write amplification: {_factor(found.amplification)}, {late}"
    yield f"Erases: {counted(found.erases, 'block')}"
    yield f"Cliff: {_cliff(found)}"
    yield from _space(found)
    table = Table(title="Rate over the bytes written", title_justify="left")
    has_cache = any(one.slc_percent is not None for one in found.slices)
    for head in ("written", "rate", "amplification", "erases", "free", *(("cache",) if has_cache else ())):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("")
    step = -(-len(found.slices) // _ROWS_MAX)
    parts = [found.slices[first : first + step] for first in range(0, len(found.slices), step)]
    sums = [replace(found, slices=part) for part in parts]
    most = max((part.bytes_per_s for part in sums), default=0.0)
    written = 0
    for part in sums:
        written += part.host_bytes
        bar = "█" * round(_BAR * part.bytes_per_s / most) if most else ""
        rate = rates.with_unit(part.bytes_per_s)
        end = part.slices[-1]
        space = [_percent(end.free_percent), *([_percent(end.slc_percent)] if has_cache else [])]
        table.add_row(sizes.with_unit(written), rate, _factor(part.amplification), f"{part.erases:,}", *space, bar)
    yield table


def _drives(found: Wear) -> str:
    size = scale_for("bytes", [found.drive_bytes]).with_unit(found.drive_bytes)
    return f"{plain(found.host_bytes / found.drive_bytes, 3)} times the drive's {size}"


def _space(found: Wear) -> Iterator[str]:
    free = [one.free_percent for one in found.slices if one.free_percent is not None]
    if free:
        yield f"Free blocks: {_percent(free[0])} after the first slice, {_percent(free[-1])} at the end"
    cache = [one.slc_percent for one in found.slices if one.slc_percent is not None]
    if cache:
        yield f"Pseudo-SLC cache: {_percent(max(cache))} full at most, {_percent(cache[-1])} at the end"
    heat = [one.celsius for one in found.slices if one.celsius is not None]
    if heat:
        yield f"Temperature: {max(heat):.1f} degrees Celsius at most, {heat[-1]:.1f} at the end"


def _cliff(found: Wear) -> str:
    if found.is_paced:
        return "none, the trace sets the rate"
    if found.cliff is None:
        return "none, the rate ends above half of the first slice's"
    written, elapsed_ns = found.cliff
    size = scale_for("bytes", [written]).with_unit(written)
    return f"after {size} and {plain(elapsed_ns / 1e9, 4)} s the rate stays below half of the first slice's"


def _percent(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f} %"


def _factor(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"
