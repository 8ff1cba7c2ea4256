"""Memory and writeback over time."""

from __future__ import annotations

from iolab.probe.probe import Probe, SampledOptions

PROBE = Probe(
    "memory",
    "Dirty pages, writeback, swap and pressure over time (/proc/meminfo, /proc/vmstat, /proc/pressure).",
    SampledOptions,
    ("procfs", "PSI"),
    (),
)
