"""CPU time: where each CPU spent it, over time."""

from __future__ import annotations

from iolab.probe.probe import Probe, SampledOptions

PROBE = Probe(
    "cpu",
    "Time of each CPU in user mode, the kernel, interrupts, waiting and idle, over time (/proc/stat).",
    SampledOptions,
    ("procfs",),
    (),
)
