"""The six rates of the kernel's io.cost model as cells, by the protocol of those who measure them.

Source: resctl-demo, rd-agent/src/misc/iocost_coef_gen.py: fio with libaio, 8 jobs on one file; sequential calls of 128
MiB at depth 1 each, and calls of 4 KiB, sequential and random, at depth 256 each; the drive's queue has nomerges = 1. A
latency of the same tool is 1.5 times the 95th percentile of random calls of 4 KiB, of which 90 % of the total are
offered per job: the jobs are not throttled, and the random cells are those calls.

Its later versions set iodepth_batch_submit to a 16th of the depth, and iodepth_batch_complete_min stays 1. fio submits
one by one all the same: with a full queue it takes one completion, and submits what it has queued before it waits for
the next (`wait_for_completions` in backend.c, `td_io_getevents` in ioengines.c of fio 3). So nothing merges: one
operation is below io_submit's threshold for a plug.
"""

from __future__ import annotations

from collections.abc import Mapping

from iolab.domain.calibration.cell import Cell
from iolab.domain.workload.io import IoOptions

JOBS = 8
DEPTH = 256
CALL_BYTES = 4096
LARGE_BYTES = 2**22
"""Of each of 8 calls in flight: the tool's 128 MiB would be a few calls in a simulated second. Both are far more than a
device works on at once."""
LATENCY_FACTOR = 1.5
LATENCY_SHARE = 0.95
LARGE = ("rbps", "wbps")
RATES = ("rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops")
"""The names of io.cost.model: bytes per second of the first and fourth, operations per second of the others."""
LATENCIES = {"rlat": "rrandiops", "wlat": "wrandiops"}
"""The latencies of io.cost.qos, and the cell each is of."""


def cells(rates: Mapping[str, float]) -> list[Cell]:
    """A cell for each of the six rates that is given."""
    return [_cell(name, rates[name]) for name in RATES if name in rates]


def in_its_unit(name: str, iops: float) -> float:
    """Of the simulated operations per second: what the rate of this name counts."""
    return iops * LARGE_BYTES if name in LARGE else iops


def littles_latency_ns(iops: float) -> float:
    """What Little's law alone makes of a rate: the mean latency times `LATENCY_FACTOR`, as if all took the mean."""
    return LATENCY_FACTOR * JOBS * DEPTH / iops * 1e9


def _cell(name: str, rate: float) -> Cell:
    large = name in LARGE
    options = IoOptions.model_validate(
        {
            "pattern": "random" if "rand" in name else "sequential",
            "read_percent": 100 if name.startswith("r") else 0,
            "block_size": f"{LARGE_BYTES if large else CALL_BYTES}B",
            "queue_depth": 1 if large else DEPTH,
            "batch": 1,
            "jobs": JOBS,
            "file_size": "2GiB",
            "engine": "libaio",
            "duration": "1s",
        }
    )
    return Cell(name, options, rate / LARGE_BYTES if large else rate)
