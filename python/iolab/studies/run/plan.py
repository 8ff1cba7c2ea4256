"""Which trials, in which order: randomised complete blocks.

Every round runs each workload under each setting once, in an order drawn anew: drift of the machine then falls on all
settings alike, and comparisons can be paired by round. A round is planned at a time, so that a run of any length is
planned in the memory of one round.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from iolab.base.errors import InputError
from iolab.domain import control
from iolab.domain.trial import Trial
from iolab.domain.trial.trial import derive_seed
from iolab.files.experiment import Experiment
from iolab.files.store.state import RunState


@dataclass(frozen=True)
class Plan:
    """A function of experiment and seed: a resumed run derives the same one again."""

    experiment: Experiment
    seed: int

    def round(self, number: int) -> list[Trial]:
        """The trials of the round of this number, from 0, in their order."""
        return trials(self.experiment, 1, seed=self.seed, first_round=number)

    def check(self) -> None:
        """InputError if a setting has no meaning for the target: reported before anything is measured."""
        for trial in self.round(0):
            control.amend(trial)

    def missing(self, number: int, state: RunState) -> list[Trial]:
        """The round's trials that are not finished. InputError if a finished one differs from the plan."""
        trials = self.round(number)
        for trial in trials:
            event = state.finished.get(trial.trial)
            planned = trial.workload, trial.setting, trial.seed
            if event and (event["workload"], event["setting"], event["seed"]) != planned:
                version = "as it was" if state.started is None else state.started["iolab_version"]
                raise InputError(
                    f"trial {trial.trial} of the run is not the one that this iolab would plan",
                    remedy=f"resume with iolab {version}, or start a new run",
                )
        return [trial for trial in trials if trial.trial not in state.finished]

    def to_come(self, rounds: range, state: RunState) -> Counter[str]:
        """How many trials of each workload the rounds still hold."""
        settings = len(self.experiment.settings)
        trials = Counter({workload: len(rounds) * settings for workload in self.experiment.workloads})
        trials.subtract(event["workload"] for event in state.finished.values() if event["round"] in rounds)
        return trials


def trials(experiment: Experiment, rounds: int, *, seed: int, first_round: int = 0) -> list[Trial]:
    """The trials of `rounds` rounds from `first_round` on, numbered from the first round's first.

    A function of its arguments: a resumed run derives the same list again. A trial's own seed depends on round and
    workload, and on the setting only if each trial draws its own: else all settings of a round see the same offsets.
    """
    return [trial for round in range(first_round, first_round + rounds) for trial in _round(experiment, round, seed)]


def _round(experiment: Experiment, round: int, seed: int) -> list[Trial]:
    pairs = [(workload, setting) for workload in experiment.workloads for setting in experiment.settings]
    # Sorting by a hash is a uniform shuffle that no version of a random library changes.
    pairs.sort(key=lambda pair: derive_seed(seed, "order", round, *pair))
    return [
        _trial(
            experiment,
            round,
            position,
            len(pairs),
            workload,
            setting,
            derive_seed(seed, "trial", round, workload, *([setting] if experiment.own_draws else [])),
        )
        for position, (workload, setting) in enumerate(pairs)
    ]


def _trial(
    experiment: Experiment, round: int, position: int, per_round: int, workload: str, setting: str, seed: int
) -> Trial:
    phases = experiment.workload_under(workload, setting).phases(seed, experiment.target.devices)
    return Trial(
        trial=round * per_round + position,
        round=round,
        position=position,
        workload=workload,
        setting=setting,
        seed=seed,
        machine=experiment.machine.name,
        target=experiment.target,
        controls=experiment.settings[setting],
        probes=experiment.probes.get(setting, {}),
        phases=experiment.machine.phases(setting, phases),
        **experiment.machine.of_trial(setting),
    )
