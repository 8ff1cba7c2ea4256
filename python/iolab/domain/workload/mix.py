"""`kind = "mix"`: several jobs at once, each with options of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from iolab.base.errors import unknown
from iolab.base.option import option
from iolab.base.toml import TomlTable
from iolab.domain.trial import Phase
from iolab.domain.workload.conflict import job_conflicts, phase_conflicts
from iolab.domain.workload.job import JobOptions, PhaseOptions
from iolab.domain.workload.kind import Conflict, Kind
from iolab.domain.workload.load import jobs_phases


class MixOptions(PhaseOptions):
    """A phase, and the jobs that run in it at once."""

    jobs: dict[str, JobOptions] = option(
        ..., "A table per job, [workloads.NAME.jobs.JOB], with the options of a job.", expected="a table of jobs"
    )
    ends_with: str | None = option(
        None,
        "The job whose end, of its last copy, stops the others; these need no end of their own.",
        default_is="each job runs to its own end",
    )


def _conflicts(options: MixOptions) -> Iterator[Conflict]:
    yield from phase_conflicts(options)
    if not options.jobs:
        yield Conflict(("jobs",), "a mix needs at least one job, [workloads.NAME.jobs.JOB]")
    if options.ends_with is not None and options.ends_with not in options.jobs:
        yield Conflict(("ends_with",), unknown("job", options.ends_with, options.jobs))
    for name, job in options.jobs.items():
        if name == "all" or not re.fullmatch(r"[\w-]+", name):
            yield Conflict(("jobs", name), 'a job\'s name has letters, digits, "_" and "-" only, and is not "all"')
        is_stopped = options.ends_with is not None and name != options.ends_with
        for conflict in job_conflicts(job, options, is_stopped=is_stopped):
            # A missing end is the mix's to give: one duration for all jobs.
            at = conflict.key if conflict.key == ("duration",) else ("jobs", name, *conflict.key)
            yield Conflict(at, conflict.what)


def _phases(options: MixOptions, seed: int, devices: int = 1) -> list[Phase]:
    return jobs_phases(options.jobs, options, seed, devices, ends_with=options.ends_with)


def _override(table: TomlTable, changes: Mapping[str, Any]) -> TomlTable:
    """Options of the mix go to the mix; an option of a job goes to each of its jobs."""
    of_mix = {key: value for key, value in changes.items() if key not in JobOptions.model_fields or key == "jobs"}
    of_jobs = {key: value for key, value in changes.items() if key not in of_mix}
    jobs = table.get("jobs", {})
    return {**table, "jobs": {name: {**job, **of_jobs} for name, job in jobs.items()}, **of_mix}


KIND = Kind(
    name="mix",
    help="Several jobs at once, each with its own options.",
    options=MixOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=_override,
    file_bytes=lambda options: sum(job.file_bytes * job.file_count for job in options.jobs.values()),
)
