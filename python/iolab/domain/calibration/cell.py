"""A cell: one job of known options, and what a device did under it. The unit in which a device is calibrated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iolab.domain.workload.block_sizes import mean_bytes
from iolab.domain.workload.io import IoOptions

NS_PER_S = 1e9
HELD_BACK_EVERY = 3
"""Of so many neighbouring cells one is kept from the fit."""
REGION_BYTES_MAX = 2**33
"""The simulated device is asked within this many bytes: what lies further on is the same to it."""
WARM_UP_BYTES = 2**26
"""Written before the measured time: more than a write buffer holds."""
WARM_UP_NS_MAX = 10**9
WARM_UP_SHARE = 10
"""Reads alone fill no buffer: they run for this part of the measured time before it."""
DURATION_NS = (20_000_000, 20_000_000_000)


@dataclass(frozen=True)
class Cell:
    """Rates are of all copies of the job together."""

    name: str
    options: IoOptions
    iops: float
    """Operations per second, reads and writes together; above 0."""
    p99_ns: float | None = None
    """The 99th percentile of their latency, if it is known."""
    again: float | None = None
    """By what factor its first two rounds differ, if there were two."""

    @property
    def operation(self) -> str:
        """`read`, `write`, `durable write` or `mix`."""
        if self.options.read_percent == 100:
            return "read"
        if self.options.read_percent > 0:
            return "mix"
        asked = self.options
        durable = asked.dsync_every or asked.osync_every or asked.fsync_every or asked.fdatasync_every
        return "durable write" if durable else "write"

    @property
    def block_bytes(self) -> float:
        """The mean size of an operation, in bytes."""
        return mean_bytes(self.options.block_size)

    @property
    def depth(self) -> int:
        """Operations in flight, of all copies of the job together."""
        return self.options.queue_depth * self.options.jobs

    def asked(self, operations: int, device_bytes: int) -> IoOptions:
        """The job as a simulated bare device is asked it: about so many operations, on what the device holds.

        Writes of `WARM_UP_BYTES`, at most a second, fill the write buffer before the measured time.
        """
        files = self.options.files_per_job * (1 if self.options.shared_files else self.options.jobs)
        region = min(self.options.file_size, REGION_BYTES_MAX // files, device_bytes // files)
        least, most = DURATION_NS
        duration = min(max(operations / self.iops * NS_PER_S, least), most)
        warm_up = duration / WARM_UP_SHARE
        if self.options.writes:
            warm_up = min(WARM_UP_BYTES / (self.iops * self.block_bytes) * NS_PER_S, WARM_UP_NS_MAX)
        changes = {
            "file_size": max(region - region % 2**20, 2**20),
            "range_start": 0,
            "range_length": None,
            "duration": int(duration),
            "warm_up": int(warm_up),
            "cut_transient": False,
            "operations": None,
            "amount": None,
            "layout": False,
            "cpus": None,
        }
        return self.options.model_copy(update=changes)


def split(cells: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """The cells to fit, and the third that is held back: every third in the order of operation, pattern, size, depth,
    so that both parts hold all kinds. A function of the cells alone: no choice is left to whoever asks."""
    ordered = sorted(cells, key=lambda one: (one.operation, one.options.pattern, one.block_bytes, one.depth, one.name))
    # The second of each three lies between cells that are fitted.
    held = ordered[1::HELD_BACK_EVERY]
    return [one for one in ordered if one not in held], held


def factor(simulated: float, measured: float) -> float:
    """By what factor the two differ, 1 or more; infinite if one of them is 0."""
    if simulated <= 0 or measured <= 0:
        return math.inf
    return math.exp(abs(math.log(simulated / measured)))
