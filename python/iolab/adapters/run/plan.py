"""The trials of a run, a round at a time, so that a run of any length is planned in the memory of one round."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iolab.adapters import control
from iolab.adapters.experiment import plan
from iolab.base.errors import InputError

if TYPE_CHECKING:
    from iolab.adapters.experiment import Experiment
    from iolab.adapters.store.state import RunState
    from iolab.domain.trial import Trial


@dataclass(frozen=True)
class Plan:
    """A function of experiment and seed: a resumed run derives the same one again."""

    experiment: Experiment
    seed: int

    def round(self, number: int) -> list[Trial]:
        return plan.trials(self.experiment, 1, seed=self.seed, first_round=number)

    def check(self) -> None:
        """InputError if a setting has no meaning for the target: said before anything is measured."""
        for trial in self.round(0):
            control.amend(trial)

    def missing(self, number: int, state: RunState) -> list[Trial]:
        """The round's trials that are not finished. InputError if a finished one is not what the plan says."""
        trials = self.round(number)
        for trial in trials:
            event = state.finished.get(trial.trial)
            if event and [event[name] for name in ("workload", "setting", "seed")] != [
                trial.workload,
                trial.setting,
                trial.seed,
            ]:
                raise InputError(
                    f"trial {trial.trial} of the run is not the one that this iolab would plan",
                    remedy=f"resume with iolab {state.started['iolab_version']}, or start a new run",
                )
        return [trial for trial in trials if trial.trial not in state.finished]

    def to_come(self, rounds: range, state: RunState) -> Counter[str]:
        """How many trials of each workload the rounds still hold."""
        settings = len(self.experiment.settings)
        trials = Counter({workload: len(rounds) * settings for workload in self.experiment.workloads})
        trials.subtract(event["workload"] for event in state.finished.values() if event["round"] in rounds)
        return trials
