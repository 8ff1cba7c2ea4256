"""One look at a run that goes on until it is decided: which comparisons are still open. The rule is sequential, so that
looking after every round does not spoil the verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iolab.experiment import Experiment
    from iolab.store import RunData


def undecided(run: RunData, experiment: Experiment, *, rounds: int, rounds_max: int) -> list[str]:
    """The comparisons that the first `rounds` rounds leave undecided, each as `workload: key, candidate`. One that
    can't be decided, for want of positive values, is not waited for."""
    import polars as pl

    from iolab.metric import METRICS, parse_key
    from iolab.verdict import judge_sequential

    comparisons = list(_compared(run, experiment))
    found = []
    for workload, key, candidate in comparisons:
        values = run.values(key, workload).filter(pl.col("round") < rounds)
        if not {experiment.compare.baseline, candidate} <= set(values.columns):
            continue
        judgement = judge_sequential(
            values[experiment.compare.baseline].to_list(),
            values[candidate].to_list(),
            better=METRICS[parse_key(key).metric].better,
            max_rounds=rounds_max,
            same_within=experiment.compare.same_within,
            comparisons=len(comparisons),
        )
        if judgement.verdict == "undecided" and judgement.ratio is not None:
            found.append(f"{workload}: {key}, {candidate}")
    return found


def _compared(run: RunData, experiment: Experiment) -> Iterator[tuple[str, str, str]]:
    """(workload, key, candidate) of everything that is compared; a metric without a phase means it of every phase."""
    from iolab.metric import DEFAULT_COMPARED

    wanted = experiment.compare.metrics or DEFAULT_COMPARED
    for workload in experiment.workloads:
        for key in run.keys_of(workload):
            if key in wanted or key.rpartition("/")[2] in wanted:
                for candidate in experiment.settings:
                    if candidate != experiment.compare.baseline:
                        yield workload, key, candidate
