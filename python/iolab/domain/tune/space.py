"""What a tuner may change: keys of a setting, each with the values that it may have, and what goes with what.

A range is a grid: places on it are what a sampler draws, and two candidates with the same places are one candidate.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Point = Mapping[str, int]
"""A candidate: by key the place of its value; a key that is not in force there is absent."""

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
"""The operators of requirements; longer ones first, in the order of the search."""


@dataclass(frozen=True)
class Parameter:
    """One key that may be changed. `values`: as a setting has them; `ordered`: whether near places do alike; `sizes`:
    the values as numbers, of a range; `when`: it is in force only if each of these keys has one of these places."""

    key: str
    values: tuple[Any, ...]
    ordered: bool
    sizes: tuple[float, ...] | None = None
    when: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def in_force(self, point: Point) -> bool:
        """Whether the key means something beside the others of the point."""
        return all(point.get(key) in places for key, places in self.when.items())


@dataclass(frozen=True)
class Requirement:
    """That one range's value stands so to another's, or to a number: `dirty_background_ratio < dirty_ratio`."""

    left: str
    how: str
    right: str | float

    def holds(self, sizes: Mapping[str, float]) -> bool:
        """Whether a candidate's numbers by key meet the requirement; a key that is not in force requires nothing."""
        right = self.right if isinstance(self.right, float) else sizes.get(self.right)
        left = sizes.get(self.left)
        return left is None or right is None or OPERATORS[self.how](left, right)


@dataclass(frozen=True)
class Space:
    """All keys that may be changed; a key stands after those that its `when` names."""

    parameters: tuple[Parameter, ...]
    requirements: tuple[Requirement, ...] = ()

    @property
    def size(self) -> int:
        """How many candidates there are at most: requirements and keys out of force make them fewer."""
        found = 1
        for parameter in self.parameters:
            found *= len(parameter.values)
        return found

    def point(self, places: Mapping[str, int]) -> dict[str, int]:
        """The places that are in force, in the order of the space."""
        found: dict[str, int] = {}
        for parameter in self.parameters:
            if parameter.in_force(found) and parameter.key in places:
                found[parameter.key] = places[parameter.key]
        return found

    def allows(self, point: Point) -> bool:
        """Whether every requirement holds."""
        sizes = {
            parameter.key: parameter.sizes[point[parameter.key]]
            for parameter in self.parameters
            if parameter.sizes is not None and parameter.key in point
        }
        return all(one.holds(sizes) for one in self.requirements)

    def values(self, point: Point) -> dict[str, Any]:
        """The point's values, by dotted key."""
        return {one.key: one.values[point[one.key]] for one in self.parameters if one.key in point}

    def neighbours(self, point: Point) -> list[dict[str, int]]:
        """The points that differ in one key's value; a key that comes into force with it has any value."""
        found: list[dict[str, int]] = []
        for parameter in self.parameters:
            if parameter.key not in point:
                continue
            for place in range(len(parameter.values)):
                if place == point[parameter.key]:
                    continue
                changed = {**point, parameter.key: place}
                fresh = [one for one in self.parameters if one.key not in point and one.when and one.in_force(changed)]
                members = [changed]
                for one in fresh:
                    members = [{**member, one.key: at} for member in members for at in range(len(one.values))]
                found += [self.point(member) for member in members]
        return found

    def place_of(self, values: Mapping[str, Any]) -> dict[str, int]:
        """The point that has these values by dotted key; keys and values that the space lacks are passed over."""
        places = {
            one.key: one.values.index(values[one.key])
            for one in self.parameters
            if one.key in values and values[one.key] in one.values
        }
        return self.point(places)

    def without(self, keys: Sequence[str]) -> Space:
        """The space in which these keys, and those that depend on them, are left alone."""
        gone = set(keys)
        for parameter in self.parameters:
            if gone & set(parameter.when):
                gone.add(parameter.key)
        kept = tuple(one for one in self.parameters if one.key not in gone)
        return Space(kept, tuple(one for one in self.requirements if one.left not in gone and one.right not in gone))

    def factors(self) -> list[tuple[str, ...]]:
        """Keys that have to be changed together: one that depends on no other, with all that depend on it."""
        found: dict[str, list[str]] = {}
        home: dict[str, str] = {}
        for parameter in self.parameters:
            first = next((home[key] for key in parameter.when), parameter.key)
            home[parameter.key] = first
            found.setdefault(first, []).append(parameter.key)
        return [tuple(keys) for keys in found.values()]


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """A setting's table from dotted keys."""
    table: dict[str, Any] = {}
    for key, value in values.items():
        *outer, last = key.split(".")
        inner = table
        for part in outer:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return table


def flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted keys from a setting's table: what `nested` makes a table of."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + str(name)] = value
    return found
