"""`kind = "iostest"`: groups of jobs that compete for one device, each group with a weight.

A job is named as the tool of that name does: b or d (buffered, direct), s or r (sequential, random), r or w (reader,
writer). Every group does the same; only the weights differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from iolab.base.option import Bytes, Duration, Options, option
from iolab.base.plain_text import counted
from iolab.base.quantity import format_bytes
from iolab.domain import native_types as native
from iolab.domain.trial import Phase, WeightedGroup, WeightedLoadPhase
from iolab.domain.trial.trial import derive_seed
from iolab.domain.workload.conflict import sector_conflicts
from iolab.domain.workload.group import COST_MODEL, COST_MODEL_EXPECTED, WEIGHT_MAX
from iolab.domain.workload.kind import Conflict, Kind, replace_options
from iolab.domain.workload.load import (
    file_json,
    group_json,
    job_json,
    layout_phase,
    phase_json,
    plain_pattern,
    until_json,
)

WEIGHT_STEP = 100

_JOB = re.compile(r"[bd][sr][rw]")


class IostestOptions(Options):
    """The options of `kind = "iostest"`."""

    job: str = option(
        "bsr",
        "What each group's jobs do: b or d (buffered, direct), s or r (sequential, random), r or w (reader, writer). "
        'Several joined by "+" run at the same time in each group.',
        expected='a job such as "bsr", "drw", or several such as "bsr+brr"',
    )
    groups: int = option(4, "Groups that compete, test1 to testN.", ge=1, le=100)
    weights: list[int] | None = option(
        None,
        "The groups' weights, 1 to 1000.",
        default_is="100, 200, ... one per group",
        expected="a list of weights such as [100, 200]",
    )
    controller: Literal["auto", "bfq", "cfq", "cost", "none"] = option(
        "auto",
        "What enforces the weights. auto: the scheduler if it is bfq or cfq, else io.cost; none: nothing. The groups "
        "are then plain processes; fairness is still judged against the weights.",
    )
    cost_model: str | None = option(
        None,
        "With controller cost: what the device can do, in bytes and operations per second, as io.cost.model takes it. "
        "Parameters left out keep the kernel's values.",
        default_is="the kernel's guess",
        expected='parameters such as "rbps=2000000000 rseqiops=200000 rrandiops=90000"',
    )
    jobs_per_group: int = option(1, "Jobs of each kind in each group, each with its own file.", ge=1, le=256)
    file_size: Bytes = option(512 * 2**20, "Size of each file.", unit="bytes", gt=0)
    block_size: Bytes = option(4096, "Bytes of one call.", unit="bytes", gt=0, le=2**30)
    duration: Duration = option(
        5 * 10**9,
        "Measured time; shorter if all jobs of a group are buffered sequential readers and have read their files once.",
        unit="ns",
        gt=0,
    )
    warm_up: Duration = option(0, "Time of I/O before the measured time; not counted.", unit="ns", ge=0)
    interval: Duration = option(100_000_000, "Width of one interval of the time series.", unit="ns", ge=1_000_000)
    drop_caches: bool = option(True, "Sync and drop the page cache before the measured phase.")

    @property
    def sorts(self) -> list[str]:
        """The sorts of job that run at the same time: `bsr+brr` -> bsr, brr."""
        return self.job.split("+")

    @property
    def group_weights(self) -> list[int]:
        """Each group's weight, first group first: as given, else 100, 200 and so on."""
        return self.weights or [WEIGHT_STEP * number for number in range(1, self.groups + 1)]

    @property
    def file_bytes(self) -> int:
        """Size of each job's file in bytes, in whole blocks."""
        return self.file_size // self.block_size * self.block_size

    @property
    def file_count(self) -> int:
        """Files of all groups, jobs and sorts of job together; each job has one of its own."""
        return self.groups * self.jobs_per_group * len(self.sorts)


@dataclass(frozen=True)
class _Job:
    group: int
    """From 1, as the classic table counts."""
    sort: str
    number: int

    @property
    def name(self) -> str:
        return f"{group_name(self.group)}.{self.sort}.{self.number}"

    @property
    def cached(self) -> bool:
        return self.sort[0] == "b"

    @property
    def sequential(self) -> bool:
        return self.sort[1] == "s"

    @property
    def reads(self) -> bool:
        return self.sort[2] == "r"


