"""What reading any part of a file of published figures takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from iolab.errors import InputError
from iolab.metric import parse_key
from iolab.option import Options, shown

if TYPE_CHECKING:
    from iolab.experiment.problem import Problems

KeyPath = tuple[str, ...]
OptionsT = TypeVar("OptionsT", bound=Options)


def by_name(
    model: type[OptionsT], tables: Mapping[str, Any], path: KeyPath, subject: str, problems: Problems
) -> dict[str, OptionsT]:
    """Each of `tables` that is right, as a `model`."""
    found: dict[str, OptionsT] = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            problems.add((*path, name), f"{shown(table)} given; expected a table")
        elif options := problems.validated(model, table, (*path, name), subject):
            found[name] = options
    return found


def check_metric(key: str, path: KeyPath, problems: Problems) -> None:
    """Notes a problem at `path` if there can be no metric of this key."""
    try:
        parse_key(key)
    except InputError as error:
        problems.add(path, str(error))
