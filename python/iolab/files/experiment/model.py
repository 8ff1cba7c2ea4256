"""What of an experiment is different when its machine is a simulated one: the machine under each setting, and
everything that it has no mechanism for, reported before anything runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from iolab.base.bounded_file import is_file
from iolab.base.errors import InputError
from iolab.base.former_names import renewed_key
from iolab.base.problem import Problems
from iolab.base.toml import KeyPath
from iolab.domain import native_types as native
from iolab.domain import simulated_machine
from iolab.domain.control import CONTROLS
from iolab.domain.experiment import CompiledWorkload
from iolab.domain.machine import MODEL_PREFIX
from iolab.domain.probe import Probes
from iolab.domain.simulated_machine import InvalidMachine
from iolab.domain.trial import Phase
from iolab.domain.workload import KINDS
from iolab.files import machine_file
from iolab.files.experiment.setting import Setting
from iolab.files.experiment.workloads import Workload
from iolab.files.machine_file import Change, ChangedMachine, InvalidChange, MachineFile
from iolab.files.machine_file.machine_file import RENAMED_KEYS

_UNREAD_OPTION = (
    "nothing in this machine reads it: engines of one sort cost the same, as registered buffers and files do; caches "
    "are dropped for buffered I/O alone, and polling takes queue.io_poll = 1; leave it out"
)
Machines = dict[str, ChangedMachine]
"""By setting."""


def read_machine(machine: str, problems: Problems, *, given_by: str | None) -> MachineFile | None:
    """The file of `model:NAME`, None with the problem noted when there is none such.

    Args:
        given_by: the option of the command line that names it; None: the experiment does.

    Raises:
        InputError: the machine's file is wrong, on which line.
    """
    directory = Path(problems.file).parent
    try:
        return machine_file.read(machine, directory, copies=problems.copies or _copies_of_no_other(machine, directory))
    except InputError as error:
        if error.where is not None:
            raise
        if given_by is not None:
            raise InputError(error.what, where=given_by) from None
        problems.add(("machine",), error.what)
        return None


def _copies_of_no_other(machine: str, directory: Path) -> Path | None:
    """The directory of copies, for an experiment that somebody took out of a run together with its files; None if the
    machine's file itself exists."""
    name = machine.removeprefix(MODEL_PREFIX)
    return directory / "files" if name.endswith(".toml") and not is_file(directory / name) else None


def machines_under(settings: Sequence[Setting], machine: MachineFile, problems: Problems) -> Machines:
    """The machine under each setting, settings whose changes lead nowhere left out."""
    found = {}
    for setting in settings:
        for name in _of_drives(setting) if machine.drives == 0 else ():
            problems.add(("settings", setting.written_as, name), "the machine has no drives, so nothing reads it")
        try:
            found[setting.name] = machine_file.changed(machine, _changes(setting, machine.drives))
        except InvalidChange as error:
            _blame(error.change, error, problems)
    return found


def check(
    machine: MachineFile,
    machines: Machines,
    settings: Sequence[Setting],
    workloads: Sequence[Workload],
    under: Mapping[tuple[str, str], CompiledWorkload],
    problems: Problems,
) -> None:
    """Notes what the model cannot be or do.

    Raises:
        InputError: the machine's file describes none, whatever the settings change.
    """
    try:
        simulated_machine.check(machine.table)
    except InvalidMachine as error:
        raise InputError(str(error), where=machine.where(error.path)) from None
    possible: dict[str, bool] = {}
    members: dict[tuple[str, str], list[tuple[Workload, CompiledWorkload]]] = {}
    for setting in settings:
        changed = machines.get(setting.name)
        if changed is None:
            continue
        for workload in workloads:
            compiled = under.get((workload.name, setting.name), workload.compiled)
            phases = compiled.phases(seed=0, devices=machine.places)
            if (cpus := setting.controls.get("cpus")) is not None:
                phases = [phase.on_cpus(cpus) for phase in phases]
            if setting.controls.get("drop_caches") and not machine_file.caches_files(phases):
                what = f"the workload {workload.name} goes past the page cache, so nothing reads it; leave it out"
                problems.add(("settings", setting.written_as, "drop_caches"), what)
            table = simulated_machine.with_groups(changed.table, phases)
            # The model's answer is the same for equal machines, and most settings and workloads have equal ones.
            if (text := json.dumps(table)) not in possible:
                possible[text] = _is_possible(table, changed, setting, workload, machine, problems)
            if possible[text]:
                refusals = [refusal for phase in phases for refusal in machine_file.refused(phase, changed.table)]
                refusals += machine_file.holes(phases, changed.table)
                for refusal in refusals:
                    problems.add(_blamed(refusal, workload, setting, problems), refusal.what)
                if not refusals:
                    _check_read(table, changed, workload, phases, problems)
                    if not setting.changes or (workload.name, setting.name) in under:
                        _check_options_read(changed.table, machine, workload, compiled, setting, problems)
            members.setdefault((workload.written_as, setting.name), []).append((workload, compiled))
    for (_, name), alike in members.items():
        if name in machines:
            _check_members(machines[name].table, machine, alike, problems)


