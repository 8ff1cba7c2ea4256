"""The metrics' values in a record."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from iolab.domain.metric.registry import ALL, METRICS, TRANSFERS, Key, ops_taken
from iolab.domain.observation import Observation, observe
from iolab.domain.phase_record import failures_of

if TYPE_CHECKING:
    from iolab.domain.definition import Metric
    from iolab.domain.record import Record
    from iolab.domain.trial import Phase, Trial

COUNTED = ("op", "transfer", "io")
"""Scopes of metrics that are made of operations, so that any jobs together have them."""


class Row(NamedTuple):
    """A metric's value in a record. `job` and `op` are `all` for the aggregate."""

    phase: str
    job: str
    op: str
    metric: str
    value: float | None
    reason: str | None


def key_of(row: Row, *, one_phase: bool) -> str:
    """The row's key, as [compare], tables and JSON have it."""
    return str(Key(None if one_phase else row.phase, row.op, row.metric))


def rows(record: Record) -> list[Row]:
    """The metrics of every measured phase: aggregates first, then each job's if there are several. Of a trial that
    failed, those of the phases before have their values.
    """
    found = {phase["phase"]: phase for phase in record.phases}
    result: list[Row] = []
    for phase in record.spec.phases:
        if not phase.measured:
            continue
        if phase.name not in found or (record.status == "failed" and failures_of(found[phase.name])):
            why = _why_not(record)
            offered = _metrics_of(record.spec, phase, ALL)
            result += (Row(phase.name, ALL, ALL, metric.name, None, why) for metric in offered)
        else:
            result += _phase_rows(record.spec, phase, observe(phase, found[phase.name]))
    return result


def _why_not(record: Record) -> str:
    if record.status == "impossible":
        return f"impossible here: {'; '.join(record.controls_absent.values())}"
    return f"the trial {record.status}" + (f": {record.faults[0].what}" if record.faults else "")


def _phase_rows(trial: Trial, phase: Phase, observation: Observation) -> Iterator[Row]:
    # Asked once: a phase may have hundreds of jobs, and what it offers is found by looking at each.
    metrics = {op: list(_metrics_of(trial, phase, op)) for op in (*phase.offered, ALL)}
    for op, of_op in metrics.items():
        part = observation.of(op)
        yield from (_row(phase.name, ALL, op, metric, part) for metric in of_op)
    if len(observation.jobs) > 1:
        for name in observation.jobs:
            yield from _job_rows(phase.name, name, metrics, observation.of_job(name))
        of_kinds = {} if phase.weighted_groups else families(observation.jobs)
        for name, copies in of_kinds.items():
            yield from _job_rows(phase.name, name, metrics, observation.of_jobs(copies))
    for group in phase.weighted_groups:
        part = observation.of_group(group)
        of_group = (metric for metric in metrics[ALL] if metric.per_job or metric.per_group)
        yield from (_row(phase.name, group.name, ALL, metric, part) for metric in of_group)


def _job_rows(phase: str, name: str, metrics: Mapping[str, list[Metric]], part: Observation) -> Iterator[Row]:
    """Metrics of each operation that it did, and of all together; for several copies, what is counted by operation."""
    for op, of_op in metrics.items():
        of_job = part.of(op)
        if op != ALL and not of_job.count:
            continue
        kept = (metric for metric in of_op if metric.per_job and (part.job is not None or metric.scope in COUNTED))
        yield from (_row(phase, name, op, metric, of_job) for metric in kept)


def families(jobs: Collection[str]) -> dict[str, list[str]]:
    """Each kind of job that runs in copies (`writer.0`, `writer.1`, ...) with its copies, if there are several
    kinds."""
    by_base: dict[str, list[str]] = {}
    for name in jobs:
        base, dot, number = name.rpartition(".")
        by_base.setdefault(base if dot and number.isdecimal() else name, []).append(name)
    if len(by_base) < 2:
        return {}
    return {base: names for base, names in by_base.items() if names != [base] and base not in jobs}


def _metrics_of(trial: Trial, phase: Phase, op: str) -> Iterator[Metric]:
    """The metrics that the phase has of this operation."""
    offered = phase.offered
    for metric in METRICS.values():
        if metric.scope == "flash" and not trial.has_flash:
            continue
        if metric.probe in (None, *trial.probes) and is_kept(metric, phase, op, offered):
            yield metric


def is_kept(metric: Metric, phase: Phase, op: str, offered: Collection[str]) -> bool:
    """Whether records of the phase, which offers these operations, have the metric for this one, the metric's probe
    being on."""
    if op not in ops_taken(metric) or (op != ALL and op not in offered):
        return False
    if metric.scope == "measure":
        return metric.name in phase.measures
    if metric.scope == "flash":
        return "write" in offered
    transfers = any(transfer in offered for transfer in TRANSFERS)
    return metric.scope in ("phase", "probe") or transfers or op != ALL


def _row(phase: str, job: str, op: str, metric: Metric, observation: Observation) -> Row:
    value = metric.of(observation)
    if value is not None:
        return Row(phase, job, op, metric.name, float(value), None)
    reason = metric.absent if metric.probe is None else observation.probe_absent(metric.probe) or metric.absent
    return Row(phase, job, op, metric.name, None, reason)
