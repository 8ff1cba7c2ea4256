"""A record as its trial's table: metrics first, then histograms, intervals, series of probes, faults and notes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from iolab.base.histogram import merged
from iolab.domain import metric, phase_record
from iolab.domain import native_types as native
from iolab.domain.phase_record import JobRecord, PhaseRecord
from iolab.domain.record import Fault, Record

INTERVAL_OPS = ("read", "write", "null")
NS_PER_S = 1_000_000_000
COUNTED_INTERVALS_MAX = 64
"""With latency counts: columns of a heat map over time."""


class TableRow(NamedTuple):
    """One row, less the trial's own columns. docs/reference/store.md explains each."""

    phase: str | None
    job: str | None
    op: str | None
    what: str
    metric: str | None
    key: str | None
    at: float | None
    value: float | None
    reason: str | None


def table_rows(record: Record) -> list[TableRow]:
    """Every row of the record's table, in the order in which the trial's file keeps them."""
    rows = list(_metric_rows(record))
    for phase in record.phases:
        jobs = phase_record.jobs_of(phase)
        rows += _histogram_rows(phase["phase"], jobs)
        rows += _interval_rows(phase["phase"], jobs)
        rows += _probe_rows(phase)
    rows += (_fault_row(fault) for fault in record.faults)
    rows += (TableRow(None, None, None, "note", None, None, None, None, note) for note in record.notes)
    return rows


def _metric_rows(record: Record) -> Iterator[TableRow]:
    one_phase = sum(phase.measured for phase in record.spec.phases) <= 1
    for row in metric.rows(record):
        key = metric.key_of(row, one_phase=one_phase)
        yield TableRow(row.phase, row.job, row.op, "metric", row.metric, key, None, row.value, row.reason)


def _histogram_rows(phase: str, jobs: dict[str, JobRecord]) -> Iterator[TableRow]:
    """Latency counts by bucket: each job's if there are several, and all jobs' together."""
    ops_of_jobs = {name: phase_record.ops_of(job) for name, job in jobs.items()}
    for op in dict.fromkeys(op for ops in ops_of_jobs.values() for op in ops):
        latencies = {name: ops[op]["latency"] for name, ops in ops_of_jobs.items() if op in ops}
        by_job = {name: latency["histogram"] for name, latency in latencies.items() if latency}
        if len(jobs) > 1:
            for name, histogram in by_job.items():
                yield from _buckets(phase, name, op, histogram)
        yield from _buckets(phase, metric.ALL, op, merged(by_job.values()))


def _buckets(phase: str, job: str, op: str, histogram: Iterable[Sequence[int]]) -> Iterator[TableRow]:
    for _lowest, highest_ns, count in histogram:
        yield TableRow(phase, job, op, "histogram", "latency_ns", None, float(highest_ns), float(count), None)


class _Interval(NamedTuple):
    start_ns: int
    length_ns: int
    ops: dict[str, int]
    bytes: dict[str, int]
    latency_ns: dict[str, int | None]
    counts: Counter[int]
    """Operations by latency class, of which the highest latency is the key, in ns."""


def _interval_rows(phase: str, jobs: dict[str, JobRecord]) -> Iterator[TableRow]:
    """Time series: each job's if there are several, and all jobs' together."""
    series = {name: [_interval(record) for record in job["intervals"]] for name, job in jobs.items()}
    if len(jobs) > 1:
        for name, intervals in series.items():
            yield from _series_rows(phase, name, intervals)
    of_all = _together(list(series.values())) if len(jobs) > 1 else [one for of in series.values() for one in of]
    yield from _series_rows(phase, metric.ALL, of_all)
    yield from _count_rows(phase, of_all)


def _count_rows(phase: str, intervals: list[_Interval]) -> Iterator[TableRow]:
    """The rows of all jobs together, a row per interval and class. Neighbouring intervals are merged until there are
    few."""
    while len(intervals) > COUNTED_INTERVALS_MAX:
        intervals = [_sum_of_intervals(intervals[at : at + 2]) for at in range(0, len(intervals), 2)]
    for interval in intervals:
        for highest_ns, count in sorted(interval.counts.items()):
            at, start_ns = float(highest_ns), str(interval.start_ns)
            yield TableRow(
                phase, metric.ALL, metric.ALL, "interval_histogram", "latency_ns", start_ns, at, float(count), None
            )


