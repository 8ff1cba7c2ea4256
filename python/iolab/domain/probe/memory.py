"""Memory and writeback over time: dirty pages, swap, reclaim, pressure, and how much of what was read was cached."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from iolab.domain.definition import Metric, Nature
from iolab.domain.native_types import MemoryObservation
from iolab.domain.probe.probe import Probe, ProbeReader, SampledOptions, highest, mean, measured_span

if TYPE_CHECKING:
    from iolab.domain.observation import Observation

NAME = "memory"
READER = ProbeReader[MemoryObservation](NAME, lambda probes: probes.get("memory"))

LEVELS = {
    "dirty_bytes": "Dirty pages, not yet under writeback",
    "writeback_bytes": "Pages under writeback",
    "cached_bytes": "The page cache, shared memory included",
    "swap_used_bytes": "Swap in use",
}
RATES: dict[str, tuple[str, str, Nature, str]] = {
    "swap_in_bytes_per_s": ("swap_in_bytes_per_s", "bytes/s", "cost", "Brought back from swap (pswpin)."),
    "swap_out_bytes_per_s": ("swap_out_bytes_per_s", "bytes/s", "cost", "Written to swap (pswpout)."),
    "page_in_bytes_per_s": (
        "page_in_bytes_per_s",
        "bytes/s",
        "neutral",
        "Read from block devices, whole machine (pgpgin).",
    ),
    "page_out_bytes_per_s": (
        "page_out_bytes_per_s",
        "bytes/s",
        "neutral",
        "Written to block devices, whole machine (pgpgout).",
    ),
    "page_faults_per_s": ("faults_per_s", "1/s", "cost", "Page faults, whole machine (pgfault)."),
    "page_faults_major_per_s": (
        "faults_major_per_s",
        "1/s",
        "cost",
        "Page faults that waited for I/O, whole machine (pgmajfault).",
    ),
    "pages_scanned_per_s": ("pages_scanned_per_s", "1/s", "cost", "Pages scanned by reclaim (pgscan_*)."),
    "pages_reclaimed_per_s": ("pages_reclaimed_per_s", "1/s", "neutral", "Pages freed by reclaim (pgsteal_*)."),
    "refaults_per_s": (
        "refaults_per_s",
        "1/s",
        "cost",
        "Pages brought back soon after they were evicted (workingset_refault*).",
    ),
}
"""Metric -> column, unit, nature, help."""
_NOT_SHOWN = "this kernel's /proc/meminfo or /proc/vmstat does not show it"


def _metrics() -> Iterator[Metric]:
    for column, what in LEVELS.items():
        nature: Nature = "neutral" if column == "cached_bytes" else "cost"
        yield READER.metric(
            f"{column}_mean",
            "bytes",
            nature,
            f"{what}, mean over time.",
            _NOT_SHOWN,
            partial(mean, column=column),
        )
        yield READER.metric(
            f"{column}_max",
            "bytes",
            nature,
            f"{what}, maximum over time.",
            _NOT_SHOWN,
            partial(highest, column=f"{column}_max"),
        )
    for name, (column, unit, nature, what) in RATES.items():
        yield READER.metric(name, unit, nature, what, _NOT_SHOWN, partial(mean, column=column))
    for resource in ("cpu", "memory", "io"):
        for kind, who in (("some", "at least one task"), ("full", "all tasks that could run")):
            yield READER.metric(
                f"pressure_{resource}_{kind}_share",
                "share",
                "cost",
                f"Share of the time in which {who} waited for {'I/O' if resource == 'io' else resource} (PSI).",
                "the kernel keeps no pressure stall information: CONFIG_PSI, and psi=1 on its command line",
                partial(mean, column=f"pressure_{resource}_{kind}_share"),
            )
    yield READER.metric_per_io(
        "page_cache_hit_share",
        "share",
        "benefit",
        "1 - (bytes that iolab's process read from devices, read_bytes of /proc/self/io) / (bytes that the jobs read); "
        "0 if read-ahead read more than was asked for.",
        "nothing was read, or the kernel does not account I/O to tasks (CONFIG_TASK_IO_ACCOUNTING)",
        _hit_share,
    )


def _hit_share(seen: Observation, found: MemoryObservation) -> float | None:
    asked = seen.of("read").bytes
    if not asked:
        return None
    taken_per_s = mean(found, "process_read_bytes_per_s", measured_span(seen, found))
    return None if taken_per_s is None else max(0.0, 1 - taken_per_s * seen.measured_s / asked)


PROBE = Probe(
    NAME,
    "Dirty pages, writeback, swap and pressure over time (/proc/meminfo, /proc/vmstat, /proc/pressure). "
    "On a host only.",
    SampledOptions,
    ("procfs", "PSI"),
    tuple(_metrics()),
)