def _check_read(
    table: native.MachineFile,
    changed: ChangedMachine,
    workload: Workload,
    phases: Sequence[Phase],
    problems: Problems,
) -> None:
    """Notes what the setting changes of the machine that none of the workload's measured phases reads: it would compare
    the machine with itself. What a setting gives of several drives is read where that of one is."""
    given: dict[KeyPath, list[str]] = {}
    for change in changed.changes:
        given.setdefault(change.given_at, []).append(".".join(change.key))
    keys = [key for keys in given.values() for key in keys]
    unread = machine_file.unread(table, [phase for phase in phases if phase.measured], keys)
    for given_at, of_setting in given.items():
        if all(key in unread for key in of_setting):
            key = of_setting[0]
            reader = "nothing in this machine reads it"
            if key not in machine_file.unread(table, phases, [key]):
                reader = "only phases that are not measured, such as laying out files, read it"
            what = f"{reader} under the workload {workload.name}"
            when = unread[key]
            problems.add(given_at, f"{what}; it is read when {when}" if when else f"{what}, or any other")


def _check_options_read(
    table: native.MachineFile,
    machine: MachineFile,
    workload: Workload,
    compiled: CompiledWorkload,
    setting: Setting,
    problems: Problems,
) -> None:
    """Notes each option that the setting changes or the workload has, and that this machine does not read: it would
    compare the machine with itself, or pretend."""
    kind = KINDS[workload.compiled.kind]

    def phases_without(key: str) -> list[Phase] | None:
        table = {name: value for name, value in given.items() if name != key}
        if key in setting.changes and key in workload.table:
            table[key] = workload.table[key]
        try:
            options = kind.options.model_validate({key: value for key, value in table.items() if key != "kind"})
        except ValueError:
            return None
        return None if any(kind.conflicts(options)) else CompiledWorkload(kind.name, options).phases(0, machine.places)

    given = kind.override(workload.table, setting.changes) if setting.changes else workload.table
    ours = compiled.phases(0, machine.places)
    for key in {**workload.table, **setting.changes}:
        if key == "engine" and key not in setting.changes:
            continue  # by itself it determines who does the I/O, and compares nothing
        theirs = phases_without(key)
        if theirs is not None and _is_same_to(table, ours, theirs):
            problems.add(_blamed(machine_file.Refusal(key, ""), workload, setting, problems), _UNREAD_OPTION)


def _check_members(
    table: native.MachineFile,
    machine: MachineFile,
    members: Sequence[tuple[Workload, CompiledWorkload]],
    problems: Problems,
) -> None:
    """Notes the option of a matrix that distinguishes two members, and that this machine does not read."""
    for (one, of_one), (other, of_other) in pairwise(members):
        if _is_same_to(table, of_one.phases(0, machine.places), of_other.phases(0, machine.places)):
            differ = [key for key, value in other.table.items() if one.table.get(key) != value]
            for key in differ:
                problems.add(("workloads", other.written_as, key), _UNREAD_OPTION)


