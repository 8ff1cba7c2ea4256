"""Scheduler events: who leaves a CPU, where, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from iolab.definition import NO_TIME, Metric
from iolab.option import option
from iolab.probe.probe import Probe, SampledOptions, observed

NAME = "switches"
TIMES = {
    "stall_ns": ("switch_stall_ns", "Time that a task was off its CPU, whatever it waited for"),
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

Json = dict[str, Any]


class SwitchesOptions(SampledOptions):
    stack_every: int | None = option(
        None,
        "A kernel stack is taken at every so many-th switch.",
        ge=1,
        default_is="adapts to the rate",
        expected="a whole number, at least 1",
    )
    tasks: Literal["all", "own"] = option(
        "all", "Whose switches: all tasks of the machine, or those of the trial's own processes."
    )


def _metrics() -> Iterator[Metric]:
    yield observed(
        NAME,
        "context_switches_per_s",
        "1/s",
        "lower",
        "Context switches of all CPUs, from and to idle included.",
        NO_TIME,
        lambda found: _per_s(found, found["switches"]),
    )
    yield observed(
        NAME,
        "preemptions_per_s",
        "1/s",
        "lower",
        "Switches at which the task stayed runnable: it left its CPU against its will.",
        NO_TIME,
        lambda found: _per_s(found, found["by_state"]["preempted"]),
    )
    for state, (name, what) in SHARES.items():
        yield observed(
            NAME,
            name,
            "percent",
            None,
            f"Share of all switches: {what}.",
            "there was no switch",
            lambda found, state=state: _percent(found["by_state"][state], found["switches"]),  # type: ignore[misc]
        )
    for column, (name, what) in TIMES.items():
        for statistic, words in (("mean", "mean"), ("p99", "99th percentile")):
            yield observed(
                NAME,
                f"{name}_{statistic}",
                "ns",
                "lower",
                f"{what}: {words}.",
                _NO_SWITCH,
                lambda found, column=column, statistic=statistic: found[column][statistic],  # type: ignore[misc]
            )
    yield observed(
        NAME,
        "switch_events_lost",
        "count",
        "lower",
        "Events that the ring buffers had no room for: the rest is then incomplete.",
        "it is not counted",
        lambda found: found.get("trace_events_lost"),
    )


def _per_s(found: Json, count: int) -> float | None:
    """Per second of the observation."""
    elapsed_s = found["elapsed_ns"] / 1e9
    return count / elapsed_s if elapsed_s > 0 else None


def _percent(part: int, of: int) -> float | None:
    return 100 * part / of if of else None


PROBE = Probe(
    NAME,
    "Scheduler events: context switches by task and by where they wait, wake-up latency, run-queue delay. "
    "Of a modelled machine: of fs_mark alone.",
    SwitchesOptions,
    ("tracefs", "perf events"),
    tuple(_metrics()),
)
