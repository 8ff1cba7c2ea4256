"""One look at a run that goes on until it is decided: which comparisons are still open.

The verdicts are those that the run's table will show. Their rule is sequential, so that looking after every round does
not spoil them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolab.domain.summary import summarise

if TYPE_CHECKING:
    from iolab.domain.measured_run import MeasuredRun


def undecided(run: MeasuredRun) -> list[str]:
    """The comparisons still undecided, each as `workload: key, candidate`. One that can't be decided, for want of
    positive values, is not waited for."""
    return [
        f"{comparison.workload}: {comparison.metric}, {comparison.setting}"
        for comparison in summarise(run).comparisons
        if comparison.judgement.verdict == "undecided" and comparison.judgement.ratio is not None
    ]
