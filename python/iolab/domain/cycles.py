"""Cycles per byte and per I/O from frequency and utilisation (docs/reference/cycles.md).

A utilisation means nothing without its whole: `absolute` is percent of one CPU and goes up to 100 % times the CPUs,
`relative` is percent of all of them. Either way the cycles are those that were used, not all that there were.
"""

from __future__ import annotations

from dataclasses import dataclass

from iolab.base.strict_json import JsonObject

MHZ = 1e6


@dataclass(frozen=True)
class Processors:
    """The CPUs in a machine's description or in a text; None if it has none."""

    count: int | None = None
    frequency_hz: float | None = None

    @property
    def all_cycles_per_s(self) -> float | None:
        """Cycles per second of all CPUs together; None if number or frequency is not known."""
        return None if self.count is None or self.frequency_hz is None else self.count * self.frequency_hz


def processors(machine: JsonObject) -> Processors:
    """The processors in the description that a run keeps (machine.json)."""
    cpu = machine.get("cpu")
    if not isinstance(cpu, dict):
        return Processors()
    count, frequency_mhz = cpu.get("count_online"), cpu.get("frequency_mhz")
    try:
        return Processors(
            count if isinstance(count, int) else None,
            None if frequency_mhz is None or isinstance(frequency_mhz, dict) else float(frequency_mhz) * MHZ,
        )
    except (TypeError, ValueError):
        return Processors()


def absolute_cycles_per_s(percent: float | None, cpus: Processors) -> float | None:
    """The cycles of a utilisation in percent of one CPU: the number of CPUs does not matter."""
    return None if percent is None or cpus.frequency_hz is None else percent / 100 * cpus.frequency_hz


def relative_percent_of(absolute_percent: float | None, cpus: Processors) -> float | None:
    """The same utilisation in percent of all CPUs."""
    return None if absolute_percent is None or not cpus.count else absolute_percent / cpus.count


def relative_cycles_per_s(percent: float | None, cpus: Processors) -> float | None:
    """The cycles of a utilisation in percent of all CPUs."""
    return None if percent is None or cpus.all_cycles_per_s is None else percent / 100 * cpus.all_cycles_per_s


def per(cycles_per_s: float | None, rate: float | None) -> float | None:
    """`rate` in bytes or I/Os per second: the seconds cancel out."""
    return cycles_per_s / rate if cycles_per_s is not None and rate else None
