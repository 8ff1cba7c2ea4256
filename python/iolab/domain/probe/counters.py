"""Hardware counters of all CPUs over a phase: cycles, instructions, cache misses, stalled cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal

from iolab.base.option import Options
from iolab.domain.definition import NO_IO, Metric, Nature
from iolab.domain.phase_record import HostCounters
from iolab.domain.probe.probe import Probe, ProbeReader

if TYPE_CHECKING:
    from iolab.domain.observation import Observation

NAME = "counters"
READER = ProbeReader[HostCounters](NAME, lambda probes: probes.get("counters"))
_NOT_COUNTED = "this machine's processors do not count it, or other users hold their counters"
_MODELS_ONLY = "only a simulated machine with detailed CPUs reports it"
_LISTS = ("completion_list", "call_list")
Part = Literal["locked", "transfers", "transfer_cycles", "waited", "waited_ns"]
"""What is reported about a kind of shared objects."""


class CountersOptions(Options):
    """The probe `counters` has no options."""


def _metrics() -> Iterator[Metric]:
    nature: Nature
    for name, event, nature, what in (
        ("cpu_cycles", "cycles", "cost", "CPU cycles, all CPUs together."),
        ("instructions", "instructions", "cost", "Instructions that were completed, all CPUs together."),
        ("cache_misses", "cache-misses", "cost", "Accesses that missed the last-level cache, all CPUs."),
        (
            "stalled_cycles_frontend",
            "stalled-cycles-frontend",
            "cost",
            "Cycles in which no instruction was available to issue.",
        ),
        (
            "stalled_cycles",
            "stalled-cycles-backend",
            "cost",
            "Cycles in which no instruction was issued because data or a free unit was missing.",
        ),
    ):
        yield READER.metric(name, "count", nature, what, _NOT_COUNTED, partial(_count, event=event))
    yield READER.metric(
        "stalled_cycles_percent",
        "percent",
        "cost",
        "Share of stalled_cycles in all cycles.",
        _NOT_COUNTED,
        lambda found: _ratio(_count(found, "stalled-cycles-backend"), _count(found, "cycles"), 100),
    )
    yield READER.metric(
        "instructions_per_cycle",
        "count",
        "benefit",
        "Instructions over cycles.",
        _NOT_COUNTED,
        lambda found: _ratio(_count(found, "instructions"), _count(found, "cycles")),
    )
    yield from _sharing_metrics()
    amounts: tuple[tuple[str, str, Callable[[Observation], float]], ...] = (
        ("byte", "byte read or written", lambda seen: seen.bytes),
        ("io", "completed read or write", lambda seen: seen.count),
    )
    for unit, per, of in amounts:
        yield READER.metric_per_io(
            f"counted_cycles_per_{unit}",
            "cycles",
            "cost",
            f"Cycles of all CPUs, counted, per {per}: the ratio of the two rates.",
            f"{_NOT_COUNTED}, or {NO_IO}",
            partial(_cycles_per, of=of),
        )


def _sharing_metrics() -> Iterator[Metric]:
    """What CPUs do to each other's caches and locks, which a model alone sees (docs/model/processors.md)."""
    yield READER.metric_per_io(
        "line_transfers_per_io",
        "count",
        "cost",
        "On a simulated machine: cache lines that moved from one CPU to another, per completed read or write.",
        f"{_MODELS_ONLY}, or {NO_IO}",
        lambda seen, found: _ratio(_shared(found, None, "transfers"), seen.count),
    )
    sums: tuple[tuple[str, str, Part, float, str], ...] = (
        (
            "hand_over_waits_percent",
            "percent",
            "waited",
            100.0,
            "share of hand-overs that found the lock held by another CPU",
        ),
        ("hand_over_wait_ns_mean", "ns", "waited_ns", 1.0, "mean wait for the lock, over all hand-overs"),
        (
            "hand_over_transfer_cycles_mean",
            "cycles",
            "transfer_cycles",
            1.0,
            "mean cost of moving the lock with its list",
        ),
    )
    for name, unit, part, scale, what in sums:
        yield READER.metric(
            name,
            unit,
            "time" if unit == "ns" else "cost",
            f"On a simulated machine, for lists through which a CPU hands completions or calls to another CPU: {what}.",
            f"{_MODELS_ONLY}, or nothing was handed over",
            partial(_per_hand_over, part=part, scale=scale),
        )


def _per_hand_over(found: HostCounters, part: Part, scale: float) -> float | None:
    return _ratio(_shared(found, _LISTS, part), _shared(found, _LISTS, "locked"), scale)


def _shared(found: HostCounters, kinds: Iterable[str] | None, part: Part) -> float | None:
    """The share of these kinds of shared objects together; None: of all kinds."""
    sharing = found.get("sharing")
    if sharing is None:
        return None
    return float(sum(sharing[kind][part] for kind in (sharing if kinds is None else kinds)))


def _cycles_per(seen: Observation, found: HostCounters, of: Callable[[Observation], float]) -> float | None:
    """The counters run through warm-up and transient, the operations are those of the measured part."""
    cycles = _count(found, "cycles")
    if cycles is None:
        return None
    return _ratio(cycles / found["elapsed_ns"] * 1e9, seen.per_second(of(seen)))


def _count(found: HostCounters, event: str) -> float | None:
    counted = found["events"].get(event)
    return None if counted is None else counted["value"]


def _ratio(part: float | None, whole: float | None, scale: float = 1) -> float | None:
    return scale * part / whole if part is not None and whole else None


PROBE = Probe(
    NAME,
    "Cycles, instructions, cache misses and stalled cycles, if the processor counts them.",
    CountersOptions,
    ("perf events", "hardware counters"),
    tuple(_metrics()),
)
