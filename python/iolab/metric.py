"""The registry of metrics, and their values from a record.

Each metric's name, unit, direction and help have their one home here; `values` names how it is computed. A value that
could not be measured is None with a reason, never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from iolab.errors import InputError
from iolab.nearest import unknown

if TYPE_CHECKING:
    from iolab.observation import Observation
    from iolab.record import Record
    from iolab.trial import Phase

ALL = "all"
TRANSFERS = ("read", "write")
OPS: dict[str, str] = {
    "read": "a read",
    "write": "a write",
    "sync": "an fsync or fdatasync",
    "mkdir": "a mkdir",
    "create": "an open that makes a file",
    "fsync": "an fsync; of a file that is opened again for it, open and close too",
    "system_sync": "a sync of the whole system",
    "close": "a close",
    "unlink": "an unlink",
    ALL: "reads and writes together, and what is said of a phase as a whole",
}
"""Every operation that some kind of phase counts. Each phase has its own (`PhaseSpec.offered`)."""

DEFAULT_COMPARED = ("rate_bytes_per_s", "latency_ns_mean", "latency_ns_p99", "cpu_ns_per_io")

Scope = Literal["op", "transfer", "io", "phase", "measure"]
Better = Literal["higher", "lower"] | None


@dataclass(frozen=True)
class Described:
    """What is known of a metric, whoever measures it."""

    name: str
    unit: str
    """`bytes/s`, `1/s`, `bytes`, `ns`, `s`, `count`, `share` (0 to 1), `percent`; empty where it is not known."""
    better: Better
    help: str


@dataclass(frozen=True)
class Metric(Described):
    """One that is computed from a record."""

    scope: Scope
    """op: of each operation of a phase, and of all transfers; transfer: of reads, writes and both. With op all only:
    io, where a phase reads or writes; phase, of every phase; measure, where a phase says that it has it."""
    of: Callable[[Observation], float | None]
    absent: str
    """The reason when there is no value."""
    per_job: bool = False
    """Also kept for each job, of all its operations, where a phase has several; and for each weighted group."""
    per_group: bool = False
    """Also kept for each weighted group."""


class Row(NamedTuple):
    """A metric's value in a record. `job` and `op` are `all` for the aggregate."""

    phase: str
    job: str
    op: str
    metric: str
    value: float | None
    reason: str | None


class Key(NamedTuple):
    """What `[phase/][op.]metric` names. `phase` is None where a trial has one measured phase."""

    phase: str | None
    op: str
    metric: str

    def __str__(self) -> str:
        key = self.metric if self.op == ALL else f"{self.op}.{self.metric}"
        return key if self.phase is None else f"{self.phase}/{key}"


def key_of(row: Row, *, one_phase: bool) -> str:
    """The row's key, as [compare], tables and JSON have it."""
    return str(Key(None if one_phase else row.phase, row.op, row.metric))


def parse_key(text: str) -> Key:
    """`random_read/read.latency_ns_p99` -> its parts. InputError names the nearest metric or operation."""
    phase, slash, rest = text.rpartition("/")
    op, dot, name = rest.rpartition(".")
    if dot and op not in OPS:
        raise InputError(unknown("operation", op, OPS), where=text)
    metric = METRICS.get(name)
    if metric is None:
        raise InputError(unknown("metric", name, METRICS), where=text)
    op = op or ALL
    if op not in _ops_taken(metric):
        raise InputError(f"{name} is not kept for {op}; it is kept for {', '.join(ops_of(metric))}", where=text)
    return Key(phase if slash else None, op, name)


def describe(key: str) -> Described:
    """What is known of the metric that `key` names: one of iolab's, of another tool's, or by the words of its name."""
    from iolab.tool_metric import TOOL_METRICS, describe_by_name

    name = key.rpartition("/")[2].rpartition(".")[2]
    return METRICS.get(name) or TOOL_METRICS.get(name) or describe_by_name(key)


def ops_of(metric: Metric) -> tuple[str, ...]:
    """The operations for which the metric is kept, in words."""
    return ("each operation", ALL) if metric.scope == "op" else _ops_taken(metric)


