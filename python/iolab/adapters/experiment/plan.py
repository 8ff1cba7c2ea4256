"""Which trials, in which order: randomised complete blocks.

Every round runs each workload under each setting once, in an order drawn anew: drift of the machine then falls on all
settings alike, and comparisons can be paired by round.
"""

from __future__ import annotations

from iolab.adapters import machine_file
from iolab.domain.experiment import Experiment
from iolab.domain.trial import Trial
from iolab.domain.trial.trial import derive_seed


def trials(experiment: Experiment, rounds: int, *, seed: int, first_round: int = 0) -> list[Trial]:
    """The trials of `rounds` rounds from `first_round` on, numbered from the first round's first.

    A function of its arguments: a resumed run derives the same list again. A trial's own seed depends on round and
    workload and not on the setting, so that all settings of a round see the same offsets.
    """
    return [trial for round in range(first_round, first_round + rounds) for trial in _round(experiment, round, seed)]


def _round(experiment: Experiment, round: int, seed: int) -> list[Trial]:
    pairs = [(workload, setting) for workload in experiment.workloads for setting in experiment.settings]
    # Sorting by a hash is a uniform shuffle that no version of a random library changes.
    pairs.sort(key=lambda pair: derive_seed(seed, "order", round, *pair))
    return [
        _trial(experiment, round, position, len(pairs), workload, setting, derive_seed(seed, "trial", round, workload))
        for position, (workload, setting) in enumerate(pairs)
    ]


def _trial(
    experiment: Experiment, round: int, position: int, per_round: int, workload: str, setting: str, seed: int
) -> Trial:
    phases = experiment.workload_under(workload, setting).phases(seed, experiment.target.devices)
    model = None if experiment.modelled is None else experiment.modelled.under[setting]
    return Trial(
        trial=round * per_round + position,
        round=round,
        position=position,
        workload=workload,
        setting=setting,
        seed=seed,
        machine=experiment.machine,
        target=experiment.target,
        controls=experiment.settings[setting],
        probes=experiment.probes.get(setting, {}),
        model=model,
        phases=phases if model is None else machine_file.in_memory(phases, model),
    )
