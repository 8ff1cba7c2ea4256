"""CPU time: where each CPU spent it, over time; and what an I/O cost the machine, in time and in cycles.

Utilisation is reported in two ways, and cycles come of either (docs/reference/probes.md): absolute, percent of one CPU,
of the jobs' threads (getrusage); relative, percent of all CPUs, of the whole machine (/proc/stat).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from iolab.domain.definition import NO_IO, Metric, Nature
from iolab.domain.native_types import CpuObservation
from iolab.domain.probe.probe import Probe, ProbeReader, SampledOptions, mean, measured_span

if TYPE_CHECKING:
    from iolab.domain.observation import Observation

NAME = "cpu"
READER = ProbeReader[CpuObservation](NAME, lambda probes: probes.get("cpu"))

STATES = {
    "user": "user mode",
    "nice": "user mode at low priority",
    "system": "the kernel",
    "iowait": "idle while I/O was outstanding",
    "irq": "hard interrupts",
    "softirq": "soft interrupts",
    "steal": "other guests of the hypervisor",
    "guest": "running a guest",
    "guest_nice": "running a guest at low priority",
    "idle": "idle without outstanding I/O",
}
"""Where mpstat and iostat see CPUs, too."""
AT_REST = ("idle", "iowait", "steal")
"""Not busy: nothing to run, or not allowed to."""
IN_KERNEL = ("system", "irq", "softirq")

_NO_TICK = "no tick of the clock passed"
_NO_FREQUENCY = "neither cpufreq nor /proc/cpuinfo nor a time-stamp counter shows the CPUs' frequency"
_NO_IO_OR_TICK = f"{NO_IO}, or {_NO_TICK}"


def _metrics() -> Iterator[Metric]:
    for state, where in STATES.items():
        nature: Nature = "neutral" if state in ("iowait", "idle", "guest", "guest_nice") else "cost"
        yield READER.metric(
            f"cpu_{state}_percent",
            "percent",
            nature,
            f"CPU time: {where}. 100 is all CPUs.",
            _NO_TICK,
            partial(_sum_percent, states=(state,)),
        )
    yield READER.metric(
        "cpu_busy_percent",
        "percent",
        "cost",
        "CPU time of the whole machine that was neither idle nor waiting nor stolen. 100 is all CPUs.",
        _NO_TICK,
        _busy_percent,
    )
    yield READER.metric(
        "cpu_kernel_percent",
        "percent",
        "cost",
        "CPU time in the kernel and its interrupts, hard and soft: what tables often post as %sys. 100 is all CPUs.",
        _NO_TICK,
        partial(_sum_percent, states=IN_KERNEL),
    )
    for name, column, what in (
        ("interrupts_per_s", "interrupts_per_s", "Interrupts of all CPUs, the timer's included."),
        ("machine_switches_per_s", "switches_per_s", "Context switches of all CPUs, as the kernel counts them."),
    ):
        yield READER.metric(
            name,
            "1/s",
            "cost",
            what,
            "no time was observed",
            partial(mean, column=column),
        )
    yield READER.metric(
        "cpu_frequency_hz",
        "Hz",
        "neutral",
        "Mean clock frequency of the CPUs: scaling_cur_freq, else /proc/cpuinfo, else the time-stamp counter's rate.",
        _NO_FREQUENCY,
        _frequency_hz,
    )
    for unit, per in (("byte", "byte read or written"), ("io", "completed read or write")):
        yield _cost(
            f"machine_cpu_ns_per_{unit}",
            "ns",
            f"Busy time of all CPUs per {per}: interrupts, writeback and other processes included.",
            _NO_IO_OR_TICK,
            _machine_ns,
        )
        yield _cost(
            f"cycles_per_{unit}",
            "cycles",
            f"Cycles of the jobs' threads per {per}: frequency x their utilisation, in percent of one CPU (absolute).",
            f"{_NO_FREQUENCY}, or {NO_IO}",
            lambda seen, found: _cycles(seen.cpu_ns(), found),
        )
        yield _cost(
            f"machine_cycles_per_{unit}",
            "cycles",
            f"Cycles of the whole machine per {per}: CPUs x frequency x busy share, in percent of all CPUs (relative).",
            f"{_NO_FREQUENCY}, or {_NO_IO_OR_TICK}",
            lambda seen, found: _cycles(_machine_ns(seen, found), found),
        )


def _cost(
    name: str, unit: str, help: str, absent: str, of: Callable[[Observation, CpuObservation], float | None]
) -> Metric:
    """What the phase's measured part took, per byte or per I/O by the name."""

    def read(seen: Observation, found: CpuObservation) -> float | None:
        amount = of(seen, found)
        if amount is None:
            return None
        if name.endswith("_io"):
            return seen.per_io(amount)
        return amount / seen.bytes if seen.bytes else None

    return READER.metric_per_io(name, unit, "cost", help, absent, read)


def _machine_ns(seen: Observation, found: CpuObservation) -> float | None:
    """Busy time of all CPUs while the phase was measured."""
    busy_cpus = mean(found, "busy_cpus", measured_span(seen, found))
    return None if busy_cpus is None else busy_cpus * seen.measured_s * 1e9


def _cycles(busy_ns: float | None, found: CpuObservation) -> float | None:
    frequency_hz = _frequency_hz(found)
    return None if busy_ns is None or frequency_hz is None else busy_ns / 1e9 * frequency_hz


def _frequency_hz(found: CpuObservation) -> float | None:
    frequency = found["frequency"]
    return None if frequency is None else frequency["hz_mean"]


def _busy_percent(found: CpuObservation) -> float | None:
    at_rest = _sum_percent(found, AT_REST)
    return None if at_rest is None else 100 - at_rest


def _sum_percent(found: CpuObservation, states: Sequence[str]) -> float | None:
    shares = [found["means"]["all"][f"{state}_percent"] for state in states]
    return None if None in shares else sum(share for share in shares if share is not None)


PROBE = Probe(
    NAME,
    "Time of each CPU in user mode, the kernel, interrupts, waiting and idle, over time (/proc/stat).",
    SampledOptions,
    ("procfs",),
    tuple(_metrics()),
)
