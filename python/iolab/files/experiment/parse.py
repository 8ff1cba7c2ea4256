"""From an experiment's text to an `Experiment`, or to everything that is wrong with it, a line each."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from iolab import _native
from iolab.base import data
from iolab.base.bounded_file import EXPERIMENT_BYTES_MAX, read_bounded
from iolab.base.errors import InputError, nearest, unknown
from iolab.base.option import shown
from iolab.base.plain_text import counted
from iolab.base.problem import Problems
from iolab.base.quantity import format_bytes
from iolab.base.toml import TomlTable, parse
from iolab.domain.experiment import Comparison, Experiment
from iolab.domain.machine import HOST, kind_of, unknown_machine
from iolab.domain.metric import parse_key
from iolab.domain.trial import LoadPhase, ScratchTarget
from iolab.domain.trial.trial import Kind
from iolab.files.experiment import metric_keys
from iolab.files.experiment.alone import with_groups_alone
from iolab.files.experiment.machine import READERS, ExperimentPlan, ExperimentText
from iolab.files.experiment.options import METRICS_MAX, CompareOptions, ExperimentOptions
from iolab.files.experiment.setting import Setting, and_also, read_probes, read_settings
from iolab.files.experiment.tune import read_tuning
from iolab.files.experiment.workloads import Workload, read_workloads, variants

TRIALS_PER_ROUND_MAX = 100_000


def load(path: Path, *, probes: Sequence[str] = (), machine: str | None = None) -> Experiment:
    """Read and validate the experiment at `path`; InputError names file and line of each problem. See `loads`."""
    return loads(read_text(path), str(path), probes=probes, machine=machine)


def find(name: Path) -> Path:
    """The file of that name; if there is none, the experiment that comes with iolab under this name.

    Raises:
        InputError: a word that is neither. A path and a name with a suffix are left to `read_text`.
    """
    if len(name.parts) != 1 or name.suffix or os.path.lexists(name):
        return name
    known = data.experiments()
    if str(name) not in known:
        close = nearest(str(name), known)
        remedy = "iolab list experiments shows those that come with iolab"
        raise InputError(
            "no such file, nor an experiment that comes with iolab",
            where=str(name),
            remedy=f"did you mean {close}? {remedy}" if close else remedy,
        )
    return known[str(name)]


def read_text(path: Path) -> str:
    """The text of an experiment's file or job file, or the text from a pipe: `iolab run <(generate)`. InputError if it
    is too long, not UTF-8, or none of them."""
    content = read_bounded(path, EXPERIMENT_BYTES_MAX, "an experiment", pipes=True)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8 text at byte {error.start}; an experiment is a TOML file", where=str(path)
        ) from None


def loads(
    text: str,
    name: str,
    *,
    probes: Sequence[str] = (),
    machine: str | None = None,
    already_run: bool = False,
    copies: Path | None = None,
) -> Experiment:
    """Validate an experiment's text; `name` stands for the file in errors.

    Args:
        probes: also on, under every setting.
        machine: instead of the one that the text names; its [target] then counts only on the kind of machine that it
            was written for.
        already_run: what a simulated machine can do was checked before. copies: of a run's experiment, in which the run
        keeps the files that it names.
    """
    document = parse(text, name)
    problems = Problems(document, copies)
    top = problems.validated(ExperimentOptions, document.values, (), "an experiment") or ExperimentOptions()
    tables = {key: value for key, value in document.values.items() if isinstance(value, dict)}

    chosen = document.values.get("machine", HOST) if machine is None else machine
    kind = _kind(chosen, problems)
    given_by = None if machine is None else "--machine"
    reader = READERS[kind](ExperimentText(str(chosen), given_by, document.values, problems))
    target = reader.target
    if not document.values.get("workloads"):
        example = 'such as [workloads.reads] with duration = "2s"'
        problems.add(("workloads",), f"no workload; an experiment needs at least one, {example}")
    workloads = read_workloads(tables.get("workloads", {}), problems)
    settings = read_settings(tables.get("settings", {}), problems, kind)
    settings = with_groups_alone(settings, workloads, problems)
    of_all = read_probes(tables.get("probes", {}), ("probes",), problems)
    _check_parts(settings, top, problems, boots_nothing=kind != "host", given="rounds_per_boot" in document.values)
    compare = _read_compare(tables.get("compare", {}), settings, problems)
    under = variants(workloads, settings, problems)
    given = {
        setting.name: and_also(of_all if setting.probes is None else setting.probes, probes) for setting in settings
    }
    of_settings = reader.probes(given, settings)
    found = reader.machine(ExperimentPlan(settings, workloads, under, of_settings, already_run))
    tuning = None
    if "tune" in document.values:
        keys = None if compare is None else compare.metrics
        tuning = read_tuning(document.values["tune"], workloads, keys, problems, kind)
        if len(settings) > 1:
            what = f"{counted(len(settings), 'setting')}; with [tune] one at most, which the candidates change"
            problems.add(("settings", settings[1].written_as), what)
    if len(workloads) * len(settings) > TRIALS_PER_ROUND_MAX:
        what = f"{counted(len(workloads), 'workload')} under {counted(len(settings), 'setting')}"
        problems.add(("workloads",), f"{what}; expected at most {TRIALS_PER_ROUND_MAX} trials a round")
    problems.raise_any()
    assert target is not None and compare is not None and found is not None, "without problems, everything is there"

    experiment = Experiment(
        title=top.title,
        machine=found,
        rounds=top.rounds,
        seed=top.seed,
        own_draws=top.draws == "own",
        target=target,
        workloads={workload.name: workload.compiled for workload in workloads},
        settings={setting.name: setting.controls for setting in settings},
        variants=under,
        compare=compare,
        text=text,
        probes=of_settings,
        parts={setting.name: setting.part for setting in settings if setting.part is not None},
        rounds_per_boot=top.rounds_per_boot,
        tuning=tuning,
    )
    if not already_run:
        _check_loads(experiment, workloads, settings, problems)
    if found.is_of_host:
        _check_together(workloads, experiment.target.devices, problems)
    _check_space(experiment, workloads, problems)
    _check_named_paths(experiment, workloads, problems)
    metric_keys.check(experiment, settings, problems)
    problems.raise_any()
    return experiment


def _read_compare(table: TomlTable, settings: list[Setting], problems: Problems) -> Comparison | None:
    options = problems.validated(CompareOptions, table, ("compare",), "compare")
    names = [setting.name for setting in settings]
    # From the table as written, so that a wrong margin does not hide a wrong name.
    baseline = table.get("baseline", names[0] if names else None)
    if isinstance(baseline, str) and baseline not in names:
        problems.add(("compare", "baseline"), f'"{baseline}": {unknown("setting", baseline, names)}')
    metrics = table.get("metrics")
    if metrics == []:
        problems.add(("compare", "metrics"), "an empty list; leave it out to compare the default metrics")
    if isinstance(metrics, list) and len(metrics) > METRICS_MAX:
        problems.add(("compare", "metrics"), f"{counted(len(metrics), 'key')}; expected at most {METRICS_MAX:,}")
        return None
    for text in metrics if isinstance(metrics, list) else ():
        try:
            parse_key(str(text))
        except InputError as error:
            problems.add(("compare", "metrics"), str(error))
    if options is None or not isinstance(baseline, str):
        return None
    return Comparison(baseline, options.metrics, options.same_within, options.same_instructions)


def _check_parts(
    settings: list[Setting], top: ExperimentOptions, problems: Problems, *, boots_nothing: bool, given: bool
) -> None:
    """Settings of several parts are measured in turns, a boot each: every setting belongs to one."""
    parts = {setting.part for setting in settings if setting.part is not None}
    if not parts:
        if given:
            problems.add(("rounds_per_boot",), "no setting has a part; leave it out")
        return
    if boots_nothing:
        problems.add(("settings",), "no machine has to be booted by hand: its kernel is a control; leave out part")
        return
    for setting in settings:
        if setting.part is None:
            names = ", ".join(sorted(parts))
            problems.add(("settings", setting.written_as), f"no part, and other settings have one: {names}; give it")
    if len(parts) == 1:
        problems.add(("settings",), f"all are of part {next(iter(parts))}; expected two parts or more, or none")
    if top.rounds % top.rounds_per_boot:
        what = f"{top.rounds} given, which is no multiple of rounds_per_boot = {top.rounds_per_boot}"
        problems.add(("rounds",) if not given else ("rounds_per_boot",), what)


def _check_space(experiment: Experiment, workloads: list[Workload], problems: Problems) -> None:
    if not isinstance(experiment.target, ScratchTarget):
        return  # only the machine can show what it holds
    size_bytes = experiment.target.size_bytes * experiment.target.devices
    for workload in workloads:
        for setting in experiment.settings:
            needed = experiment.workload_under(workload.name, setting).file_bytes
            if needed > size_bytes:
                what = f"its files need {format_bytes(needed)}, the target holds {format_bytes(size_bytes)}"
                problems.add(
                    ("workloads", workload.written_as), f"{what}; make [target] size larger or file_size smaller"
                )
                break


def _check_named_paths(experiment: Experiment, workloads: list[Workload], problems: Problems) -> None:
    """Checks that a workload's own files lie in the target; otherwise I/O would go to another place."""
    target = experiment.target
    for workload in workloads:
        for setting in experiment.settings:
            named = experiment.workload_under(workload.name, setting).options.named_paths
            if target.kind == "device" and len(target.paths) > 1 and named not in ([], target.paths):
                what = f"expected paths = {shown(named)}, in the order in which workload {workload.name} names them"
                problems.add(("target", "paths"), what)
                continue
            for path in named:
                if not target.holds(path):
                    what = f"names {path}, which is not in the {target.kind} target"
                    remedy = "name it in [target], or set relocate = true to use a file in the target instead"
                    problems.add(("workloads", workload.written_as), f"{what}; {remedy}")


