"""fio's report as a phase record: counts, latency histograms, CPU, per job."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iolab.base.histogram import merged
from iolab.domain import native_types as native
from iolab.domain.fio_report.job import Job, Latency, number
from iolab.domain.phase_record import (
    Failure,
    GroupRecord,
    JobRecord,
    PhaseRecord,
    Usage,
    group_record,
    job_record,
    phase_record,
)

if TYPE_CHECKING:
    from iolab.domain.trial import FioPhase

NS_PER_MS = 1_000_000
EXACT_BELOW = 128
"""fio counts smaller latencies exactly; above, 64 bins per doubling, each named by its middle (stat.c)."""
WRONG_DATA = errno.EILSEQ
"""What fio's job ends with when a block is not what was written."""
SWITCHES = "fio counts context switches of both kinds together; they stand as voluntary"


def record(
    phase: FioPhase, report: Mapping[str, Any], *, started_unix_ns: int, stopped: bool, notes: Sequence[str]
) -> PhaseRecord:
    """All jobs start together, so the phase lasts as long as the longest."""
    found = {raw["jobname"]: raw for raw in report["jobs"]}
    jobs: list[Job] = []
    groups: list[GroupRecord] = []
    failures: list[Failure] = []
    specs = {job["name"]: (group["engine"], job) for group in phase.load["groups"] for job in group["jobs"]}
    for name, (engine, spec) in specs.items():
        if name not in found:
            failures.append({"job": name, "what": "fio did not run it"})
            continue
        job = Job(name, 0, found[name])
        jobs.append(job)
        made = _job(phase, job, engine)
        notes_of_job = [SWITCHES, *notes]
        if (wanted := spec.get("steady_state")) is not None:
            made["steady_state"] = _steadiness(wanted, job)
            notes_of_job.append(_steady_note(name, made["steady_state"]))
        groups.append(group_record(name, _usage(job), [made], notes_of_job))
    elapsed_ns = max((_runtime_ns(job) for job in jobs), default=0)
    return phase_record(
        phase.name,
        started_unix_ns=started_unix_ns,
        elapsed_ns=elapsed_ns,
        groups=groups,
        stopped=stopped,
        failures=failures,
    )


def bucket(middle_ns: int, count: int) -> tuple[int, int, int]:
    """Lowest and highest latency of the bin that fio names by its middle."""
    if middle_ns < EXACT_BELOW:
        return middle_ns, middle_ns, count
    width = 1 << (middle_ns.bit_length() - 7)
    lowest = middle_ns - width // 2
    return lowest, lowest + width - 1, count


def _runtime_ns(job: Job) -> int:
    return round(max((side.runtime_ms for side in job.sides.values()), default=job.runtime_ms) * NS_PER_MS)


def _usage(job: Job) -> Usage:
    return Usage(
        cpu_user_ns=round(job.cpu_user_s * 1e9),
        cpu_system_ns=round(job.cpu_system_s * 1e9),
        context_switches_voluntary=round(number(job.raw, "ctx")),
        faults_minor=round(number(job.raw, "minf")),
        faults_major=round(number(job.raw, "majf")),
    )


def _job(phase: FioPhase, job: Job, engine: native.EngineKind) -> JobRecord:
    ops: dict[str, native.OpRecord] = {
        way: {"count": round(side.ops), "bytes": round(side.bytes), "latency": _latency(side.latency)}
        for way, side in job.sides.items()
    }
    if engine == "null" and ops:
        # fio calls them by the direction that the job has.
        ops = {"null": _together(list(ops.values()))}
    errors = _errors(phase, job)
    wrong = sum(error["count"] for error in errors if error["errno"] == WRONG_DATA)
    others = [error for error in errors if error["errno"] != WRONG_DATA]
    made = job_record(job.name, finished_ns=_runtime_ns(job), ops=ops, errors=others)
    return {**made, "mismatches_count": wrong}


def _steadiness(wanted: native.SteadyState, job: Job) -> native.Steadiness:
    """fio's own verdict. A job that is steady ends there, and fio does not report when else that was."""
    seen = job.raw.get("steadystate")
    found = seen if isinstance(seen, dict) else {}
    data = found.get("data")
    means = data if isinstance(data, dict) else {}
    mean = number(means, "iops_mean" if wanted["of"] == "operations" else "bw_mean")
    criterion = re.fullmatch(r"(-?\d{1,18}(?:\.\d{1,18})?)%?", str(found.get("criterion", "")))
    is_reached = number(found, "attained") > 0
    return {
        "wanted": wanted,
        "reached_ns": _runtime_ns(job) if is_reached else None,
        # Before a window is full, fio has 0 here.
        "criterion": abs(float(criterion[1])) if criterion and mean else None,
        "mean_per_s": mean or None,
    }


def _steady_note(name: str, found: native.Steadiness) -> str:
    reached = "reached" if found["reached_ns"] is not None else "not reached"
    unit = " %" if found["wanted"]["in_percent"] else ""
    shown = "" if found["criterion"] is None else f": {found['criterion']:.3f}{unit}"
    return f'job "{name}": steady state {reached}{shown}, to be below {found["wanted"]["limit"]:g}{unit}'


def _together(parts: Sequence[native.OpRecord]) -> native.OpRecord:
    """Operations of several kinds as one: moments weighted by counts."""
    if len(parts) == 1:
        return parts[0]
    seen = [(part["count"], own) for part in parts if (own := part["latency"]) is not None]
    count = sum(of_part for of_part, _ in seen)
    latency: native.LatencyRecord | None = None
    if count:
        mean_ns = sum(of_part * each["mean_ns"] for of_part, each in seen) / count
        squares = (of_part * (each["stddev_ns"] ** 2 + (each["mean_ns"] - mean_ns) ** 2) for of_part, each in seen)
        latency = {
            "min_ns": min(each["min_ns"] for _, each in seen),
            "max_ns": max(each["max_ns"] for _, each in seen),
            "mean_ns": mean_ns,
            "stddev_ns": (sum(squares) / count) ** 0.5,
            "histogram": [(low, high, times) for low, high, times in merged(each["histogram"] for _, each in seen)],
        }
    return {
        "count": sum(part["count"] for part in parts),
        "bytes": sum(part["bytes"] for part in parts),
        "latency": latency,
    }


def _latency(latency: Latency | None) -> native.LatencyRecord | None:
    if latency is None:
        return None
    return {
        "min_ns": round(latency.min_ns),
        "max_ns": round(latency.max_ns),
        "mean_ns": latency.mean_ns,
        "stddev_ns": latency.stddev_ns,
        "histogram": [bucket(middle, count) for middle, count in latency.bins],
    }


def _errors(phase: FioPhase, job: Job) -> list[native.ErrorRecord]:
    """fio reports the first error, how many there were if it went on, and not where."""
    code = abs(round(number(job.raw, "error")))
    count = round(number(job.raw, "total_err")) or int(code > 0)
    if not count:
        return []
    code = code or round(number(job.raw, "first_error"))
    first = phase.load["files"][0]
    return [
        {
            "errno": code,
            "name": os.strerror(code),
            "op": "fio",
            "count": count,
            "first_path": first["path"],
            "first_offset": first["base_bytes"],
        }
    ]