def group_name(number: int) -> str:
    """As the classic table names it, from test1."""
    return f"test{number}"


def _conflicts(options: IostestOptions) -> Iterator[Conflict]:
    if not all(_JOB.fullmatch(sort) for sort in options.sorts) or len(set(options.sorts)) < len(options.sorts):
        yield Conflict(
            ("job",),
            f'"{options.job}": expected b or d, s or r, r or w, such as "bsr"; several, each once, joined by "+"',
        )
        return
    if options.weights is not None:
        if len(options.weights) != options.groups:
            yield Conflict(("weights",), f"{len(options.weights)} weights for {counted(options.groups, 'group')}")
        if not all(1 <= weight <= WEIGHT_MAX for weight in options.weights):
            yield Conflict(("weights",), f"expected whole numbers from 1 to {WEIGHT_MAX}")
    elif options.groups * WEIGHT_STEP > WEIGHT_MAX:
        yield Conflict(("weights",), f"weights end at {WEIGHT_MAX}: with {options.groups} groups, give a list")
    if options.cost_model is not None:
        if options.controller != "cost":
            yield Conflict(("cost_model",), 'only with controller = "cost"')
        if not COST_MODEL.fullmatch(options.cost_model):
            yield Conflict(("cost_model",), COST_MODEL_EXPECTED)
    if not options.file_bytes:
        yield Conflict(
            ("block_size",),
            f"{format_bytes(options.block_size)} is larger than file_size, {format_bytes(options.file_size)}",
        )
    if any(sort[0] == "d" for sort in options.sorts):
        yield from sector_conflicts("block_size", options.block_size)


def _phases(options: IostestOptions, seed: int, devices: int = 1) -> list[Phase]:
    jobs = [
        _Job(group, sort, number)
        for group in range(1, options.groups + 1)
        for sort in options.sorts
        for number in range(1, options.jobs_per_group + 1)
    ]
    files = [file_json(job.name, options.file_bytes) for job in jobs]
    engine_groups = [
        group_json(job.name, engine="psync", direct=not job.cached, jobs=[_engine_job(job, place, options, seed)])
        for place, job in enumerate(jobs)
    ]
    load = phase_json(
        "main",
        files=files,
        groups=engine_groups,
        seed=derive_seed(seed, "main"),
        warm_up_ns=options.warm_up,
        interval_ns=options.interval,
        drop_caches=options.drop_caches,
    )
    members = [
        WeightedGroup(name=group_name(number), weight=weight, jobs=[job.name for job in jobs if job.group == number])
        for number, weight in enumerate(options.group_weights, start=1)
    ]
    main = WeightedLoadPhase(
        name="main",
        measured=True,
        load=load,
        controller=options.controller,
        members=members,
        cost_model=options.cost_model,
    )
    # Past the page cache: what is laid out should not be read from memory.
    layout = layout_phase("layout", files, file_bytes=options.file_bytes, seed=seed, engine="psync", direct=True)
    return [layout, main]


def _engine_job(job: _Job, file: int, options: IostestOptions, seed: int) -> native.JobSpec:
    return job_json(
        job.name,
        files=[file],
        align_bytes=options.block_size,
        length_bytes=options.file_bytes,
        seed=derive_seed(seed, "main", job.name),
        pattern=plain_pattern("sequential" if job.sequential else "uniform"),
        read_share=1.0 if job.reads else 0.0,
        until=until_json(
            # Read a second time, a file would come from the page cache.
            bytes_=options.file_bytes if job.cached and job.sequential and job.reads else None,
            duration_ns=options.warm_up + options.duration,
        ),
    )


KIND = Kind(
    name="iostest",
    help="Groups of readers or writers that compete for one device by weight, each in a control group.",
    options=IostestOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=replace_options,
    file_bytes=lambda options: options.file_bytes * options.file_count,
    compared=("rate_bytes_per_s", "fairness_jain_weighted", "share_of_entitlement"),
)
