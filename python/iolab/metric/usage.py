"""What the jobs' threads used: CPU time, context switches, page faults."""

from __future__ import annotations

from iolab.definition import Metric
from iolab.metric.reason import NO_IO, NO_TIME

METRICS = (
    Metric(
        "cpu_user_s",
        "s",
        "lower",
        "CPU time of the jobs' threads in user mode, measured part.",
        "phase",
        lambda seen: seen.threads("cpu_user_ns") / 1e9,
        NO_TIME,
    ),
    Metric(
        "cpu_system_s",
        "s",
        "lower",
        "CPU time of the jobs' threads in the kernel, measured part.",
        "phase",
        lambda seen: seen.threads("cpu_system_ns") / 1e9,
        NO_TIME,
    ),
    Metric(
        "cpu_percent",
        "percent",
        "lower",
        "CPU time of the jobs' threads, user and system, per measured time; 100 is one CPU.",
        "phase",
        lambda seen: seen.per_second(100 * seen.cpu_ns() / 1e9),
        NO_TIME,
    ),
    Metric(
        "cpu_ns_per_io",
        "ns",
        "lower",
        "CPU time of the jobs' threads, user and system, per completed read or write.",
        "io",
        lambda seen: seen.per_io(seen.cpu_ns()),
        NO_IO,
    ),
    Metric(
        "process_cpu_ns_per_io",
        "ns",
        "lower",
        "The same of the whole process, which includes the rings' kernel workers.",
        "io",
        lambda seen: seen.per_io(seen.process_cpu_ns),
        NO_IO,
    ),
    Metric(
        "context_switches_per_io",
        "count",
        "lower",
        "Context switches of the jobs' threads, voluntary and not, per completed read or write.",
        "io",
        lambda seen: seen.per_io(seen.threads("context_switches_voluntary", "context_switches_involuntary")),
        NO_IO,
    ),
    Metric(
        "context_switches_voluntary",
        "count",
        "lower",
        "Context switches because a job's thread waited.",
        "phase",
        lambda seen: seen.threads("context_switches_voluntary"),
        NO_TIME,
    ),
    Metric(
        "context_switches_involuntary",
        "count",
        "lower",
        "Context switches because a job's thread was preempted.",
        "phase",
        lambda seen: seen.threads("context_switches_involuntary"),
        NO_TIME,
    ),
    Metric(
        "faults_minor",
        "count",
        "lower",
        "Page faults of the jobs' threads without I/O.",
        "phase",
        lambda seen: seen.threads("faults_minor"),
        NO_TIME,
    ),
    Metric(
        "faults_major",
        "count",
        "lower",
        "Page faults of the jobs' threads that waited for I/O.",
        "phase",
        lambda seen: seen.threads("faults_major"),
        NO_TIME,
    ),
)
