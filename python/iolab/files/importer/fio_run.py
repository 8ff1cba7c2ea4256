"""What fio measured, as the rows of runs: the same from its JSON, its text for people and its terse lines.

The jobs of a reporting group ran at the same time: they are the jobs of one phase. One group is the phase `main`;
several are phases named after their first job. The workload is named after the jobs. If a text has several runs of
the same jobs, what stands above them names their settings, else the options in which they differ; runs with the same
options are rounds.
"""

from __future__ import annotations

import errno
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iolab.base.histogram import few, known_quantile
from iolab.base.strict_json import JsonObject
from iolab.domain.fio_report.document import job_list, started_unix_ns
from iolab.domain.fio_report.job import MIXED, WAYS, Job, Latency, Side, number, table
from iolab.files.importer.results import MAIN, NOT_STATED, Results, Row, Table
from iolab.files.importer.source import Source

NAMES_MAX = 3
OPTIONS_MAX = 200
TEXT_MAX = 200
DIFFERENCE_MAX = 60
OPTIONS_OF_NO_EFFECT = ("name", "description", "output", "output-format", "group_reporting")
OF_NO_SETTING = ("fio_version", "device", "write_bw_log", "write_iops_log", "write_lat_log", "write_hist_log")
ALL_CLIENTS = "All clients"
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}
AS_PRINTED = ("p95", "p9999")
"""Of these, what is taken where fio states it and not computed."""
FEWER_THAN_PRINTED = "below one a second, and printed without decimals"
NO_QUANTILE = "quantiles of jobs don't make one of all: --by-job shows each; run fio with --output-format=json+"
OF_SOME = "latencies of a part of the I/Os alone are in the text"
WRONG_DATA = "a block was not what had been written"
"""What fio means by EILSEQ."""
ERRNO_END = 4096
OPS = tuple(WAYS.values())


@dataclass(frozen=True)
class FioRun:
    """One run in a text: with the content of fio's JSON."""

    line: int
    content: JsonObject
    heading: str | None = None
    """What the text calls it, above."""
    cut_job: JsonObject | None = None
    """The job in which the text ends: the sums of its group are not known."""


def add_runs(source: Source, results: Results, runs: Sequence[FioRun]) -> None:
    """Adds the runs of one file."""
    with_jobs = [(run, jobs) for run in runs if (jobs := _jobs(run))]
    facts = [dict(_facts(run.content, jobs)) for run, jobs in with_jobs]
    names = _by_access([(run, _workload(jobs), fact) for (run, jobs), fact in zip(with_jobs, facts, strict=True)])
    alike: dict[tuple[str | None, str], list[dict[str, str]]] = {}
    for (run, _), fact, name in zip(with_jobs, facts, names, strict=True):
        for key in {(None, name), (run.heading or None, name)}:
            alike.setdefault(key, []).append(fact)
    varying = {key: _varying(found) for key, found in alike.items()}
    for place, (run, jobs) in enumerate(with_jobs):
        setting = source.stem_without_round
        is_alike = len(alike[None, names[place]]) > 1
        if is_alike:
            differences = _differences(facts[place], varying[run.heading or None, names[place]])
            setting = " ".join((run.heading or setting, *differences))
            is_alike = not differences
        opened = results.table(run.line, heading=run.heading)
        opened.is_alike = is_alike
        _add_run(opened, run, jobs, setting, names[place])
        own = {"rw"} if names[place] != _workload(jobs) else set()
        results.add_setting_facts(setting, {name: text for name, text in facts[place].items() if name not in own})


def _by_access(runs: Sequence[tuple[FioRun, str, dict[str, str]]]) -> list[str]:
    """The runs' workloads: jobs of one name that read in one run and write in another, below no heading, are two."""
    ways: dict[str, set[str]] = {}
    for run, name, facts in runs:
        if run.heading is None and "rw" in facts:
            ways.setdefault(name, set()).add(facts["rw"])
    return [
        f"{name}[rw={facts['rw']}]" if run.heading is None and "rw" in facts and len(ways[name]) > 1 else name
        for run, name, facts in runs
    ]


def _varying(runs: Sequence[dict[str, str]]) -> set[str]:
    """The options that are not the same in all of the runs."""
    names = {name for facts in runs for name in facts}
    return {name for name in names - set(OF_NO_SETTING) if len({facts.get(name) for facts in runs}) > 1}


def _differences(facts: dict[str, str], varying: set[str]) -> list[str]:
    """The options of a run in which others have something else, as `iodepth=32`."""
    return [f"{name}={value}"[:DIFFERENCE_MAX] for name, value in facts.items() if name in varying][:NAMES_MAX]


def _add_run(opened: Table, run: FioRun, jobs: list[Job], setting: str, workload: str) -> None:
    groups: dict[int, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.group, []).append(job)
    phases: dict[str, int] = {}
    for members in groups.values():
        phase = MAIN if len(groups) == 1 else _phase(members[0].name, phases)
        row = opened.row(setting, workload, phase)
        row.started_unix_ns = started_unix_ns(run.content)
        _add_group(row, members, run.cut_job)


