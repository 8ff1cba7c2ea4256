"""What the jobs' threads used and waited for: CPU time, context switches, page faults."""

from __future__ import annotations

from collections.abc import Callable

from iolab.domain.definition import NO_IO, NO_TIME, Metric
from iolab.domain.observation import Observation


def _cpu_wait_per_io(seen: Observation) -> float | None:
    waited_ns = seen.cpu_wait_ns()
    return None if waited_ns is None else seen.per_io(waited_ns)


_NO_TIME_OR_IO = f"a guest machine counts it in instructions (kernel_instructions_per_op), or {NO_IO}"


def _in_time(of: Callable[[Observation], float | None]) -> Callable[[Observation], float | None]:
    """Nothing if instructions are counted: an emulated processor's time is their number, and no time."""
    return lambda seen: None if "instructions" in seen.probes else of(seen)


METRICS = (
    Metric(
        "cpu_user_s",
        "s",
        "cost",
        "CPU time of the jobs' threads in user mode, measured part.",
        "phase",
        lambda seen: seen.threads("cpu_user_ns") / 1e9,
        NO_TIME,
    ),
    Metric(
        "cpu_system_s",
        "s",
        "cost",
        "CPU time of the jobs' threads in the kernel, measured part.",
        "phase",
        lambda seen: seen.threads("cpu_system_ns") / 1e9,
        NO_TIME,
    ),
    Metric(
        "cpu_percent",
        "percent",
        "cost",
        "CPU time of the jobs' threads, user and system, per measured time; 100 is one CPU.",
        "phase",
        lambda seen: seen.per_second(100 * seen.cpu_ns() / 1e9),
        NO_TIME,
    ),
    Metric(
        "cpu_ns_per_io",
        "ns",
        "cost",
        "CPU time of the jobs' threads, user and system, per completed read or write.",
        "io",
        _in_time(lambda seen: seen.per_io(seen.cpu_ns())),
        _NO_TIME_OR_IO,
    ),
    Metric(
        "cpu_ns_per_byte",
        "ns",
        "cost",
        "CPU time of the jobs' threads, user and system, per byte read or written.",
        "io",
        _in_time(lambda seen: seen.cpu_ns() / seen.bytes if seen.bytes else None),
        _NO_TIME_OR_IO,
    ),
    Metric(
        "process_cpu_ns_per_io",
        "ns",
        "cost",
        "CPU time of the whole process, including the rings' kernel workers, per completed read or write.",
        "io",
        _in_time(lambda seen: seen.per_io(seen.process_cpu_ns)),
        _NO_TIME_OR_IO,
    ),
    Metric(
        "cpu_wait_ns_per_io",
        "ns",
        "time",
        "Time that the jobs' threads could run and waited for a CPU, per completed read or write.",
        "io",
        _cpu_wait_per_io,
        f"the kernel does not report it (/proc/PID/schedstat), or another program does the I/O, or {NO_IO}",
    ),
    Metric(
        "context_switches_per_io",
        "count",
        "cost",
        "Context switches of the jobs' threads, voluntary and not, per completed read or write.",
        "io",
        lambda seen: seen.per_io(seen.threads("context_switches_voluntary", "context_switches_involuntary")),
        NO_IO,
    ),
    Metric(
        "context_switches_voluntary",
        "count",
        "cost",
        "Context switches because a job's thread waited.",
        "phase",
        lambda seen: seen.threads("context_switches_voluntary"),
        NO_TIME,
    ),
    Metric(
        "context_switches_involuntary",
        "count",
        "cost",
        "Context switches because a job's thread was preempted.",
        "phase",
        lambda seen: seen.threads("context_switches_involuntary"),
        NO_TIME,
    ),
    Metric(
        "faults_minor",
        "count",
        "cost",
        "Page faults of the jobs' threads without I/O.",
        "phase",
        lambda seen: seen.threads("faults_minor"),
        NO_TIME,
    ),
    Metric(
        "faults_major",
        "count",
        "cost",
        "Page faults of the jobs' threads that waited for I/O.",
        "phase",
        lambda seen: seen.threads("faults_major"),
        NO_TIME,
    ),
)
