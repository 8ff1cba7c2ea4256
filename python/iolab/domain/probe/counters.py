"""Hardware counters of all CPUs over a phase: cycles, instructions, cache misses, stalled cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from iolab.base.option import Options
from iolab.domain.definition import NO_IO, Metric, Nature
from iolab.domain.probe.probe import Probe, observed

if TYPE_CHECKING:
    from iolab.domain.observation import Observation

NAME = "counters"
_NOT_COUNTED = "this machine's processors do not count it, or other users hold their counters"
_MODELS_ONLY = "only a simulated machine with detailed CPUs tells it"
_LISTS = ("completion_list", "call_list")


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
        yield observed(NAME, name, "count", nature, what, _NOT_COUNTED, lambda found, event=event: _count(found, event))  # type: ignore[misc]
    yield observed(
        NAME,
        "stalled_cycles_percent",
        "percent",
        "cost",
        "Share of stalled_cycles in all cycles.",
        _NOT_COUNTED,
        lambda found: _ratio(_count(found, "stalled-cycles-backend"), _count(found, "cycles"), 100),
    )
    yield observed(
        NAME,
        "instructions_per_cycle",
        "count",
        "benefit",
        "Instructions over cycles.",
        _NOT_COUNTED,
        lambda found: _ratio(_count(found, "instructions"), _count(found, "cycles")),
    )
    yield from _sharing_metrics()
    for unit, per, of in (
        ("byte", "byte read or written", lambda seen: seen.bytes),
        ("io", "completed read or write", lambda seen: seen.count),
    ):
        yield Metric(
            f"counted_cycles_per_{unit}",
            "cycles",
            "cost",
            f"Cycles of all CPUs, counted, per {per}: the one's rate over the other's.",
            "probe",
            lambda seen, of=of: _cycles_per(seen, of),  # type: ignore[misc]
            f"{_NOT_COUNTED}, or {NO_IO}",
            probe=NAME,
        )


def _sharing_metrics() -> Iterator[Metric]:
    """What CPUs do to each other's caches and locks, which a model alone sees (docs/model/processors.md)."""
    yield Metric(
        "line_transfers_per_io",
        "count",
        "cost",
        "On a simulated machine: cache lines that moved from one CPU to another, per completed read or write.",
        "probe",
        lambda seen: _ratio(_shared(seen.probe(NAME), None, "transfers"), seen.count),
        f"{_MODELS_ONLY}, or {NO_IO}",
        probe=NAME,
    )
    for name, unit, part, scale, what in (
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
    ):
        yield observed(
            NAME,
            name,
            unit,
            "time" if unit == "ns" else "cost",
            f"On a simulated machine, for lists through which a CPU hands completions or calls to another CPU: {what}.",
            f"{_MODELS_ONLY}, or nothing was handed over",
            lambda found, part=part, scale=scale: _ratio(  # type: ignore[misc]
                _shared(found, _LISTS, part), _shared(found, _LISTS, "locked"), scale
            ),
        )


def _shared(found: dict[str, Any] | None, kinds: Iterable[str] | None, part: str) -> float | None:
    """Of these kinds of shared objects together; None: of all."""
    sharing = None if found is None else found.get("sharing")
    if sharing is None:
        return None
    return float(sum(sharing[kind][part] for kind in (sharing if kinds is None else kinds)))


def _cycles_per(seen: Observation, of: Callable[[Observation], float]) -> float | None:
    """The counters run through warm-up and transient, the operations are those of the measured part."""
    found = seen.probe(NAME)
    cycles = None if found is None else _count(found, "cycles")
    if found is None or cycles is None:
        return None
    return _ratio(cycles / found["elapsed_ns"] * 1e9, seen.per_second(of(seen)))


def _count(found: dict[str, Any], event: str) -> float | None:
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