def _facts(content: JsonObject, jobs: list[Job]) -> Iterator[tuple[str, str]]:
    """What it was measured with: version, the jobs' options, the disks that were busy."""
    version = content.get("fio version")
    if isinstance(version, str):
        yield "fio_version", version[:TEXT_MAX]
    of_all = table(content, "global options")
    of_jobs = {job.name: of_all | table(job.raw, "job options") for job in jobs}
    for name in list(dict.fromkeys(name for options in of_jobs.values() for name in options))[:OPTIONS_MAX]:
        if name in OPTIONS_OF_NO_EFFECT:
            continue
        values = {job: str(options[name])[:TEXT_MAX] for job, options in of_jobs.items() if name in options}
        if len(values) == len(jobs) and len(set(values.values())) == 1:
            yield name[:TEXT_MAX], next(iter(values.values()))
            continue
        yield from ((f"{job}: {name}"[:TEXT_MAX], value) for job, value in list(values.items())[:NAMES_MAX])
    disks = content.get("disk_util")
    names = [disk.get("name") for disk in disks if isinstance(disk, dict)] if isinstance(disks, list) else []
    if names:
        yield "device", ", ".join(map(str, names))[:TEXT_MAX]


def _jobs(run: FioRun) -> list[Job]:
    jobs: list[Job] = []
    taken: dict[tuple[str, int], int] = {}
    for raw in [*job_list(run.content), *([run.cut_job] if run.cut_job else [])]:
        if not isinstance(raw, dict) or raw.get("jobname") == ALL_CLIENTS:
            continue
        host = raw.get("hostname")
        name = (
            f"{host}:{raw.get('jobname', 'job')}" if isinstance(host, str) and host else str(raw.get("jobname", "job"))
        )
        group = int(number(raw, "groupid"))
        copies = taken[name, group] = taken.get((name, group), 0) + 1
        jobs.append(Job(name if copies == 1 else f"{name}.{copies}", group, raw))
    return jobs


def _workload(jobs: list[Job]) -> str:
    names = list(dict.fromkeys(str(job.raw.get("jobname", "job")) for job in jobs))
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return "+".join(names[:NAMES_MAX]) + more


def _phase(name: str, taken: dict[str, int]) -> str:
    name = re.sub(r"[/.\s]+", "_", name)
    taken[name] = taken.get(name, 0) + 1
    return name if taken[name] == 1 else f"{name}_{taken[name]}"


def _add_group(row: Row, jobs: list[Job], cut_job: JsonObject | None) -> None:
    whole = [job for job in jobs if job.raw is not cut_job]
    if len(whole) == len(jobs):
        _add_sides(row, jobs)
        _add_processor(row, jobs)
    else:
        for metric in ("rate_bytes_per_s", "iops", "latency_ns_mean"):
            row.add(metric, None, absent="the JSON is cut off in one of the jobs")
    if len(jobs) > 1:
        for job in whole:
            sides = list(job.sides.values())
            # A sync writes what its writes left: a mean over both is of no operation.
            transfers = job.transfers or sides
            _add_rates(row, job.transfers, "all", job.name)
            if not sides:
                row.add("latency_ns_mean", None, job=job.name, absent="no I/O")
            _add_latency(row, transfers, "all", job.name)
            for way, side in job.sides.items():
                if len(sides) > 1:
                    _add_rates(row, [side], _op(way), job.name)
                    _add_latency(row, [side], _op(way), job.name)
                row.histogram(side.latency.bins if side.latency else (), op=_op(way), job=job.name)
    for job in whole:
        _add_failure(row, job)


def _add_failure(row: Row, job: Job) -> None:
    code, count = abs(int(number(job.raw, "error"))), int(number(job.raw, "total_err"))
    if not code and not count:
        return
    code = code or abs(int(number(job.raw, "first_error")))
    why = WRONG_DATA if code == errno.EILSEQ else os.strerror(code) if 0 < code < ERRNO_END else "unknown"
    times = f", {count:,} in all" if count > 1 else ""
    row.fault(f"job {job.name} failed with error {code} ({why}){times}", job=job.name, errno=code)


def _op(way: str) -> str:
    return "all" if way == MIXED else way


def _add_sides(row: Row, jobs: list[Job]) -> None:
    ways = dict.fromkeys(way for way in (*OPS, MIXED) if any(way in job.sides for job in jobs))
    by_way = {way: [job.sides[way] for job in jobs if way in job.sides] for way in ways}
    transfers = [side for job in jobs for side in job.transfers]
    for op, sides in (("all", transfers), *((way, sides) for way, sides in by_way.items() if way != MIXED)):
        if sides or (op == "all" and by_way.keys() != {"sync"}):
            _add_rates(row, sides, op)
            _add_latency(row, sides, op)
            _add_parts(row, sides, op)
    for way, sides in by_way.items():
        row.histogram(_merged([side.latency for side in sides if side.latency]), op=_op(way))
    for job in jobs:
        if "total_err" in job.raw:
            row.add("errors", sum(number(one.raw, "total_err") for one in jobs))
            break


