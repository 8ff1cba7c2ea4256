"""Block events: what became of each request of the target's devices."""

from __future__ import annotations

from iolab.option import Bytes, option
from iolab.probe.probe import Probe, SampledOptions


class BlockOptions(SampledOptions):
    buffer: Bytes = option(
        4 * 2**20,
        "Ring buffer of each CPU. Events that find it full are lost, and counted.",
        unit="bytes",
        ge=64 * 2**10,
        le=256 * 2**20,
    )


PROBE = Probe(
    "block",
    "Block-layer events of the target's devices: queue, merge, insert, issue, complete.",
    BlockOptions,
    ("block device", "tracefs"),
    (),
)
