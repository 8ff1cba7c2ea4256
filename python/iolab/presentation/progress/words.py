"""The words and numbers that both displays show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolab.base.plain_text import counted
from iolab.base.quantity import scale_for
from iolab.presentation.progress.pace import NS_PER_S, Rate, phase_left_ns

if TYPE_CHECKING:
    from iolab.domain.executor import Progress
    from iolab.domain.record import Record
    from iolab.domain.trial import Trial


def duration(duration_ns: float) -> str:
    """A time in ns as `2:05`, or from an hour on as `1:02:05`."""
    minutes, seconds = divmod(round(duration_ns / NS_PER_S), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def time_left(duration_ns: float | None) -> str:
    """`, 2:05 left`; nothing when unknown."""
    return "" if duration_ns is None else f", {duration(duration_ns)} left"


def title(trial: Trial) -> str:
    """`WORKLOAD under SETTING, round N`, rounds from 1."""
    return f"{trial.workload} under {trial.setting}, round {trial.round + 1}"


def activity(progress: Progress, rate: Rate | None) -> str:
    """What the trial is doing now, how fast, and how long its phase still takes."""
    parts = [_doing(progress)]
    if progress.waiting:
        return ", ".join([*parts, progress.waiting])
    if rate and progress.ops and progress.doing == "running":
        parts += [_quantity("bytes/s", rate.bytes_per_s), _quantity("IOPS", rate.ios_per_s)]
    if progress.errors:
        parts.append(counted(progress.errors, "error"))
    left_ns = phase_left_ns(progress)
    if left_ns is not None:
        parts.append(f"{left_ns / NS_PER_S:.1f} s left")
    return ", ".join(parts)


def outcome(record: Record, duration_ns: int) -> str:
    """How a trial went: its duration, and what was wrong if anything was."""
    parts = [f"{duration_ns / NS_PER_S:.1f} s"]
    if record.status != "ok":
        parts.append(record.status)
    parts += record.controls_absent.values()
    if record.faults:
        fault = record.faults[0]
        parts.append(f"{fault.what} (x{fault.count})" if fault.count > 1 else fault.what)
    return ", ".join(parts)


def _doing(progress: Progress) -> str:
    if progress.doing != "running":
        return progress.doing
    return f"{progress.phase}, warming up" if progress.warming_up else str(progress.phase)


def _quantity(unit: str, value: float) -> str:
    return scale_for(unit, [value]).with_unit(value)