def rows(record: Record) -> list[Row]:
    """The metrics of every measured phase: aggregates first, then each job's where there are several."""
    from iolab.observation import observe

    found = {phase["phase"]: phase for phase in record.phases}
    result: list[Row] = []
    for phase in record.spec.phases:
        if not phase.measured:
            continue
        if record.status == "failed" or phase.name not in found:
            why = f"the trial {record.status}" + (f": {record.faults[0].what}" if record.faults else "")
            result += (Row(phase.name, ALL, ALL, metric.name, None, why) for metric in _metrics_of(phase, ALL))
        else:
            result += _phase_rows(phase, observe(phase, found[phase.name]))
    return result


def _phase_rows(phase: Phase, observation: Observation) -> Iterator[Row]:
    for op in (*phase.offered, ALL):
        part = observation.of(op)
        yield from (_row(phase.name, ALL, op, metric, part) for metric in _metrics_of(phase, op))
    if len(observation.jobs) > 1:
        for name in observation.jobs:
            part = observation.of_job(name)
            yield from (
                _row(phase.name, name, ALL, metric, part) for metric in _metrics_of(phase, ALL) if metric.per_job
            )
    for group in phase.weighted_groups:
        part = observation.of_group(group)
        of_group = (metric for metric in _metrics_of(phase, ALL) if metric.per_job or metric.per_group)
        yield from (_row(phase.name, group.name, ALL, metric, part) for metric in of_group)


def _metrics_of(phase: Phase, op: str) -> Iterator[Metric]:
    """The metrics that the phase has of this operation."""
    transfers = any(transfer in phase.offered for transfer in TRANSFERS)
    for metric in METRICS.values():
        if metric.scope == "measure":
            applies = metric.name in phase.measures
        else:
            applies = metric.scope == "phase" or transfers or op != ALL
        if applies and op in _ops_taken(metric):
            yield metric


def _ops_taken(metric: Metric) -> tuple[str, ...]:
    return {"op": tuple(OPS), "transfer": (*TRANSFERS, ALL)}.get(metric.scope, (ALL,))


def _row(phase: str, job: str, op: str, metric: Metric, observation: Observation) -> Row:
    value = metric.of(observation)
    return Row(
        phase, job, op, metric.name, None if value is None else float(value), metric.absent if value is None else None
    )