def _interval(record: native.IntervalRecord) -> _Interval:
    return _Interval(
        record["start_ns"],
        record["length_ns"],
        {"read": record["read_ops"], "write": record["write_ops"], "null": record.get("null_ops") or 0},
        {"read": record["read_bytes"], "write": record["write_bytes"], "null": record.get("null_bytes") or 0},
        {
            "latency_ns_p50": record["latency_ns_p50"],
            "latency_ns_p99": record["latency_ns_p99"],
            "latency_ns_max": record["latency_ns_max"],
        },
        Counter(dict(record.get("latency_counts", ()))),
    )


def _together(series: list[list[_Interval]]) -> list[_Interval]:
    """All jobs' series as one, on the grid of the coarsest: widths are one width doubled, so finer intervals nest.

    Counts add up and the maximum is the maximum of maxima; other quantiles can't be merged and are left out.
    """
    width_ns = max((interval.length_ns for intervals in series for interval in intervals), default=0)
    places: dict[int, list[_Interval]] = defaultdict(list)
    for intervals in series:
        for interval in intervals:
            places[interval.start_ns // width_ns if width_ns else 0].append(interval)
    return [_sum_of_intervals(places[place]) for place in sorted(places)]


def _sum_of_intervals(parts: list[_Interval]) -> _Interval:
    start_ns = min(part.start_ns for part in parts)
    maxima = [part.latency_ns["latency_ns_max"] for part in parts]
    return _Interval(
        start_ns,
        max(part.start_ns + part.length_ns for part in parts) - start_ns,
        {op: sum(part.ops[op] for part in parts) for op in INTERVAL_OPS},
        {op: sum(part.bytes[op] for part in parts) for op in INTERVAL_OPS},
        {"latency_ns_max": max((value for value in maxima if value is not None), default=None)},
        sum((part.counts for part in parts), Counter()),
    )


def _series_rows(phase: str, job: str, intervals: list[_Interval]) -> Iterator[TableRow]:
    parts: dict[str, tuple[str, ...]] = {
        op: (op,) for op in INTERVAL_OPS if any(interval.ops[op] for interval in intervals)
    }
    parts[metric.ALL] = INTERVAL_OPS
    for interval in intervals:
        start_ns, length_s = float(interval.start_ns), interval.length_ns / NS_PER_S
        yield TableRow(phase, job, metric.ALL, "interval", "length_s", None, start_ns, length_s, None)
        if not length_s:
            continue
        for op, summed in parts.items():
            rate = sum(interval.bytes[part] for part in summed) / length_s
            iops = sum(interval.ops[part] for part in summed) / length_s
            yield TableRow(phase, job, op, "interval", "rate_bytes_per_s", None, start_ns, rate, None)
            yield TableRow(phase, job, op, "interval", "iops", None, start_ns, iops, None)
        for name, value in interval.latency_ns.items():
            if value is not None:
                yield TableRow(phase, job, metric.ALL, "interval", name, None, start_ns, float(value), None)


def _probe_rows(phase: PhaseRecord) -> Iterator[TableRow]:
    """The probes' time series; a point without a number has no row."""
    for probe, observation in phase_record.any_probes_of(phase).items():
        for job, series in phase_record.series_of(observation).items():
            for name, values in series["columns"].items():
                for at_ns, value in zip(series["at_ns"], values, strict=True):
                    if value is not None:
                        yield TableRow(phase["phase"], job, None, "series", name, probe, at_ns, float(value), None)


def _fault_row(fault: Fault) -> TableRow:
    errno = f"errno_{fault.errno}" if fault.errno else None
    return TableRow(fault.phase, fault.job, None, "fault", errno, None, None, float(fault.count), fault.what)
