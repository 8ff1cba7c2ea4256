"""Scheduler events: who leaves a CPU, where, and for how long."""

from __future__ import annotations

from typing import Literal

from iolab.option import option
from iolab.probe.probe import Probe, SampledOptions


class SwitchesOptions(SampledOptions):
    stack_every: int | None = option(
        None,
        "A kernel stack is taken at every so many-th switch.",
        ge=1,
        default_is="adapts to the rate",
        expected="a whole number, at least 1",
    )
    tasks: Literal["all", "own"] = option(
        "all", "Whose switches: all tasks of the machine, or those of the trial's own processes."
    )


PROBE = Probe(
    "switches",
    "Scheduler events: context switches by task and by where they wait, wake-up latency, run-queue delay.",
    SwitchesOptions,
    ("tracefs", "perf events"),
    (),
)
