"""`show --as affinity`: a line per cell of the A x Q x C matrix, in the columns in which the first such was posted
(linux-kernel, February 2008).

MBPS is 2^20 bytes per second of all devices together, latencies are seconds, counts are per device; all are means over
the rounds. In a cell, bios count as local when they were queued on the application's CPU, and requests when they
completed on the interrupt's: the posted rows come out that way, whichever CPUs were asked for. If no CPUs were asked
for, local is what was issued, and what completed, on the CPU that queued it. A simulated machine counts as the posted
rows do by itself (docs/model/completion.md). The counts need the probe `block`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.domain.control.cell import PARTS, letter
from iolab.domain.native_types import BlockObservation, DeviceReport
from iolab.domain.phase_record import probes_of

if TYPE_CHECKING:
    from iolab.domain.record import Record
    from iolab.files.store import RunData

MEGABYTE = 2**20
NS_PER_S = 1e9
ABSENT = "-"
RATE = "rate_bytes_per_s"
COUNTS = ("queue_local", "queue_remote", "completions_local", "completions_remote")
COLUMNS = (("MBPS", "Avg Lat", "StdDev"), ("Q-local", "Q-remote"), ("C-local", "C-remote"))
WIDTHS = ((6, 8, 6), (8, 8), (7, 8))
SIGNIFICANT_DIGITS = 3
_IMPORTED = re.compile(r"A=(?P<A>\S+),Q=(?P<Q>\S+),C=(?P<C>\S+?)(?: \((?P<caption>.*)\))?")
_CAPTIONED = re.compile(r"(?P<label>.*?)(?: \((?P<caption>.*)\))?")


@dataclass(frozen=True)
class Line:
    """A line of the table: one placement of A, Q and C, or one setting."""

    label: tuple[str, ...]
    """The letters of A, Q and C, or a setting's name alone."""
    values: tuple[float | None, ...]
    """In the order of the columns."""
    reason: str | None
    """Why it is empty, or its counts are short."""

    @property
    def text(self) -> str:
        """The label as one text."""
        return " ".join(self.label)


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """The tables. InputError if no setting of the run is a cell of the matrix, or if metrics are asked for."""
    if metrics:
        raise InputError("the affinity table has fixed columns", where="--metric", remedy="leave --metric out")
    found = {workload: _tables(run, workload) for workload in run.workloads if RATE in run.keys_of(workload)}
    found = {workload: tables for workload, tables in found.items() if tables}
    if not found:
        raise InputError(
            "no setting of the run sets where I/O is queued and completed",
            where=str(run.path),
            remedy="see the setting affinity, or show it as plain, csv, markdown or json",
        )
    blocks = [([f"{workload}\n"] if len(found) > 1 else []) + tables for workload, tables in found.items()]
    return "\n".join(part for block in blocks for part in block)


def _tables(run: RunData, workload: str) -> list[str]:
    """One by caption, of those that have a cell."""
    by_caption: dict[str | None, list[Line]] = {}
    for setting in run.settings:
        label, caption = _name(run, setting)
        line = _line(run, workload, setting, label)
        if line.reason or any(value is not None for value in line.values):
            by_caption.setdefault(caption, []).append(line)
    return [
        (f"{caption}:\n" if caption else "") + _table(lines)
        for caption, lines in by_caption.items()
        if any(len(line.label) == len(PARTS) for line in lines)
    ]


def _name(run: RunData, setting: str) -> tuple[tuple[str, ...], str | None]:
    """How the table calls a setting; and the table's caption, of imported variants and of simulated kernels."""
    controls = run.experiment.settings.get(setting, {})
    kernel = str(controls["kernel"]) if "kernel" in controls else None
    if isinstance(asked := controls.get("affinity"), dict):
        return tuple(letter(asked[name]) for name in PARTS), kernel
    if "rq_affinity" in controls and "cpus" not in controls:
        return (f"rq={controls['rq_affinity']}",), kernel
    if found := _IMPORTED.fullmatch(setting):
        return found.group("A", "Q", "C"), found["caption"]
    found = _CAPTIONED.fullmatch(setting)
    return (found["label"],) if found else (setting,), found["caption"] if found else None


def _line(run: RunData, workload: str, setting: str, label: tuple[str, ...]) -> Line:
    deviation = "latency_ns_stddev_job_mean"
    if deviation not in run.keys_of(workload):
        deviation = "latency_ns_stddev"
    rate, mean, spread = (_mean(run, workload, setting, key) for key in (RATE, "latency_ns_mean", deviation))
    scaled = [_over(rate, MEGABYTE), _over(mean, NS_PER_S), _over(spread, NS_PER_S)]
    records = _records(run, workload, setting)
    counts: Sequence[float | None] = _counts(records) or [_mean(run, workload, setting, key) for key in COUNTS]
    return Line(label, (*scaled, *counts), _reason(run, workload, setting) or _loss(records))


