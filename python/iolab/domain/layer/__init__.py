"""Layers between a workload and its drives: the registry of their kinds, and the stack that they make."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from iolab.base.errors import InputError, unknown
from iolab.base.option import explain, shown
from iolab.base.plain_text import counted
from iolab.base.toml import TomlTable
from iolab.domain.layer import bcache, kept, mapping, raid
from iolab.domain.layer.layer import MIB, Array, CacheSet, Layer, LayerDevice, Maker, MappedDevice, rounded_up

__all__ = [
    "KINDS",
    "Array",
    "CacheSet",
    "Layer",
    "LayerDevice",
    "Maker",
    "MappedDevice",
    "build",
    "changed",
    "check",
    "drive_bytes",
    "drives",
    "read",
    "refuse",
]

KINDS: dict[str, type[Layer]] = {
    str(kind.model_fields["kind"].default): kind for family in (mapping, kept, bcache, raid) for kind in family.KINDS
}
DEPTH_MAX = 16
DRIVES_MAX = 64
"""Below one device of the target."""

Note = Callable[[tuple[str | int, ...], str], None]
"""Takes the place in the list and what is wrong there."""


def check(given: Sequence[Any], size_bytes: int | None, note: Note) -> None:
    """Notes what is wrong with layers as an experiment writes them, the top one first.

    Args:
        size_bytes: what the top one holds; None: not known here.
    """
    wrong = False

    def noted(place: tuple[str | int, ...], what: str) -> None:
        nonlocal wrong
        wrong = True
        note(place, what)

    if len(given) > DEPTH_MAX:
        noted((), f"{counted(len(given), 'layer')}; expected at most {DEPTH_MAX}")
    for number, table in enumerate(given):
        for key, what in _faults(table):
            noted((number, *key), what)
    if wrong:
        return
    found = read(given)
    if (count := drives(found)) > DRIVES_MAX:
        noted((), f"{counted(count, 'drive')} at the bottom; expected at most {DRIVES_MAX}")
    if size_bytes is not None:
        for number, (layer, size) in enumerate(_with_sizes(found, size_bytes)):
            if (fault := layer.size_fault(size)) is not None:
                noted((number, fault[0]), fault[1])


def _faults(table: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if not isinstance(table, Mapping) or not isinstance(table.get("kind"), str):
        yield (), f'{shown(table)} given; expected a table with its kind, such as {{ kind = "crypt" }}'
        return
    kind = KINDS.get(table["kind"])
    if kind is None:
        yield ("kind",), unknown("layer", table["kind"], KINDS)
        return
    try:
        fault = kind.model_validate(dict(table)).fault()
    except ValidationError as error:
        for detail in error.errors():
            yield explain(detail, kind, f"layer {table['kind']}")
    else:
        if fault is not None:
            yield (fault[0],), fault[1]


def read(given: Sequence[TomlTable]) -> list[Layer]:
    """Layers that `check` found nothing wrong with."""
    return [KINDS[table["kind"]].model_validate(dict(table)) for table in given]


def refuse(given: Sequence[Any], size_bytes: int | None = None) -> None:
    """InputError for the first thing that `check` notes."""
    found: list[tuple[tuple[str | int, ...], str]] = []
    check(given, size_bytes, lambda place, what: found.append((place, what)))
    if found:
        place, what = found[0]
        raise InputError(".".join(map(str, ("layers", *place))) + f": {what}")


def changed(layers: Sequence[TomlTable], value: Any) -> list[TomlTable]:
    """The layers under a setting: those of a list replace all; a table by number, `{ 0 = { chunk = "4KiB" } }`, changes
    options of some. InputError for a number that no layer has."""
    if isinstance(value, list):
        return [dict(table) for table in value]
    found = [dict(table) for table in layers]
    for number, options in value.items():
        if int(number) >= len(found):
            has = "none" if not found else f"{len(found)}, from 0"
            raise InputError(f"layers.{number}: [target] has no such layer; it has {has}")
        found[int(number)] |= options
    return found


def drives(layers: Sequence[Layer]) -> int:
    """How many drives lie at the bottom."""
    return math.prod(layer.width for layer in layers)


def drive_bytes(layers: Sequence[Layer], size_bytes: int) -> int:
    """The size of each, for the top layer to hold `size_bytes`; without layers, that."""
    if not layers:
        return size_bytes
    for layer in layers:
        size_bytes = layer.member_bytes(size_bytes)
    return rounded_up(size_bytes, MIB)


def _with_sizes(layers: Sequence[Layer], size_bytes: int) -> Iterator[tuple[Layer, int]]:
    """Each layer, with what it holds."""
    for layer in layers:
        yield layer, size_bytes
        size_bytes = layer.member_bytes(size_bytes)


def build(layers: Sequence[Layer], size_bytes: int, maker: Maker) -> LayerDevice:
    """The device at the top of a stack that holds `size_bytes`, made from the drives up; each device of a layer that
    lies on several has the rest of the layers under it."""
    if not layers:
        return maker.drive()
    top, *below = layers
    members = [build(below, top.member_bytes(size_bytes), maker) for _ in range(top.width)]
    return top.make(members, size_bytes, maker)
