"""When a run is complete: after a number of rounds, or as soon as nothing is undecided any more."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.domain.summary import summarise
from iolab.domain.verdict.looks import FIRST_LOOK, ROUNDS_MAX_UNTIL_DECIDED
from iolab.files.experiment.options import ROUNDS_MAX

if TYPE_CHECKING:
    from iolab.domain.measured_run import MeasuredRun
    from iolab.files.experiment import Experiment
    from iolab.files.store.state import RunState


@dataclass(frozen=True)
class Goal:
    """How many rounds a run is to have, and whether it may end before."""

    rounds: int
    until_decided: bool
    """Stop after a round that leaves nothing undecided; `rounds` is then the most."""

    @staticmethod
    def at_start(experiment: Experiment, rounds: int | None, *, until_decided: bool) -> Goal:
        """As many rounds as asked for; else as many as the experiment has, which until decided is the most. InputError
        if they are too few."""
        stated = not until_decided or "rounds" in tomllib.loads(experiment.text)
        if rounds is None and until_decided and stated and experiment.rounds < FIRST_LOOK and not experiment.parts:
            raise InputError(
                f"rounds = {experiment.rounds} is the most, and the first look is after {FIRST_LOOK} rounds",
                where="--until-decided",
                remedy=f"allow more: --rounds {ROUNDS_MAX_UNTIL_DECIDED}",
            )
        default = experiment.rounds if stated else ROUNDS_MAX_UNTIL_DECIDED * experiment.rounds_per_boot
        return _checked(Goal(default if rounds is None else rounds, until_decided))

    @staticmethod
    def on_resume(state: RunState, rounds: int | None, until_decided: bool | None) -> Goal:
        """The goal that the run was started with, or more rounds. InputError for a change that breaks the sequential
        rule's promise, which rests on the most rounds being fixed before the first."""
        before = Goal(state.rounds, state.started is not None and state.started["until_decided"])
        asked = Goal(
            before.rounds if rounds is None else rounds,
            before.until_decided if until_decided is None else until_decided,
        )
        if asked != before and (asked.until_decided or before.until_decided):
            raise InputError(
                f"the run was started {before}, which can't be changed once it has begun",
                where="--resume",
                remedy="resume without --rounds and --until-decided, or start a new run",
            )
        finished = {event["round"] for event in state.finished.values()}
        # Those above are a search's, which confirm its answer.
        measured = 1 + max((one for one in finished if one < before.rounds), default=-1)
        if asked.rounds < measured:
            raise InputError(
                f"{asked.rounds} given, and the run has {measured}; expected {measured} or more",
                where="--rounds",
                remedy="nothing that was measured is dropped: a shorter run is a new run",
            )
        return _checked(asked)

    def __str__(self) -> str:
        return (
            f"until decided, {counted(self.rounds, 'round')} at most"
            if self.until_decided
            else f"for {counted(self.rounds, 'round')}"
        )


def _checked(goal: Goal) -> Goal:
    if goal.rounds > ROUNDS_MAX:
        raise InputError(f"{str(goal.rounds)[:20]} given; expected {ROUNDS_MAX} at most", where="--rounds")
    least = FIRST_LOOK if goal.until_decided else 1
    if goal.rounds < least:
        raise InputError(f"{goal.rounds} given; expected {least} or more", where="--rounds")
    return goal


def undecided(run: MeasuredRun) -> list[str]:
    """The comparisons still undecided, each as `workload: key, candidate`. One that can't be decided, for want of
    positive values, is not waited for.

    The verdicts are those that the run's table will show. Their rule is sequential, so that looking after every round
    does not spoil them.
    """
    return [
        f"{comparison.place}: {comparison.metric}, {comparison.setting}"
        for comparison in summarise(run).comparisons
        if comparison.judgement.verdict == "undecided" and comparison.judgement.ratio is not None
    ]
