"""Hardware counters: cycles, instructions, cache misses, stalled cycles."""

from __future__ import annotations

from iolab.option import Options
from iolab.probe.probe import Probe


class CountersOptions(Options):
    pass


PROBE = Probe(
    "counters",
    "Cycles, instructions, cache misses and stalled cycles, where the processor counts them.",
    CountersOptions,
    ("perf events", "hardware counters"),
    (),
)
