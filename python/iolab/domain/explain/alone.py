"""Where the time of an I/O goes under each setting by itself, for numbers that nothing is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iolab.domain.explain.budget import APPLICATION, budget
from iolab.domain.explain.place import SETTING, WORKLOAD, arms_of

if TYPE_CHECKING:
    import polars as pl

IN_BLOCK = "block_ns_per_io"
"""The metric of each phase that the block probe has seen."""
NOT_IN_LATENCY = APPLICATION.removesuffix("_ns_per_io")


@dataclass(frozen=True)
class StageTimes:
    """The stages of an I/O's latency, means over the rounds that have all numbers."""

    workload: str
    phase: str
    """Empty if the workload has one."""
    setting: str
    ns_per_io: dict[str, float]
    """By stage of `iolab.domain.explain.budget`, in the order in which an I/O meets them; their sum is the latency."""

    @property
    def latency_ns(self) -> float:
        """The mean."""
        return sum(self.ns_per_io.values())


def stage_times(frame: pl.DataFrame) -> Iterator[StageTimes]:
    """Of each workload, setting and phase that the block probe has measured. `frame` has a row per workload, setting
    and round, a column per metric."""
    prefixes = [name.removesuffix(IN_BLOCK) for name in frame.columns if name.rpartition("/")[2] == IN_BLOCK]
    for workload, setting in frame.select(WORKLOAD, SETTING).unique(maintain_order=True).iter_rows():
        arms = arms_of(frame, (workload, setting, setting))
        for prefix in prefixes:
            if found := budget(arms, prefix):
                stages = {stage: found.baseline[stage] for stage in found.stages if stage != NOT_IN_LATENCY}
                yield StageTimes(workload, prefix.rstrip("/"), setting, stages)