def _is_same_to(table: native.MachineFile, ours: Sequence[Phase], theirs: Sequence[Phase]) -> bool:
    """Whether what is measured differs, and in nothing that the machine reads."""
    measured = [[phase for phase in phases if phase.measured] for phases in (ours, theirs)]
    read = [[machine_file.as_read(phase, table) for phase in phases] for phases in measured]
    return measured[0] != measured[1] and read[0] == read[1]


def check_probes(
    probes: Mapping[str, Probes], machines: Machines, settings: Sequence[Setting], problems: Problems
) -> None:
    """Notes the probes that the simulated machine does not have."""
    for setting in settings:
        for name in probes[setting.name] if setting.name in machines else ():
            if reason := machine_file.probe_refused(name, machines[setting.name].table):
                path = ("probes",) if setting.probes is None else ("settings", setting.written_as, "probes")
                problems.add((*path, name), reason)


def check_no_traces(probes: Mapping[str, Probes], settings: Sequence[Setting], problems: Problems) -> None:
    """Notes the traces that are asked for on a host, where blktrace and trace-cmd make them."""
    for setting in settings:
        if probes[setting.name].get("block", {}).get("trace", "no") != "no":
            path = ("probes",) if setting.probes is None else ("settings", setting.written_as, "probes")
            what = "iolab writes traces of simulated machines; of a host, blktrace and trace-cmd do, beside the run"
            problems.add((*path, "block", "trace"), what)


def _changes(setting: Setting, drives: int) -> list[Change]:
    return [
        Change(renewed_key(key, RENAMED_KEYS, f"settings.{setting.name}"), value, _given_at(setting, name, key))
        for name, control in CONTROLS.items()
        if name in setting.controls
        for key, value in (control.on_model(setting.controls[name], drives) or {}).items()
    ]


def _of_drives(setting: Setting) -> list[str]:
    """Its controls that change keys of drives."""
    controls = {name: CONTROLS[name].on_model(value, 1) or {} for name, value in setting.controls.items()}
    return [name for name, keys in controls.items() if any(key[0] == "drives" for key in keys) and name != "machine"]


def _given_at(setting: Setting, control: str, key: tuple[str, ...]) -> tuple[str, ...]:
    path = ("settings", setting.written_as, control)
    return (*path, ".".join(key)) if control == "machine" else path


_ASKED_BY: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("cgroups",): ("weights", "groups"),
    ("io_cost",): ("controller", "io_cost_model", "io_cost_qos"),
}
"""The options of a workload that give a machine such a table."""


def _is_possible(
    table: native.MachineFile,
    changed: ChangedMachine,
    setting: Setting,
    workload: Workload,
    machine: MachineFile,
    problems: Problems,
) -> bool:
    """Notes why not. A cell of the setting `affinity` that this kernel or these CPUs cannot do is no problem, as on a
    host: its trials are impossible, and the others run."""
    try:
        simulated_machine.check(table)
    except InvalidMachine as error:
        if error.is_of_cell and "affinity" in setting.controls and simulated_machine.is_detailed(table):
            return False
        if table != changed.table and (asked := _ASKED_BY.get(error.path[:1])):
            places = [("workloads", workload.written_as, option) for option in asked]
            problems.add(next(filter(problems.has, places), places[0]), str(error))
        elif change := changed.blamed(error.path):
            _blame(change, error, problems)
        else:  # a key of the file no longer fits what the setting changes
            problems.add(("settings", setting.written_as), f"{error} ({machine.where(error.path)})")
        return False
    return True


def _blame(change: Change, error: InvalidMachine, problems: Problems) -> None:
    named_already = error.key == change.given_at[-1]
    problems.add(change.given_at, error.what if named_already else str(error))


def _blamed(refusal: machine_file.Refusal, workload: Workload, setting: Setting, problems: Problems) -> tuple[str, ...]:
    """Where the option is given: in the setting, in the workload's job, else in the workload."""
    if given := setting.change_paths.get(refusal.key):
        return given
    if refusal.key in setting.controls:
        return ("settings", setting.written_as, refusal.key)
    path = ("workloads", workload.written_as)
    of_job = (*path, "jobs", refusal.job or "", refusal.key)
    return of_job if problems.has(of_job) else (*path, refusal.key)
