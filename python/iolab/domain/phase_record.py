"""The record of a phase: the engine's (crates/workload/src/record.rs), and what other runners make in its likeness.

A job counts reads, writes and syncs under `read`, `write` and `sync`, and any other operation by name under `ops`, all
in the same shape. What is a number and not an operation stands by the metric's name under `measures`, of a job or of
the phase. Probes that were on stand under `probes` by name, each with what it observed, or with the reason why it could
not under `probes_absent`. Whoever reads a record asks the functions here, so that the engine's may do without these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from resource import struct_rusage
from typing import Any

Json = dict[str, Any]

ENGINE_OPS = ("read", "write", "sync")


def jobs_of(phase: Json) -> dict[str, Json]:
    """By name, in the order of the groups."""
    return {job["name"]: job for group in phase["groups"] for job in group["jobs"]}


def ops_of(job: Json) -> dict[str, Json]:
    """The job's operations by name: count, bytes, latency."""
    found: dict[str, Json] = {op: job[op] for op in ENGINE_OPS if op in job}
    return {**found, **job.get("ops", {})}


def measures_of(part: Json) -> dict[str, float | None]:
    """What a job or a phase measured besides operations, by metric."""
    return dict(part.get("measures", {}))


def failures_of(phase: Json) -> list[Json]:
    """What made the phase fail as a whole: `job` and `what`. The engine's phases fail by operation only."""
    return list(phase.get("failures", []))


def probes_of(phase: Json) -> dict[str, Json]:
    """What each probe observed, by its name: plain JSON, in the shape that docs/reference/probes.md describes."""
    return dict(phase.get("probes", {}))


def probes_absent_of(phase: Json) -> dict[str, str]:
    """Why probes that were on observed nothing, by name."""
    return dict(phase.get("probes_absent", {}))


def series_of(observation: Json) -> dict[str, Json]:
    """A probe's time series by what each is of (`all`, `cpu0`, ...): `at_ns`, the points since the probe's start, and
    `columns`, by name as many numbers (null: none at this point)."""
    return dict(observation.get("series", {}))


def without_series(phase: Json) -> Json:
    """Less the histograms, intervals and probes' time series, which are most of it."""
    groups = [{**group, "jobs": [_job_without_histograms(job) for job in group["jobs"]]} for group in phase["groups"]]
    bare = {**phase, "groups": groups}
    if "probes" in phase:
        bare["probes"] = {name: _without(observation, "series") for name, observation in probes_of(phase).items()}
    return bare


@dataclass(frozen=True)
class Usage:
    """What threads or processes used (getrusage(2))."""

    cpu_user_ns: int = 0
    cpu_system_ns: int = 0
    context_switches_voluntary: int = 0
    context_switches_involuntary: int = 0
    faults_minor: int = 0
    faults_major: int = 0

    @classmethod
    def of(cls, usage: struct_rusage) -> Usage:
        """From what getrusage(2) or wait4(2) says; seconds become ns."""
        return cls(
            cpu_user_ns=round(usage.ru_utime * 1e9),
            cpu_system_ns=round(usage.ru_stime * 1e9),
            context_switches_voluntary=usage.ru_nvcsw,
            context_switches_involuntary=usage.ru_nivcsw,
            faults_minor=usage.ru_minflt,
            faults_major=usage.ru_majflt,
        )

    def __add__(self, other: Usage) -> Usage:
        theirs = asdict(other)
        return Usage(**{name: value + theirs[name] for name, value in asdict(self).items()})

    def __sub__(self, other: Usage) -> Usage:
        theirs = asdict(other)
        return Usage(**{name: value - theirs[name] for name, value in asdict(self).items()})


def phase_record(
    name: str,
    *,
    started_unix_ns: int,
    elapsed_ns: int,
    groups: Sequence[Json],
    stopped: bool = False,
    measures: Mapping[str, float | None] | None = None,
    failures: Sequence[Json] = (),
) -> Json:
    """A phase of other runners than the engine: all of its time is measured.

    Args:
        measures: by metric; None where it could not be measured.
        failures: `{"job": name, "what": one line}` of what makes the whole phase worthless.
    """
    return {
        "phase": name,
        "started_unix_ns": started_unix_ns,
        "elapsed_ns": elapsed_ns,
        "wall_clock_shift_ns": 0,
        "measured_from_ns": 0,
        "measured_to_ns": elapsed_ns,
        "transient": None,
        "stopped": stopped,
        "build_profile": "release",
        "clock": "monotonic",
        "groups": list(groups),
        "process_cpu_user_ns": sum(group["cpu_user_ns"] for group in groups),
        "process_cpu_system_ns": sum(group["cpu_system_ns"] for group in groups),
        "measures": dict(measures or {}),
        "failures": list(failures),
    }


def group_record(name: str, usage: Usage, jobs: Sequence[Json], notes: Sequence[str] = ()) -> Json:
    """Jobs whose use of CPUs was counted together."""
    return {"name": name, "notes": list(notes), **asdict(usage), "jobs": list(jobs)}


def job_record(
    name: str,
    *,
    finished_ns: int,
    ops: Mapping[str, Json] | None = None,
    measures: Mapping[str, float | None] | None = None,
    errors: Sequence[Json] = (),
) -> Json:
    """A job; `finished_ns` counts from the phase's start. `ops` and `errors` in the shapes of the engine's record."""
    return {
        "name": name,
        "finished_ns": finished_ns,
        "ops": dict(ops or {}),
        "measures": dict(measures or {}),
        "errors": list(errors),
        "mismatches_count": 0,
        "mismatches": [],
        "intervals": [],
    }


def _job_without_histograms(job: Json) -> Json:
    bare = {op: _op_without_histogram(found) for op, found in ops_of(job).items()}
    further = {"ops": {op: bare[op] for op in job["ops"]}} if "ops" in job else {}
    return {**job, **{op: bare[op] for op in ENGINE_OPS if op in job}, **further, "intervals": []}


def _op_without_histogram(op: Json) -> Json:
    return {**op, "latency": {**op["latency"], "histogram": []}} if op["latency"] else op


def _without(table: Json, key: str) -> Json:
    return {name: value for name, value in table.items() if name != key}
