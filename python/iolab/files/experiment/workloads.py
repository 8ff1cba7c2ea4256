"""The workloads of an experiment: kinds, matrices, and what a setting changes in them."""

from __future__ import annotations

from dataclasses import dataclass

from iolab.base.errors import unknown
from iolab.base.option import Options, natural_lists, shown
from iolab.base.problem import Path, Problems, dotted
from iolab.base.toml import TomlTable
from iolab.domain.experiment import CompiledWorkload
from iolab.domain.workload import KINDS, Kind
from iolab.domain.workload.kind import UnknownName
from iolab.files.experiment.setting import Setting


@dataclass(frozen=True)
class Workload:
    """A workload of the experiment, its matrix expanded."""

    name: str
    written_as: str
    """Its table's name in the file, before expansion."""
    table: TomlTable
    """Its options as written, matrix resolved."""
    compiled: CompiledWorkload


def read_workloads(tables: TomlTable, problems: Problems) -> list[Workload]:
    """Every member of every workload's matrix, in file order; problems are noted and their members left out."""
    found: dict[str, Workload] = {}
    for name, table in tables.items():
        path = ("workloads", name)
        problems.check_name(name, path)
        if not isinstance(table, dict):
            problems.add(path, f"{shown(table)} given; expected a table, [workloads.{name}]")
            continue
        kind = _kind(table, path, problems)
        if kind is None:
            continue
        options_table = {key: value for key, value in table.items() if key != "kind"}
        for member in problems.members(options_table, natural_lists(kind.options), path):
            options = _checked(kind, member.table, path, problems)
            full_name = member.named(name)
            if full_name in found:
                problems.add(path, f"two members of the matrix are named {full_name}; give each value once")
            if options is not None:
                found[full_name] = Workload(full_name, name, member.table, CompiledWorkload(kind.name, options))
    return list(found.values())


def variants(
    workloads: list[Workload], settings: list[Setting], problems: Problems
) -> dict[tuple[str, str], CompiledWorkload]:
    """(workload, setting) -> the workload with the setting's changes, for settings that change any."""
    result = {}
    for setting in settings:
        # The same problem with several workloads is one problem.
        found: dict[tuple[Path, str], list[str]] = {}
        for workload in workloads if setting.changes else ():
            kind = KINDS[workload.compiled.kind]
            aside = problems.aside()
            try:
                options = _checked(kind, kind.override(workload.table, setting.changes), (), aside)
            except UnknownName as error:
                options = None
                aside.add(error.key, str(error))
            for problem in aside.found():
                found.setdefault(problem, []).append(workload.name)
            if options is not None:
                result[workload.name, setting.name] = CompiledWorkload(kind.name, options)
        for (key, what), names in found.items():
            about = f"workload{'s' if len(names) > 1 else ''} {', '.join(names)}"
            # Blame the key that the setting gives; a conflict on another key is blamed on the setting as a whole.
            if given := setting.change_paths.get(str(key[-1])):
                problems.add(given, f"{about}: {what}")
            elif key and (given := setting.change_paths.get(str(key[0]))):
                problems.add(given, f"{about}: {dotted(key)}: {what}")
            else:
                problems.add(("settings", setting.written_as), f"{about}: {dotted(key)}: {what}")
    return result


def _kind(table: TomlTable, path: tuple[str, ...], problems: Problems) -> Kind | None:
    name = table.get("kind", "io")
    if isinstance(name, str) and name in KINDS:
        return KINDS[name]
    problems.add((*path, "kind"), f"{shown(name)}: {unknown('kind', str(name), KINDS)}")
    return None


def _checked(kind: Kind, table: TomlTable, path: tuple[str, ...], problems: Problems) -> Options | None:
    """The table as the kind's options; None with the problems noted."""
    options = problems.validated(
        kind.options, table, path, f"kind {kind.name}", listed_by=f"iolab list workloads {kind.name}"
    )
    if options is None:
        return None
    conflicts = list(kind.conflicts(options))
    for conflict in conflicts:
        problems.add((*path, *conflict.key), conflict.what)
    return None if conflicts else options
