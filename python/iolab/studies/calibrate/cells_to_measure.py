"""The experiment that measures a device for its calibration: short cells that each show something else of it."""

from __future__ import annotations

from dataclasses import dataclass

from iolab.base.toml import TomlTable, written

DURATION_S = 1.5
ROUNDS = 2
"""How far the two rounds of a cell differ is what no simulated device can be better than."""
WARM_UP = "500ms"
WRITE_REGION = "512MiB"
"""Written before reads of a device without data, so that they reach its medium."""


@dataclass(frozen=True)
class _Asked:
    """A cell: pattern, share of reads, size, depth."""

    name: str
    options: TomlTable


def _asked(name: str, pattern: str, reads: int, size: str, depth: int, **more: object) -> _Asked:
    options = {"pattern": pattern, "read_percent": reads, "block_size": size, "queue_depth": depth, **more}
    return _Asked(name, options)


READS = (
    _asked("read-4k-1", "random", 100, "4KiB", 1),
    _asked("read-4k-4", "random", 100, "4KiB", 4),
    _asked("read-4k-16", "random", 100, "4KiB", 16),
    _asked("read-4k-128", "random", 100, "4KiB", 32, jobs=4, shared_files=True),
    _asked("read-16k-4", "random", 100, "16KiB", 4),
    _asked("read-64k-1", "random", 100, "64KiB", 1),
    _asked("read-64k-16", "random", 100, "64KiB", 16),
    _asked("read-128k-sequential-1", "sequential", 100, "128KiB", 1),
    _asked("read-512k-sequential-8", "sequential", 100, "512KiB", 8),
)
WRITES = (
    _asked("write-4k-1", "random", 0, "4KiB", 1),
    _asked("write-4k-8", "random", 0, "4KiB", 8),
    _asked("write-4k-64", "random", 0, "4KiB", 64),
    _asked("write-64k-4", "random", 0, "64KiB", 4),
    _asked("write-128k-sequential-1", "sequential", 0, "128KiB", 1),
    _asked("write-512k-sequential-8", "sequential", 0, "512KiB", 8),
    _asked("mix-4k-16", "random", 70, "4KiB", 16),
    _asked("commit-4k-1", "random", 0, "4KiB", 1, dsync_every=1),
    _asked("commit-16k-1", "random", 0, "16KiB", 1, dsync_every=1),
)


def experiment_text(title: str, target: TomlTable, *, writes: bool, region_bytes: int, seconds: float) -> str:
    """The experiment: in each round every cell, in a random order.

    Args:
        writes: whether the target may be written to; else only reads are asked, of what is there.
        region_bytes: what reads of what is there go over. seconds: of each cell.
    """
    cells = (*READS, *WRITES) if writes else READS
    lines = [f"title = {written(title)}", f"rounds = {ROUNDS}", "seed = 1", "[target]", *_pairs(target)]
    for cell in cells:
        region = {"file_size": WRITE_REGION} if writes else {"file_size": f"{region_bytes}B", "layout": False}
        phase = {"engine": "libaio", "duration": f"{round(seconds * 1000)}ms", "warm_up": WARM_UP}
        lines += [f"[workloads.{cell.name}]", *_pairs({**cell.options, **region, **phase})]
    return "\n".join(lines) + "\n"


def _pairs(table: TomlTable) -> list[str]:
    return [f"{key} = {written(value)}" for key, value in table.items()]