def _mean(run: RunData, workload: str, setting: str, key: str) -> float | None:
    values = run.values(key, workload)
    numbers = values[setting].drop_nulls().to_list() if setting in values.columns else []
    return fmean(numbers) if numbers else None


def _records(run: RunData, workload: str, setting: str) -> list[Record]:
    import polars as pl

    chosen = run.trials.filter(
        (pl.col("workload") == workload) & (pl.col("setting") == setting) & (pl.col("status") != "impossible")
    )
    return [run.record(trial) for trial in chosen["trial"]]


def _counts(records: Sequence[Record]) -> list[float]:
    """Per device, from what the block probe saw; nothing if it was off."""
    seen = [
        _local_and_remote(device, record.controls_applied.get("affinity", {}).get("applied"))
        for record in records
        for block in _blocks(record)
        for device in block["devices"]
    ]
    return [fmean(column) for column in zip(*seen, strict=True)]


def _loss(records: Sequence[Record]) -> str | None:
    lost = sum(block.get("events_lost", 0) for record in records for block in _blocks(record))
    return f"the block probe lost {counted(lost, 'event')}, its counts are short of them" if lost else None


def _blocks(record: Record) -> list[BlockObservation]:
    return [probes_of(phase)["block"] for phase in record.phases if "block" in probes_of(phase)]


def _local_and_remote(device: DeviceReport, cell: object) -> tuple[float, ...]:
    if not isinstance(cell, dict) or "interrupt" not in cell:  # no cell, or one of a simulated machine, which has words
        total = device["total"]
        return (total["queue_local"], total["queue_remote"], total["completions_local"], total["completions_remote"])
    return (
        *_split(device["queued_by_cpu"], cell["application"]),
        *_split(device["completed_by_cpu"], cell["interrupt"]),
    )


def _split(by_cpu: Sequence[int], cpu: int) -> tuple[float, float]:
    """On that CPU, and elsewhere."""
    there = by_cpu[cpu] if cpu < len(by_cpu) else 0
    return there, sum(by_cpu) - there


def _reason(run: RunData, workload: str, setting: str) -> str | None:
    import polars as pl

    chosen = run.metrics.filter(
        (pl.col("workload") == workload) & (pl.col("setting") == setting) & (pl.col("key") == RATE)
    )
    absent = chosen.filter(pl.col("value").is_null())
    return absent["reason"][0] if chosen.height and absent.height == chosen.height else None


def _table(lines: Sequence[Line]) -> str:
    decimals = (1, *_latency_decimals(lines), 1, 1, 1, 1)
    rows = [
        (line.text, *(_number(value, places) for value, places in zip(line.values, decimals, strict=True)))
        for line in lines
    ]
    header = ("A Q C", *(name for group in COLUMNS for name in group))
    posted = (5, *(width for group in WIDTHS for width in group))
    widths = [
        max(least, *map(len, column)) for least, column in zip(posted, zip(header, *rows, strict=True), strict=True)
    ]
    rule = [_joined([character * width for width in widths]) for character in "-="]
    found = [_padded(header, widths), rule[0]]
    for line, row, following in zip(lines, rows, (*lines[1:], None), strict=True):
        found.append(_padded(row, widths))
        found += [] if (heavy := _separator(line, following)) is None else [rule[heavy]]
    return "\n".join([*found, *_reasons(lines), ""])


def _reasons(lines: Sequence[Line]) -> list[str]:
    """Each once, after the lines that it holds for."""
    by_reason: dict[str, list[str]] = {}
    for line in lines:
        if line.reason:
            by_reason.setdefault(line.reason, []).append(line.text)
    return [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]


def _separator(line: Line, following: Line | None) -> int | None:
    """After a line: none, a light rule (0) or a heavy one (1)."""
    if following is None:
        return 0
    if len(line.label) != len(following.label) or line.label[:1] != following.label[:1]:
        return None if len(line.label) == len(following.label) == 1 else 1
    return 0 if line.label[:2] != following.label[:2] else None


def _latency_decimals(lines: Sequence[Line]) -> tuple[int, int]:
    """As in the posted tables, six and four; more if I/O takes too little time for these."""
    return (
        _decimals([line.values[1] for line in lines], at_least=6),
        _decimals([line.values[2] for line in lines], at_least=4),
    )


def _decimals(values: Sequence[float | None], *, at_least: int) -> int:
    smallest = min((value for value in values if value), default=1.0)
    return max(at_least, SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(smallest)))


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *numbers = cells
    return _joined(
        [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True))]
    )


def _joined(cells: Sequence[str]) -> str:
    first, *rest = cells
    numbers = iter(rest)
    return " | ".join((first, *(" ".join(next(numbers) for _ in group) for group in COLUMNS)))


def _number(value: float | None, decimals: int) -> str:
    return ABSENT if value is None else f"{value:.{decimals}f}"


def _over(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit
