"""`kind = "mix"`: several jobs at once, each with options of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from iolab.base.errors import unknown
from iolab.base.option import option
from iolab.base.toml import TomlTable
from iolab.domain.trial import LoadPhase, Phase
from iolab.domain.workload.conflict import is_bounded, job_conflicts, phase_conflicts
from iolab.domain.workload.group import CostOptions, GroupOptions, group_conflicts, in_groups, kept
from iolab.domain.workload.job import JobOptions
from iolab.domain.workload.kind import Conflict, Kind, laid_over
from iolab.domain.workload.load import copies_of, jobs_phases


class MixJobOptions(JobOptions):
    """A job, and where it runs."""

    group: str | None = option(None, "The control group that it runs in, one of the mix's `groups`.", default_is="none")


class MixOptions(CostOptions):
    """A phase, and the jobs that run in it at once."""

    jobs: dict[str, MixJobOptions] = option(
        ..., "A table per job, [workloads.NAME.jobs.JOB], with the options of a job.", expected="a table of jobs"
    )
    ends_with: str | None = option(
        None,
        "The job whose end, of its last copy, stops the others; these need no end of their own.",
        default_is="each job runs to its own end",
    )
    groups: dict[str, GroupOptions] = option(
        {},
        "Control groups for the jobs: a table per group, [workloads.NAME.groups.GROUP].",
        expected="a table of groups",
        default_is="none",
    )
    only: list[str] | None = option(
        None, "The groups that run; jobs of the others are left out.", default_is="all", expected="a list of groups"
    )
    alone: bool = option(
        False, "Add to each setting one for each group that has jobs, in which it runs alone (`only`)."
    )

    @property
    def with_jobs(self) -> list[str]:
        """The groups that hold jobs, in their order."""
        return [name for name in self.groups if any(job.group == name for job in self.jobs.values())]

    @cached_property
    def running(self) -> dict[str, MixJobOptions]:
        """The jobs that are not left out."""
        if self.only is None:
            return dict(self.jobs)
        groups = kept(self.groups, self.only)
        return {name: job for name, job in self.jobs.items() if job.group in groups}


def _conflicts(options: MixOptions) -> Iterator[Conflict]:
    yield from phase_conflicts(options)
    if not options.jobs:
        yield Conflict(("jobs",), "a mix needs at least one job, [workloads.NAME.jobs.JOB]")
    if options.ends_with is not None and options.ends_with not in options.jobs:
        yield Conflict(("ends_with",), unknown("job", options.ends_with, options.jobs))
    yield from group_conflicts(options.groups, {name: job.group for name, job in options.jobs.items()}, options)
    yield from _of_choice(options)
    for name, job in options.jobs.items():
        if name == "all" or not re.fullmatch(r"[\w-]+", name):
            yield Conflict(("jobs", name), 'a job\'s name has letters, digits, "_" and "-" only, and is not "all"')
        is_stopped = options.ends_with is not None and name != options.ends_with
        for conflict in job_conflicts(job, options, is_stopped=is_stopped):
            # A missing end is the mix's to give: one duration for all jobs.
            at = conflict.key if conflict.key == ("duration",) else ("jobs", name, *conflict.key)
            yield Conflict(at, conflict.what)


def _of_choice(options: MixOptions) -> Iterator[Conflict]:
    if options.alone and len(options.with_jobs) < 2:
        yield Conflict(("alone",), "nobody to be without; expected two groups with jobs, or more")
    if options.only is None:
        return
    for group in options.only:
        if group not in options.groups:
            yield Conflict(("only",), unknown("group", group, options.groups))
    if options.ends_with is not None and options.ends_with not in options.running:
        endless = [name for name, job in options.running.items() if not is_bounded(job, options)]
        if endless:
            what = f"leaves out {options.ends_with}, whose end is that of {endless[0]}; give that an end of its own"
            yield Conflict(("only",), what)
    if not options.only:
        yield Conflict(("only",), "an empty list; name the groups that run")


def _phases(options: MixOptions, seed: int, devices: int = 1) -> list[Phase]:
    jobs = options.running
    ends_with = options.ends_with if options.ends_with in jobs else None
    phases = jobs_phases(jobs, options, seed, devices, ends_with=ends_with)
    if not options.groups:
        return phases
    *layouts, main = phases
    assert isinstance(main, LoadPhase)
    names = kept(options.groups, options.with_jobs if options.only is None else options.only)
    jobs_of: dict[str, list[str]] = {}
    for name, job in jobs.items():
        assert job.group is not None, "the options' conflicts ask for it"
        jobs_of.setdefault(job.group, []).extend(copies_of(name, job))
    groups = {name: options.groups[name] for name in names}
    of_end = None if ends_with is None else jobs[ends_with].group
    return [*layouts, in_groups(main, groups, jobs_of, options, ends_with=of_end)]


def _override(table: TomlTable, changes: Mapping[str, Any]) -> TomlTable:
    """Options of the mix go to the mix, keys of a group or a job to that one; an option of a job to each of its jobs,
    before those of its own."""
    of_jobs = {key: value for key, value in changes.items() if key in JobOptions.model_fields and key != "jobs"}
    named = {"jobs": {name: {**job, **of_jobs} for name, job in table.get("jobs", {}).items()}}
    if "groups" in table:
        named["groups"] = table["groups"]
    of_mix = {key: value for key, value in changes.items() if key not in of_jobs}
    return {**table, **of_mix, **{key: laid_over(key, by_name, changes.get(key, {})) for key, by_name in named.items()}}


KIND = Kind(
    name="mix",
    help="Several jobs at once, each with its own options.",
    options=MixOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=_override,
    file_bytes=lambda options: sum(job.file_bytes * job.file_count for job in options.running.values()),
)
