"""Probes: what can be read of the machine while a phase runs, one file per probe. An experiment states which are on."""

from __future__ import annotations

from iolab.domain.probe import (
    block,
    counters,
    cpu,
    extents,
    instructions,
    io_cost,
    memory,
    nfs,
    nvme,
    profile,
    switches,
)
from iolab.domain.probe.probe import Need, Probe, Probes, resolved

PROBES: dict[str, Probe] = {
    probe.name: probe
    for probe in (
        block.PROBE,
        switches.PROBE,
        profile.PROBE,
        cpu.PROBE,
        counters.PROBE,
        memory.PROBE,
        io_cost.PROBE,
        extents.PROBE,
        nfs.PROBE,
        nvme.PROBE,
        instructions.PROBE,
    )
}
"""By name."""

__all__ = ["PROBES", "Need", "Probe", "Probes", "resolved"]
