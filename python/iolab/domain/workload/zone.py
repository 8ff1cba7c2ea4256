"""Zones of a file's range, some of which are used more than others: `50/5%:30/15%:20/80%`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iolab.domain import native_types as native

EXPECTED = "expected operations in percent and size of each zone, such as 50/5%:30/15%:20/80%"
ZONES_MAX = 256
"""As many as fio takes."""


@dataclass(frozen=True)
class Zone:
    """A part of the range, right behind the one before it."""

    operations_percent: float
    percent: float | None
    """Its size in percent of the range; None: `size_bytes` is given."""
    size_bytes: int = 0


def read_zones(text: str, size_of: Callable[[str], int], *, in_percent: bool = False) -> list[Zone]:
    """The zones of a text. Those without a size (`20/`) share what the others leave of the range, as in fio
    (zone_split_ddir in options.c, 3.41). ValueError states what is wrong with it.

    Args:
        size_of: bytes of a size as text, or ValueError.
        in_percent: sizes are in percent without a sign, too.
    """
    zones = [_zone(part, size_of, in_percent=in_percent) for part in _sized(text.split(":"), in_percent=in_percent)]
    if len(zones) > ZONES_MAX:
        raise ValueError(f"{len(zones)} zones; expected at most {ZONES_MAX}")
    operations = sum(zone.operations_percent for zone in zones)
    if abs(operations - 100) > 0.01:
        raise ValueError(f'"{text}": operations of all zones are {operations:g} %; expected 100 %')
    size = sum(zone.percent or 0 for zone in zones)
    if size > 100.01:
        raise ValueError(f'"{text}": the zones are {size:g} % of the range; expected at most 100 %')
    return zones


def _sized(parts: Sequence[str], *, in_percent: bool) -> list[str]:
    """The parts, those without a size with their share of what is left."""
    sizes = [part.strip().rpartition("/")[2].removesuffix("%") for part in parts]
    unsized = sizes.count("")
    try:
        rest = 100 - sum(float(size) for size in sizes if size)
    except ValueError:
        return list(parts)
    if not in_percent or not unsized:
        return list(parts)
    return [part if size else f"{part.strip()}{rest / unsized:g}" for part, size in zip(parts, sizes, strict=True)]


def _zone(text: str, size_of: Callable[[str], int], *, in_percent: bool) -> Zone:
    operations, slash, size = text.strip().partition("/")
    is_percent = size.endswith("%") or in_percent
    try:
        zone = Zone(
            float(operations.removesuffix("%")),
            float(size.removesuffix("%")) if is_percent else None,
            0 if is_percent else size_of(size),
        )
    except ValueError:
        zone = None
    length = None if zone is None else zone.percent if is_percent else zone.size_bytes
    if not slash or zone is None or not 0 <= zone.operations_percent <= 100 or not length or not length > 0:
        raise ValueError(f'"{text}": {EXPECTED}')
    return zone


def zoned(zones: Sequence[Zone], range_bytes: int) -> native.ZonedPattern:
    """The engine's pattern, over a range of so many bytes. Percentages are of the range, their ends rounded down."""
    found: list[native.Zone] = []
    start = share = 0.0
    for zone in zones:
        share += zone.percent or 0
        end = start + zone.size_bytes if zone.percent is None else range_bytes * share / 100
        length = int(min(end, range_bytes)) - int(start)
        found.append({"weight": zone.operations_percent, "length_bytes": max(length, 1)})
        start = end
    return {"kind": "zoned", "zones": found}
