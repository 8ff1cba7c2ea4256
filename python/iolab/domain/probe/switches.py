"""Scheduler events: who leaves a CPU, where, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Literal

from iolab.base.option import option
from iolab.domain.definition import NO_TIME, Metric
from iolab.domain.native_types import SwitchesObservation
from iolab.domain.probe.probe import Probe, ProbeReader, SampledOptions

NAME = "switches"
READER = ProbeReader[SwitchesObservation](NAME, lambda probes: probes.get("switches"))
Column = Literal["stall_ns", "wakeup_latency_ns", "run_queue_delay_ns"]
Statistic = Literal["mean", "p99"]
TIMES: dict[Column, tuple[str, str]] = {
    "stall_ns": ("switch_stall_ns", "Time that a task was off its CPU, for any reason"),
    "wakeup_latency_ns": ("wakeup_latency_ns", "From the call that wakes a task until it runs"),
    "run_queue_delay_ns": ("run_queue_delay_ns", "From runnable, woken or preempted, until running"),
}
"""Distribution of the observation -> metric's name and what it is."""
SHARES = {
    "disk_sleep": ("switches_waiting_percent", "tasks that wait for I/O, a lock or another task's answer (D)"),
    "idle": ("switches_idle_worker_percent", "kernel threads without work (I)"),
    "cpu_idle": ("switches_from_idle_percent", "CPUs that were idle"),
}
"""How the task left -> metric's name and what it is."""
_NO_SWITCH = "no task left a CPU and came back"


class SwitchesOptions(SampledOptions):
    """The options of the probe `switches`."""

    stack_every: int | None = option(
        None,
        "Switches per kernel stack: a stack is taken at every N-th switch.",
        ge=1,
        default_is="adapts to the rate",
        expected="a whole number, at least 1",
    )
    tasks: Literal["all", "own"] = option(
        "all", "Which tasks: all of the machine, or only those of the trial's own processes."
    )


def _metrics() -> Iterator[Metric]:
    yield READER.metric(
        "context_switches_per_s",
        "1/s",
        "cost",
        "Context switches of all CPUs, from and to idle included.",
        NO_TIME,
        lambda found: _per_s(found, found["switches"]),
    )
    yield READER.metric(
        "preemptions_per_s",
        "1/s",
        "cost",
        "Switches at which the task stayed runnable: it was preempted.",
        NO_TIME,
        lambda found: _per_s(found, found["by_state"]["preempted"]),
    )
    for state, (name, what) in SHARES.items():
        yield READER.metric(
            name,
            "percent",
            "neutral",
            f"Share of all switches: {what}.",
            "there was no switch",
            partial(_percent, state=state),
        )
    statistics: tuple[tuple[Statistic, str], ...] = (("mean", "mean"), ("p99", "99th percentile"))
    for column, (name, what) in TIMES.items():
        for statistic, words in statistics:
            yield READER.metric(
                f"{name}_{statistic}",
                "ns",
                "time",
                f"{what}: {words}.",
                _NO_SWITCH,
                partial(_of_times, column=column, statistic=statistic),
            )
    yield READER.metric(
        "kworkers",
        "count",
        "neutral",
        "Threads of the kernel's work queues (kworker) that switched.",
        "not reported",
        lambda found: float(sum(task["comm"].startswith("kworker/") for task in found["tasks"])),
    )
    yield READER.metric(
        "switch_events_lost",
        "count",
        "cost",
        "Events lost because the ring buffers were full; the other metrics are then incomplete.",
        "it is not counted",
        lambda found: found.get("trace_events_lost"),
    )


def _of_times(found: SwitchesObservation, column: Column, statistic: Statistic) -> float | None:
    return found[column][statistic]


def _per_s(found: SwitchesObservation, count: int) -> float | None:
    """Per second of the observation."""
    elapsed_s = found["elapsed_ns"] / 1e9
    return count / elapsed_s if elapsed_s > 0 else None


def _percent(found: SwitchesObservation, state: str) -> float | None:
    return 100 * found["by_state"][state] / found["switches"] if found["switches"] else None


PROBE = Probe(
    NAME,
    "Scheduler events: context switches by task and wait site, wake-up latency, run-queue delay. "
    "On a simulated machine: with fs_mark only.",
    SwitchesOptions,
    ("tracefs", "perf events"),
    tuple(_metrics()),
)
