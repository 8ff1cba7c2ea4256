"""Matrices: a list where one value is expected stands for one table per value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from typing import Any

from iolab.base.toml import TomlTable

MEMBERS_MAX = 1000
AxisLabel = Callable[[tuple[str, ...], Any], str | None]
"""Path and value -> how a member with that value is named; None: `key=value`."""


@dataclass(frozen=True)
class Axis:
    """One key with several values. `path` leads to it inside the table."""

    path: tuple[str, ...]
    values: list[Any]


@dataclass(frozen=True)
class Member:
    """One table of a matrix; `label` distinguishes it from the others: `queue_depth=1,block_size=4KiB`."""

    label: str
    table: TomlTable

    def named(self, name: str) -> str:
        """The name with the member's label behind it, as in `bfq[depth=8]`; alone if there is no label."""
        return f"{name}[{self.label}]" if self.label else name


def axes(table: TomlTable, takes_list: Callable[[str], bool]) -> list[Axis]:
    """The keys with several values, in file order.

    `takes_list` says of a key whether its one value is itself a list; such a key is an axis only with a list of lists.
    """
    return list(_axes(table, takes_list, ()))


def size(found: list[Axis]) -> int:
    """How many tables the matrix stands for."""
    return math.prod(len(axis.values) for axis in found)


def expand(table: TomlTable, found: list[Axis], axis_label: AxisLabel = lambda _path, _value: None) -> list[Member]:
    """Every combination of the axes' values, the last axis fastest; the table itself when there is no axis."""
    single = _without_values(table, found)
    return [_member(single, found, values, axis_label) for values in product(*(axis.values for axis in found))]


def _axes(table: TomlTable, takes_list: Callable[[str], bool], prefix: tuple[str, ...]) -> Iterator[Axis]:
    for key, value in table.items():
        path = (*prefix, key)
        if isinstance(value, dict):
            yield from _axes(value, takes_list, path)
        elif isinstance(value, list) and (not takes_list(key) or (value and all(isinstance(v, list) for v in value))):
            yield Axis(path, value)


def _without_values(table: TomlTable, found: list[Axis]) -> TomlTable:
    """The table with nothing if the axes stand, so that a member's copy holds none of the others' values."""
    at = {axis.path for axis in found}

    def copied(table: TomlTable, prefix: tuple[str, ...]) -> TomlTable:
        return {
            key: None
            if (*prefix, key) in at
            else copied(value, (*prefix, key))
            if isinstance(value, dict)
            else deepcopy(value)
            for key, value in table.items()
        }

    return copied(table, ())


def _member(table: TomlTable, found: list[Axis], values: tuple[Any, ...], axis_label: AxisLabel) -> Member:
    member = deepcopy(table)
    for axis, value in zip(found, values, strict=True):
        inner = member
        for key in axis.path[:-1]:
            inner = inner[key]
        inner[axis.path[-1]] = value
    labels = (
        axis_label(axis.path, value) or f"{_short(axis.path)}={_shown(value)}"
        for axis, value in zip(found, values, strict=True)
    )
    return Member(",".join(labels), member)


def _short(path: tuple[str, ...]) -> str:
    """The key as the name shows it: tables that only group say nothing."""
    return ".".join(path[1:] if len(path) > 1 and path[0] in ("jobs", "workload") else path)


def _shown(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return "+".join(f"{key}:{_shown(inner)}" for key, inner in value.items())
        case list():
            return "+".join(_shown(inner) for inner in value)
        case _:
            return str(value)