_NO_TIME = "no time was measured"
_NO_OPERATION = "no such operation completed in the measured part"
_NO_IO = "no I/O completed in the measured part"

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "rate_bytes_per_s",
            "bytes/s",
            "higher",
            "Bytes transferred by all jobs, divided by the measured time; a final sync counts as time.",
            "transfer",
            lambda seen: seen.per_second(seen.bytes),
            _NO_TIME,
            per_job=True,
        ),
        Metric(
            "iops",
            "1/s",
            "higher",
            "Completed operations per second of measured time.",
            "op",
            lambda seen: seen.per_second(seen.count),
            _NO_TIME,
            per_job=True,
        ),
        Metric(
            "rate_sum_bytes_per_s",
            "bytes/s",
            "higher",
            "Sum of the jobs' own rates, each until its own last operation: more than rate_bytes_per_s when they end "
            "apart. What iozone says that its children see.",
            "io",
            lambda seen: seen.rate_sum(),
            _NO_TIME,
            per_job=True,
        ),
        Metric("ops", "count", None, "Completed operations.", "op", lambda seen: seen.count, _NO_IO),
        Metric(
            "bytes",
            "bytes",
            None,
            "Bytes transferred.",
            "transfer",
            lambda seen: seen.bytes,
            _NO_IO,
            per_job=True,
        ),
        Metric(
            "latency_ns_mean",
            "ns",
            "lower",
            "Mean latency, exact. From submission to completion; in an open loop from the time the operation was due.",
            "op",
            lambda seen: seen.latency_mean(),
            _NO_OPERATION,
            per_job=True,
        ),
        Metric(
            "latency_ns_stddev",
            "ns",
            "lower",
            "Standard deviation of the latency, exact.",
            "op",
            lambda seen: seen.latency_stddev(),
            _NO_OPERATION,
        ),
        Metric(
            "latency_ns_stddev_job_mean",
            "ns",
            "lower",
            "Mean over the jobs of each job's own standard deviation: without the spread between the jobs.",
            "io",
            lambda seen: seen.latency_stddev_job_mean(),
            _NO_OPERATION,
        ),
        Metric(
            "latency_ns_min",
            "ns",
            "lower",
            "Lowest latency, exact.",
            "op",
            lambda seen: seen.latency_min(),
            _NO_OPERATION,
        ),
        Metric(
            "latency_ns_max",
            "ns",
            "lower",
            "Highest latency, exact.",
            "op",
            lambda seen: seen.latency_max(),
            _NO_OPERATION,
        ),
        *(
            Metric(
                f"latency_ns_p{label}",
                "ns",
                "lower",
                f"{percent} % of operations were at most this slow; from the histogram, at most 1 % too high.",
                "op",
                lambda seen, share=percent / 100: seen.latency_quantile(share),  # type: ignore[misc]
                _NO_OPERATION,
            )
            for label, percent in (("50", 50), ("90", 90), ("99", 99), ("999", 99.9))
        ),
        *(
            Metric(
                f"latency_share_over_{seconds}s",
                "share",
                "lower",
                f"Share of operations that took longer than {seconds} s.",
                "op",
                lambda seen, over_ns=seconds * 10**9: seen.latency_share_over(over_ns),  # type: ignore[misc]
                _NO_OPERATION,
            )
            for seconds in (2, 10)
        ),
        Metric(
            "cpu_user_s",
            "s",
            "lower",
            "CPU time of the jobs' threads in user mode, measured part.",
            "phase",
            lambda seen: seen.threads("cpu_user_ns") / 1e9,
            _NO_TIME,
        ),
        Metric(
            "cpu_system_s",
            "s",
            "lower",
            "CPU time of the jobs' threads in the kernel, measured part.",
            "phase",
            lambda seen: seen.threads("cpu_system_ns") / 1e9,
            _NO_TIME,
        ),
        Metric(
            "cpu_percent",
            "percent",
            "lower",
            "CPU time of the jobs' threads, user and system, per measured time; 100 is one CPU.",
            "phase",
            lambda seen: seen.per_second(100 * seen.cpu_ns() / 1e9),
            _NO_TIME,
        ),
        Metric(
            "cpu_ns_per_io",
            "ns",
            "lower",
            "CPU time of the jobs' threads, user and system, per completed read or write.",
            "io",
            lambda seen: seen.per_io(seen.cpu_ns()),
            _NO_IO,
        ),
        Metric(
            "process_cpu_ns_per_io",
            "ns",
            "lower",
            "The same of the whole process, which includes the rings' kernel workers.",
            "io",
            lambda seen: seen.per_io(seen.process_cpu_ns),
            _NO_IO,
        ),
        Metric(
            "context_switches_per_io",
            "count",
            "lower",
            "Context switches of the jobs' threads, voluntary and not, per completed read or write.",
            "io",
            lambda seen: seen.per_io(seen.threads("context_switches_voluntary", "context_switches_involuntary")),
            _NO_IO,
        ),
        Metric(
            "context_switches_voluntary",
            "count",
            "lower",
            "Context switches because a job's thread waited.",
            "phase",
            lambda seen: seen.threads("context_switches_voluntary"),
            _NO_TIME,
        ),
        Metric(
            "context_switches_involuntary",
            "count",
            "lower",
            "Context switches because a job's thread was preempted.",
            "phase",
            lambda seen: seen.threads("context_switches_involuntary"),
            _NO_TIME,
        ),
        Metric(
            "faults_minor",
            "count",
            "lower",
            "Page faults of the jobs' threads without I/O.",
            "phase",
            lambda seen: seen.threads("faults_minor"),
            _NO_TIME,
        ),
        Metric(
            "faults_major",
            "count",
            "lower",
            "Page faults of the jobs' threads that waited for I/O.",
            "phase",
            lambda seen: seen.threads("faults_major"),
            _NO_TIME,
        ),
        Metric(
            "fairness_jain",
            "share",
            "higher",
            "Jain's index of the jobs' rates: 1 when all are equal, 1/n when one of n has everything.",
            "io",
            lambda seen: seen.fairness(),
            "needs two jobs or more, and some I/O",
        ),
        Metric(
            "fairness_jain_weighted",
            "share",
            "higher",
            "Jain's index of the weighted groups' rates per weight: 1 when each has what its weight entitles it to.",
            "measure",
            lambda seen: seen.fairness_weighted(),
            "needs two groups or more, and some I/O",
        ),
        Metric(
            "share_of_entitlement",
            "share",
            "higher",
            "A weighted group's share of the bytes over its share of the weights; of the phase, the worst-off group's.",
            "measure",
            lambda seen: seen.share_of_entitlement(),
            "there was no I/O",
            per_group=True,
        ),
        *(
            Metric(name, unit, "lower", help, "measure", lambda seen, name=name: seen.measure(name), absent)  # type: ignore[misc]
            for name, unit, help, absent in (
                (
                    "elapsed_s_spread",
                    "share",
                    "Distance between the first and the last process to finish, over the mean of all processes' times.",
                    "a process did not finish",
                ),
                (
                    "swap_in_bytes",
                    "bytes",
                    "Brought back from swap, whole machine (pswpin of /proc/vmstat).",
                    "/proc/vmstat does not show it",
                ),
                (
                    "swap_out_bytes",
                    "bytes",
                    "Written to swap, whole machine (pswpout of /proc/vmstat).",
                    "/proc/vmstat does not show it",
                ),
                (
                    "swap_bytes_max",
                    "bytes",
                    "The most that the control group had in swap, seen every 0.1 s.",
                    "the kernel does not account swap to control groups",
                ),
                (
                    "memory_bytes_max",
                    "bytes",
                    "The most memory that the control group had (its own high-water mark).",
                    "the kernel keeps no high-water mark of control groups",
                ),
            )
        ),
        Metric(
            "files_per_s",
            "1/s",
            "higher",
            "Files made, written, synced, closed per second: the sum of the threads' own rates, as fs_mark prints it.",
            "measure",
            lambda seen: seen.measure("files_per_s"),
            "no file was made, or a thread did not come back",
            per_job=True,
        ),
        Metric(
            "files_per_s_wall",
            "1/s",
            "higher",
            "The same of all threads together: files by the time from the common start to the last thread's last file.",
            "measure",
            lambda seen: seen.measure("files_per_s_wall"),
            "no file was made, or a thread did not come back",
        ),
        Metric(
            "app_overhead_s",
            "s",
            "lower",
            "Sum of the threads' times outside create, write, fsync, sync and close, until their last file.",
            "measure",
            lambda seen: seen.measure("app_overhead_s"),
            "a thread did not come back",
            per_job=True,
        ),
        Metric(
            "filesystem_used_percent",
            "percent",
            None,
            "How full the filesystem was after the phase; space that is reserved for root counts as used.",
            "measure",
            lambda seen: seen.measure("filesystem_used_percent"),
            "the filesystem could not be asked (statvfs)",
        ),
        Metric(
            "elapsed_s",
            "s",
            "lower",
            "Wall time from the common start to the last completion (a job's own), warm-up and transient included.",
            "phase",
            lambda seen: seen.elapsed_s,
            _NO_TIME,
            per_job=True,
        ),
        Metric(
            "measured_s",
            "s",
            None,
            "Time that the other metrics cover.",
            "phase",
            lambda seen: seen.measured_s,
            _NO_TIME,
        ),
        Metric(
            "transient_s",
            "s",
            None,
            "What was cut off at the start as not yet steady.",
            "phase",
            lambda seen: seen.transient_s,
            "no transient was looked for",
        ),
        Metric(
            "errors",
            "count",
            "lower",
            "Failed operations and short transfers, the whole phase.",
            "phase",
            lambda seen: seen.errors,
            _NO_TIME,
        ),
        Metric(
            "mismatches",
            "count",
            "lower",
            "Blocks read whose contents were wrong, the whole phase.",
            "io",
            lambda seen: seen.mismatches,
            "nothing was verified: verify = false",
        ),
    )
}
