"""fio's JSON and json+ output, versions 2 and 3, of one machine or of clients.

The jobs of a reporting group ran at the same time: they are the jobs of one phase. One group is the phase `main`;
several are phases named after their first job. The workload is named after the jobs, the setting after the file.
Several results in one file are rounds; of the snapshots that --status-interval prints, the last counts.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from iolab.adapters.importer.fio_document import Document, documents, job_list, last_of_each_run, started_unix_ns
from iolab.adapters.importer.fio_job import Job, Latency, Side, number, table
from iolab.adapters.importer.format import Format
from iolab.adapters.importer.results import MAIN, Results, Row
from iolab.adapters.importer.source import Source, json_text
from iolab.base.histogram import few, told_quantile
from iolab.base.strict_json import JsonObject

NAMES_MAX = 3
OPTIONS_MAX = 200
TEXT_MAX = 200
OPTIONS_OF_NO_EFFECT = ("name", "description", "output", "output-format", "group_reporting")
ALL_CLIENTS = "All clients"
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
NO_QUANTILE = "quantiles of jobs don't make one of all; run fio with --output-format=json+"


def _parse(source: Source, results: Results) -> None:
    found = list(documents(json_text(source), source.name))
    kept = last_of_each_run(found)
    if len(kept) < len(found):
        results.problem(f"{len(found) - len(kept)} snapshots of runs that went on are left out")
    for document in kept:
        if document.problem:
            results.problem(document.problem, document.line)
        _add_run(source, results, document)


def _add_run(source: Source, results: Results, document: Document) -> None:
    jobs = _jobs(document.content)
    if not jobs:
        return
    opened = results.table(document.line)
    groups: dict[int, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.group, []).append(job)
    workload = _workload(jobs)
    phases: dict[str, int] = {}
    for members in groups.values():
        phase = MAIN if len(groups) == 1 else _phase(members[0].name, phases)
        row = opened.row(source.stem_without_round, workload, phase)
        row.started_unix_ns = started_unix_ns(document.content)
        _add_group(row, members)
    results.setting_says(source.stem_without_round, dict(_said(document.content, jobs)))


def _said(content: JsonObject, jobs: list[Job]) -> Iterator[tuple[str, str]]:
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


def _jobs(content: JsonObject) -> list[Job]:
    jobs: list[Job] = []
    taken: dict[tuple[str, int], int] = {}
    for raw in job_list(content):
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


def _add_group(row: Row, jobs: list[Job]) -> None:
    _add_sides(row, jobs)
    _add_processor(row, jobs)
    if len(jobs) > 1:
        for job in jobs:
            sides = list(job.sides.values())
            _add_rates(row, [side for name, side in job.sides.items() if name != "sync"], "all", job.name)
            if not sides:
                row.add("latency_ns_mean", None, job=job.name, absent="no I/O")
            _add_latency(row, [side.latency for side in sides if side.latency], "all", job.name)
            for way, side in job.sides.items():
                if len(sides) > 1:
                    _add_rates(row, [side], way, job.name)
                    _add_latency(row, [side.latency] if side.latency else [], way, job.name)
                row.histogram(side.latency.bins if side.latency else (), op=way, job=job.name)
    for job in jobs:
        error = int(number(job.raw, "error"))
        if error:
            row.fault(f"job {job.name} ended with error {error}", job=job.name, errno=abs(error))


def _add_sides(row: Row, jobs: list[Job]) -> None:
    by_way = {way: [job.sides[way] for job in jobs if way in job.sides] for way in ("read", "write", "sync")}
    transfers = [*by_way["read"], *by_way["write"]]
    for op, sides in (("all", transfers), *by_way.items()):
        if sides or op == "all":
            _add_rates(row, sides, op)
            _add_latency(row, [side.latency for side in sides if side.latency], op)
    for way, sides in by_way.items():
        row.histogram(_merged([side.latency for side in sides if side.latency]), op=way)
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
    if seconds:
        row.add("iops", ops / seconds, op=op, job=job)
    if job == "all":
        row.add("ops", ops, op=op)


def _add_latency(row: Row, latencies: list[Latency], op: str, name: str = "all") -> None:
    if not latencies:
        return
    row.add("latency_ns_mean", _mean(latencies), op=op, job=name)
    row.add("latency_ns_stddev", _stddev(latencies), op=op, job=name)
    row.add("latency_ns_min", min(latency.min_ns for latency in latencies), op=op, job=name)
    row.add("latency_ns_max", max(latency.max_ns for latency in latencies), op=op, job=name)
    bins = _merged(latencies) if all(latency.bins for latency in latencies) else []
    for short, share in SHARES.items():
        alone = latencies[0].percentiles_ns.get(short) if len(latencies) == 1 else None
        highest = max(latency.max_ns for latency in latencies)
        value = alone if alone is not None else told_quantile([(at, at, n) for at, n in bins], share, highest)
        row.add(f"latency_ns_{short}", value, op=op, job=name, absent=few(share) if bins else NO_QUANTILE)


def _add_processor(row: Row, jobs: list[Job]) -> None:
    if not all(job.has_cpu for job in jobs):
        return
    user_s, system_s = (sum(getattr(job, name) for job in jobs) for name in ("cpu_user_s", "cpu_system_s"))
    seconds = max((side.runtime_ms for job in jobs for side in job.sides.values()), default=0.0) / 1000
    ops = sum(side.ops for job in jobs for name, side in job.sides.items() if name != "sync")
    row.add("cpu_user_s", user_s)
    row.add("cpu_system_s", system_s)
    row.add("cpu_percent", 100 * (user_s + system_s) / seconds if seconds else None, absent="no time was measured")
    row.add("cpu_ns_per_io", 1e9 * (user_s + system_s) / ops if ops else None, absent="no I/O")
    switches = sum(number(job.raw, "ctx") for job in jobs)
    row.add("context_switches_per_io", switches / ops if ops else None, absent="no I/O")
    row.add("faults_minor", sum(number(job.raw, "minf") for job in jobs))
    row.add("faults_major", sum(number(job.raw, "majf") for job in jobs))
    row.add("elapsed_s", seconds)


def _mean(latencies: list[Latency]) -> float | None:
    count = sum(latency.count for latency in latencies)
    return sum(latency.count * latency.mean_ns for latency in latencies) / count if count else None


def _stddev(latencies: list[Latency]) -> float | None:
    """Of all operations together: from each part's spread and its distance from the common mean."""
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


def _recognises(source: Source) -> bool:
    return '"fio version"' in source.head or ('"jobname"' in source.head and '"jobs"' in source.head)


FORMAT = Format(
    name="fio-json",
    help="fio --output-format=json or json+, versions 2 and 3",
    recognises=_recognises,
    parse=_parse,
    words=('"fio version"', '"jobs"', '"jobname"', '"lat_ns"', '"iops"'),
    among_text=False,
)
