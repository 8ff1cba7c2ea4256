"""Scheduler events: who leaves a CPU, where, and for how long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from iolab.base.option import option
from iolab.domain.definition import NO_IO, NO_TIME, Metric
from iolab.domain.probe.probe import Probe, SampledOptions, observed

if TYPE_CHECKING:
    from iolab.domain.observation import Observation

NAME = "switches"
TIMES = {
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
JOB_THREAD = re.compile(r"iolab-\d+")
"""How the engine names the threads of jobs."""
_NO_SWITCH = "no task left a CPU and came back"

Json = dict[str, Any]


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
    yield observed(
        NAME,
        "context_switches_per_s",
        "1/s",
        "cost",
        "Context switches of all CPUs, from and to idle included.",
        NO_TIME,
        lambda found: _per_s(found, found["switches"]),
    )
    yield observed(
        NAME,
        "preemptions_per_s",
        "1/s",
        "cost",
        "Switches at which the task stayed runnable: it was preempted.",
        NO_TIME,
        lambda found: _per_s(found, found["by_state"]["preempted"]),
    )
    for state, (name, what) in SHARES.items():
        yield observed(
            NAME,
            name,
            "percent",
            "neutral",
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
                "time",
                f"{what}: {words}.",
                _NO_SWITCH,
                lambda found, column=column, statistic=statistic: found[column][statistic],  # type: ignore[misc]
            )
    yield Metric(
        "cpu_wait_ns_per_io",
        "ns",
        "time",
        "Time that the jobs' threads (iolab-0, ...) could run and waited for a CPU, per completed read or write.",
        "probe",
        _cpu_wait_ns_per_io,
        f"no thread of a job was seen, or {NO_IO}",
        probe=NAME,
    )
    yield observed(
        NAME,
        "switch_events_lost",
        "count",
        "cost",
        "Events lost because the ring buffers were full; the other metrics are then incomplete.",
        "it is not counted",
        lambda found: found.get("trace_events_lost"),
    )


def _cpu_wait_ns_per_io(seen: Observation) -> float | None:
    found = seen.probe(NAME)
    if found is None:
        return None
    waits_ns = [task["run_queue_delay"]["sum_ns"] for task in found["tasks"] if JOB_THREAD.fullmatch(task["comm"])]
    phase_s = seen.record["elapsed_ns"] / 1e9
    return seen.per_io(sum(waits_ns) * seen.measured_s / phase_s) if waits_ns and phase_s > 0 else None


def _per_s(found: Json, count: int) -> float | None:
    """Per second of the observation."""
    elapsed_s = found["elapsed_ns"] / 1e9
    return count / elapsed_s if elapsed_s > 0 else None


def _percent(part: int, of: int) -> float | None:
    return 100 * part / of if of else None


PROBE = Probe(
    NAME,
    "Scheduler events: context switches by task and wait site, wake-up latency, run-queue delay. "
    "On a simulated machine: with fs_mark only.",
    SwitchesOptions,
    ("tracefs", "perf events"),
    tuple(_metrics()),
)