def _add_rates(row: Row, sides: list[Side], op: str, job: str = "all") -> None:
    seconds = max((side.runtime_ms for side in sides), default=0.0) / 1000
    ops = sum(side.ops for side in sides)
    if op != "sync":
        size = sum(side.bytes for side in sides)
        row.add("rate_bytes_per_s", size / seconds if seconds else None, op=op, job=job, absent="no I/O")
        if job == "all":
            row.add("bytes", size, op=op)
    known = ops if ops or not any(side.bytes for side in sides) else None
    if seconds:
        row.add("iops", None if known is None else known / seconds, op=op, job=job, absent=FEWER_THAN_PRINTED)
    if job == "all":
        row.add("ops", None if op == "sync" and not ops else known, op=op, absent=FEWER_THAN_PRINTED)


def _add_latency(row: Row, sides: list[Side], op: str, name: str = "all") -> None:
    latencies = [side.latency for side in sides if side.latency]
    if not latencies:
        return
    if len(latencies) < len(sides):
        row.add("latency_ns_mean", None, op=op, job=name, absent=OF_SOME)
        return
    row.add("latency_ns_mean", _mean(latencies), op=op, job=name)
    row.add("latency_ns_stddev", _stddev(latencies), op=op, job=name)
    row.add("latency_ns_min", min(latency.min_ns for latency in latencies), op=op, job=name)
    row.add("latency_ns_max", max(latency.max_ns for latency in latencies), op=op, job=name)
    highest = max(latency.max_ns for latency in latencies)
    bins = _merged(latencies) if all(latency.bins for latency in latencies) else []
    for short, share in SHARES.items():
        alone = latencies[0].percentiles_ns.get(short) if len(latencies) == 1 else None
        if short in AS_PRINTED and not any(short in one.percentiles_ns for one in latencies):
            continue
        # fio's bins are wider than a nanosecond: what it calls p99.9 may lie above the largest that there was.
        own = min(alone, highest) if alone is not None else None
        value = own if own is not None else known_quantile([(at, at, n) for at, n in bins], share, highest)
        why = few(share) if bins else NO_QUANTILE if len(latencies) > 1 else NOT_STATED
        row.add(f"latency_ns_{short}", value, op=op, job=name, absent=why)


def _add_parts(row: Row, sides: list[Side], op: str) -> None:
    for part in ("submission", "completion"):
        latencies = [side.parts[part] for side in sides if part in side.parts]
        if latencies and len(latencies) == len(sides):
            row.add(f"{part}_latency_ns_mean", _mean(latencies), op=op)
            row.add(f"{part}_latency_ns_max", max(latency.max_ns for latency in latencies), op=op)


def _add_processor(row: Row, jobs: list[Job]) -> None:
    if not all(job.has_cpu for job in jobs):
        return
    user_s, system_s = (sum(getattr(job, name) for job in jobs) for name in ("cpu_user_s", "cpu_system_s"))
    seconds = max((side.runtime_ms for job in jobs for side in job.sides.values()), default=0.0) / 1000
    ops = sum(side.ops for job in jobs for side in job.transfers)
    row.add("cpu_user_s", user_s)
    row.add("cpu_system_s", system_s)
    row.add("cpu_percent", 100 * (user_s + system_s) / seconds if seconds else None, absent="no time was measured")
    row.add("cpu_ns_per_io", 1e9 * (user_s + system_s) / ops if ops else None, absent="no I/O")
    switches = sum(number(job.raw, "ctx") for job in jobs)
    row.add("context_switches_per_io", switches / ops if ops else None, absent="no I/O")
    row.add("faults_minor", sum(number(job.raw, "minf") for job in jobs))
    row.add("faults_major", sum(number(job.raw, "majf") for job in jobs))
    row.add("elapsed_s", seconds or None, absent="no I/O")


def _mean(latencies: list[Latency]) -> float | None:
    count = sum(latency.count for latency in latencies)
    return sum(latency.count * latency.mean_ns for latency in latencies) / count if count else None


def _stddev(latencies: list[Latency]) -> float | None:
    """The standard deviation of all operations together: from each part's spread and its distance from the common
    mean."""
    count, mean = sum(latency.count for latency in latencies), _mean(latencies)
    if not count or mean is None:
        return None
    distances = [part.mean_ns - mean for part in latencies]
    parts = zip(latencies, distances, strict=True)
    return math.sqrt(sum(part.count * (part.stddev_ns * part.stddev_ns + gap * gap) for part, gap in parts) / count)


def _merged(latencies: list[Latency]) -> list[tuple[int, int]]:
    counts: Counter[int] = Counter()
    for latency in latencies:
        for at, count in latency.bins:
            counts[at] += count
    return sorted(counts.items())
