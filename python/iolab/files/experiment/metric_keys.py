"""What is compared: keys of metrics that the trials of an experiment will have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iolab.base.errors import unknown
from iolab.base.problem import Problems
from iolab.domain.experiment import CompiledWorkload, Experiment
from iolab.domain.metric import ALL, IN_INSTRUCTIONS, METRICS, Key, parse_key
from iolab.domain.metric.row import is_kept
from iolab.domain.probe.instructions import NAME as INSTRUCTIONS
from iolab.domain.probe.instructions import ONLY_ON_GUESTS
from iolab.files.experiment.setting import Setting


def check(experiment: Experiment, settings: Sequence[Setting], problems: Problems) -> None:
    """A key names a phase that some workload has, an operation that is done in it, and what is measured of it; where a
    probe measures that, it is on under every setting."""
    workloads = [*experiment.workloads.values(), *experiment.variants.values()]
    keys = [parse_key(text) for text in experiment.compare.metrics or ()]
    wrong = [(key, lacks(key, workloads, experiment.target.devices)) for key in keys]
    wrong += [(key, _without_probe(key, experiment, settings)) for key in keys]
    if experiment.machine.kind != "model":
        shown = "only a simulated machine shows what flash programs"
        wrong += [(key, shown) for key in keys if METRICS[key.metric].scope == "flash"]
    for key, what in wrong:
        if what is not None:
            problems.add(("compare", "metrics"), f"{key}: {what}")
    compare, counts = experiment.compare, any(key.metric.endswith(IN_INSTRUCTIONS) for key in keys)
    if compare.same_instructions is not None and experiment.machine.kind != "guest" and not counts:
        problems.add(("compare", "same_instructions"), "nothing that is compared counts instructions; a guest does")


def lacks(key: Key, workloads: Iterable[CompiledWorkload], devices: int) -> str | None:
    """What all of the workloads lack of the key; None: one has it, if the metric's probe is on."""
    kept, names, ops = False, set(), set()
    wanted, op, name = key
    for workload in workloads:
        phases = [phase for phase in workload.phases(seed=0, devices=devices) if phase.measured]
        names |= {phase.name for phase in phases if len(phases) > 1}
        for phase in phases:
            if wanted in (None, phase.name if len(phases) > 1 else None):
                ops |= {ALL, *phase.offered}
                kept |= is_kept(METRICS[name], phase, op, phase.offered)
    if wanted is not None and wanted not in names:
        known = sorted(names)
        return unknown("phase", wanted, known) if known else "every workload has one measured phase; leave it out"
    where = "by any workload" if wanted is None else f"in {wanted}"
    if op not in ops:
        return f"no {op} is done {where}"
    return None if kept else f"it is not measured {where}"


def _without_probe(key: Key, experiment: Experiment, settings: Sequence[Setting]) -> str | None:
    probe = METRICS[key.metric].probe
    for setting in settings if probe is not None else ():
        if probe not in experiment.probes[setting.name]:
            if probe == INSTRUCTIONS and experiment.machine.kind != "guest":
                return ONLY_ON_GUESTS
            table = "[probes]" if setting.probes is None else f"probes of setting {setting.written_as}"
            return f"the probe {probe} is off under setting {setting.name}; add {probe} = true to {table}"
    return None