def _check_together(workloads: list[Workload], devices: int, problems: Problems) -> None:
    """On a host, what takes bare devices leaves no files for others to read and write."""
    for workload in workloads:
        phases = workload.compiled.phases(0, devices)
        for phase in phases:
            if phase.beside is not None and phase.takes_devices:
                what = (
                    f"{phase.name} takes the target's devices for itself; only a simulated machine has others beside it"
                )
                problems.add(("workloads", workload.written_as, "parts", phase.name), what)


def _check_loads(
    experiment: Experiment, workloads: list[Workload], settings: list[Setting], problems: Problems
) -> None:
    """What no machine can run is refused by the code that would run it, before anything is measured."""
    seen: set[str] = set()
    for workload in workloads:
        for setting in settings:
            changed = (workload.name, setting.name) in experiment.variants
            phases = experiment.workload_under(workload.name, setting.name).phases(0, experiment.target.devices)
            for load in (json.dumps(phase.load) for phase in phases if isinstance(phase, LoadPhase)):
                if load in seen:
                    continue
                seen.add(load)
                try:
                    _native.check_load(load)
                except ValueError as error:
                    table = ("settings", setting.written_as) if changed else ("workloads", workload.written_as)
                    problems.add(table, str(error))
            if not experiment.variants:
                break


def _kind(machine: object, problems: Problems) -> Kind:
    """The machine's kind. If `machine` names none, that is noted and the rest of the file is read as for a host."""
    kind = kind_of(machine)
    if kind is None and isinstance(machine, str):  # a wrong type is reported already, with the others
        problems.add(("machine",), f'"{machine}": {unknown_machine(machine)}')
    return kind or "host"
