"""What `iolab explain` states of a single setting: where its time goes, or what would show it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from iolab.base.quantity import scale_for
from iolab.domain.explain.alone import StageTimes, stage_times

if TYPE_CHECKING:
    from iolab.domain.explain.inputs import Inputs

SHOWN_FROM = 0.005
"""The part of the latency from which a stage is named."""
PLACES = {
    "above": "above the block layer",
    "queue": "in the queue",
    "scheduler": "in the scheduler",
    "device": "at the device",
    "unknown": "in no stage that is known",
}
ALONE = "A single setting has nothing to be compared with"


def lines(inputs: Inputs) -> Iterator[str]:
    """A sentence for each workload whose stages are known, else one that states what would show more."""
    found = list(stage_times(inputs.frame))
    yield from map(sentence, found)
    if found:
        return
    if inputs.probes_off:
        yield (
            f"{ALONE}: the probe block shows where the time of an I/O goes (iolab run EXPERIMENT.toml --probe block), "
            "and a second setting or run what makes a difference (iolab explain RUN OTHER)."
        )
    else:
        yield (
            f"{ALONE}: iolab show states what was measured, and iolab explain with a second file or run what moved "
            "between the two."
        )


def sentence(times: StageTimes) -> str:
    """`reads under none: an I/O takes 12.5 ms: 94 % at the device, 6 % in the queue.`"""
    whole = times.latency_ns
    shares = sorted(((ns / whole, stage) for stage, ns in times.ns_per_io.items()), reverse=True) if whole else []
    named = ", ".join(f"{100 * share:.0f} % {PLACES[stage]}" for share, stage in shares if share >= SHOWN_FROM)
    phase = f", phase {times.phase}" if times.phase else ""
    place = f"{times.workload}{phase} under {times.setting}"
    return f"{place}: an I/O takes {scale_for('ns', (whole,)).with_unit(whole)}: {named or 'no time'}."
