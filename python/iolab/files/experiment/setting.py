"""The settings of an experiment: controls, changes to the workloads' options, and the probes that are on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from iolab.base.errors import InputError, IolabError, nearest, unknown
from iolab.base.option import natural_lists, shown
from iolab.base.plain_text import is_one_line
from iolab.base.problem import Problems
from iolab.base.toml import TomlTable
from iolab.domain.control import CONTROLS, Control
from iolab.domain.probe import PROBES, Probes, resolved
from iolab.domain.trial.trial import Kind
from iolab.domain.workload import KINDS


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


def with_defaults(name: str) -> TomlTable:
    """A probe's options when nobody gives any."""
    return resolved(PROBES[name].options())


def and_also(probes: Mapping[str, TomlTable], names: Iterable[str]) -> Probes:
    """The probes, and those of `names` that are not among them."""
    return {**{name: with_defaults(name) for name in names}, **probes}


SHORTCUTS = ("engine",)
"""Workload options that a setting may give without the `workload` table."""


@dataclass(frozen=True)
class Setting:
    """A setting of the experiment, its matrix expanded."""

    name: str
    written_as: str
    """Its table's name in the file, before expansion."""
    controls: TomlTable
    """Validated, by name."""
    changes: TomlTable
    """Options that replace those of every workload."""
    change_paths: dict[str, tuple[str, ...]]
    """Option -> where in the file the setting gives it."""
    probes: Probes | None = None
    """Instead of the experiment's; None: the experiment's."""
    part: str | None = None
    """What the machine has to be booted with for it; None: it does not matter."""


def read_settings(tables: TomlTable, problems: Problems, kind: Kind) -> list[Setting]:
    """Every member of every setting's matrix, in file order; without any, one that changes nothing.

    Args:
        kind: of the machine that they are for.
    """
    if not tables:
        return [Setting("default", "default", {}, {}, {})]

    lists = frozenset(name for name, control in CONTROLS.items() if control.takes_list).union(
        *(natural_lists(kind.options) for kind in KINDS.values())
    )
    found: dict[str, Setting] = {}
    for name, table in tables.items():
        path = ("settings", name)
        problems.check_label(name, path)
        if not isinstance(table, dict):
            problems.add(path, f"{shown(table)} given; expected a table, [settings.{name}]")
            continue
        for member in problems.members(table, lists, path, _axis_label):
            full_name = member.named(name)
            if full_name in found:
                problems.add(path, f"two members of the matrix are named {full_name}; give each value once")
            found[full_name] = _read_setting(full_name, name, member.table, problems, kind)
    return list(found.values())


def _axis_label(path: tuple[str, ...], value: Any) -> str | None:
    control = CONTROLS.get(path[0])
    return control.axis(path, value) if control else None


def _read_setting(name: str, written_as: str, table: TomlTable, problems: Problems, kind: Kind) -> Setting:
    path = ("settings", written_as)
    controls: TomlTable = {}
    changes: TomlTable = {}
    change_paths: dict[str, tuple[str, ...]] = {}
    probes: Probes | None = None
    part: str | None = None
    for key, value in table.items():
        if key == "workload":
            if isinstance(value, dict):
                changes |= value
                change_paths |= {option: (*path, "workload", option) for option in value}
            else:
                problems.add((*path, key), f'{shown(value)} given; expected a table such as {{ engine = "psync" }}')
        elif key == "part":
            if isinstance(value, str) and value and is_one_line(value):
                part = value
            else:
                problems.add((*path, key), f'{shown(value)} given; expected a name such as "old"')
        elif key == "probes":
            probes = read_probes(value, (*path, key), problems)
        elif key in CONTROLS:
            if both := [other for other in CONTROLS[key].excludes if other in table]:
                problems.add((*path, key), f"{' and '.join(both)} given too; keep one of them")
            try:
                controls[key] = _control_value(CONTROLS[key], value, kind)
            except (IolabError, ValueError) as error:
                problems.add((*path, key), str(error))
        elif key in SHORTCUTS:
            changes[key] = value
            change_paths[key] = (*path, key)
        else:
            problems.add((*path, key), _unknown(key))
    return Setting(name, written_as, controls, changes, change_paths, probes, part)


def _unknown(key: str) -> str:
    """Why a setting has no such key: it may be an option of a workload."""
    known = [*CONTROLS, *SHORTCUTS, "part", "probes", "workload"]
    options = dict.fromkeys(name for kind in KINDS.values() for name in kind.options.model_fields)
    if nearest(key, known) is None and (option := nearest(key, options)):
        return f"unknown setting; an option of the workload is changed by workload = {{ {option} = ... }}"
    return unknown("setting", key, known)


def _control_value(control: Control, value: Any, kind: Kind) -> Any:
    """InputError if the value is wrong, or the machine has no such thing."""
    if isinstance(value, str) and not is_one_line(value):
        raise InputError(f"{shown(value)} given; expected a text on one line, without control characters")
    if kind != "model":
        if control.of_models_only and kind != "guest":
            raise InputError('only for a simulated machine, machine = "model:NAME"')
        return control.validate(value)
    validated = control.validate_for_model(value)
    if control.on_model(validated, drives=1) is None:
        raise InputError("the simulated machine has no mechanism for it")
    return validated
