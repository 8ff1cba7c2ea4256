"""Which probes are on: `[probes]` of the experiment, or `probes` of a setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iolab.base.errors import unknown
from iolab.base.option import shown
from iolab.base.problem import Problems
from iolab.domain.probe import PROBES, Probes, resolved


def read_probes(given: object, path: tuple[str, ...], problems: Problems) -> Probes:
    """The probes that the table switches on: `block = true`, or a table of the probe's options."""
    if not isinstance(given, dict):
        problems.add(path, f"{shown(given)} given; expected a table such as {{ block = true }}")
        return {}
    found: Probes = {}
    for name, value in given.items():
        if name not in PROBES:
            problems.add((*path, name), unknown("probe", name, PROBES))
        elif isinstance(value, dict):
            options = problems.validated(PROBES[name].options, value, (*path, name), f"probe {name}")
            if options is not None:
                found[name] = resolved(options)
        elif value is True:
            found[name] = with_defaults(name)
        elif value is not False:
            example = f"{name} = true, or a table of its options (iolab list probes {name})"
            problems.add((*path, name), f"{shown(value)} given; expected {example}")
    return found


def with_defaults(name: str) -> dict[str, Any]:
    """A probe's options when nobody gives any."""
    return resolved(PROBES[name].options())


def and_also(probes: Mapping[str, dict[str, Any]], names: Iterable[str]) -> Probes:
    """The probes, and those of `names` that are not among them."""
    return {**{name: with_defaults(name) for name in names}, **probes}
