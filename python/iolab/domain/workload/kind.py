"""What a workload kind is: options, the combinations that make no sense, and how options become phases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from iolab.base.errors import InputError, unknown
from iolab.base.option import Options, option
from iolab.base.toml import TomlTable
from iolab.domain.metric import DEFAULT_COMPARED
from iolab.domain.trial import Phase


@dataclass(frozen=True)
class Conflict:
    """A combination of options that can't be run: the key to blame, and a line that states why and what instead."""

    key: tuple[str, ...]
    what: str


class UnknownName(InputError):
    """A setting changes a job, a group or a part that the workload has not."""

    def __init__(self, key: str, name: str, names: Iterable[str]) -> None:
        super().__init__(unknown(key.removesuffix("s"), name, names))
        self.key = (key, name)


class Phases(Protocol):
    """How a kind's options become the phases of a trial."""

    def __call__(self, options: Any, seed: int, devices: int = 1) -> list[Phase]:
        """The phases in order, the same for the same arguments. Files have names; on a device or in one named file, the
        machine makes each a region.

        Args:
            options: valid options of the kind, without conflicts.
            devices: how many devices the target has.
        """
        ...


@dataclass(frozen=True)
class Kind:
    """A kind of workload: what the registry `iolab.domain.workload.KINDS` has one of for each."""

    name: str
    help: str
    options: type[Options]
    conflicts: Callable[[Any], Iterator[Conflict]]
    """Checks valid options against each other."""
    phases: Phases
    override: Callable[[TomlTable, Mapping[str, Any]], TomlTable]
    """A workload's table as written, with a setting's `workload` table laid over it. UnknownName if that changes a job,
    a group or a part that the workload has not."""
    file_bytes: Callable[[Any], int]
    """What the workload's files hold together."""
    compared: tuple[str, ...] = DEFAULT_COMPARED
    """Keys of the metrics that are compared when nobody states which."""


def replace_options(table: TomlTable, changes: Mapping[str, Any]) -> TomlTable:
    """The plain `override`: the setting's value wins, key by key."""
    return {**table, **changes}


def refuse_unknown(key: str, tables: Any, changes: Any) -> None:
    """UnknownName if a setting's changes of tables by name under `key` are of another."""
    if isinstance(tables, dict) and isinstance(changes, dict):
        for name in changes:
            if name not in tables:
                raise UnknownName(key, name, tables)


def laid_over(key: str, tables: Any, changes: Any) -> Any:
    """Tables by name under `key`, with a setting's changes of some of them. UnknownName if it names another."""
    refuse_unknown(key, tables, changes)
    if not isinstance(tables, dict) or not isinstance(changes, dict):
        return changes
    both = {name: isinstance(own, dict) and isinstance(tables[name], dict) for name, own in changes.items()}
    return {**tables, **{name: {**tables[name], **own} if both[name] else own for name, own in changes.items()}}


def cpus_option(help: str, *, default_is: str = "any") -> Any:
    """A field `cpus`, which most kinds have: `help` states who may run there."""
    return option(None, help, default_is=default_is, expected="a list of CPU numbers such as [0] or [0, 1]")
