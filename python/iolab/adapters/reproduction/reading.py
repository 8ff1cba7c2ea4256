"""What reading any part of a file of published figures takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from iolab.base.errors import InputError, unknown
from iolab.base.option import Options, shown
from iolab.domain.metric import parse_key
from iolab.domain.verdict import Verdict

if TYPE_CHECKING:
    from iolab.base.problem import Problems

KeyPath = tuple[str, ...]
OptionsT = TypeVar("OptionsT", bound=Options)
VERDICTS: tuple[str, ...] = get_args(Verdict)


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


def check_verdicts(words: Sequence[str], path: KeyPath, problems: Problems) -> None:
    """Notes a problem at `path` for each word that is no verdict, and if there is none."""
    for word in words:
        if word not in VERDICTS:
            problems.add(path, f"{word}: {unknown('verdict', word, VERDICTS)}")
    if not words:
        problems.add(path, "an empty list; expected at least one verdict")
