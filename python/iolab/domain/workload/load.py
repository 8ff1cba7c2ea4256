"""From jobs to the engine's phases (`crates/measure/workload/src/phase.rs`): files, laying them out, groups."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Literal

from iolab.base.quantity import parse_bytes
from iolab.domain import native_types as native
from iolab.domain.trial import LoadPhase, Phase
from iolab.domain.trial.trial import derive_seed
from iolab.domain.workload.block_sizes import AlignedBlocks, block_list
from iolab.domain.workload.conflict import SECTOR_BYTES, is_bounded
from iolab.domain.workload.job import ONE_AT_A_TIME, PARETO_H, ZIPF_THETA, JobOptions, PhaseOptions
from iolab.domain.workload.steady import FILL_WINDOWS_MAX, SteadyOptions
from iolab.domain.workload.zone import read_zones, zoned

LAYOUT_BLOCK_BYTES_MAX = 2**20
LAYOUT_QUEUE_DEPTH = 8
FILL_QUEUE_DEPTH = 32

PlainPattern = Literal["sequential", "backward", "uniform", "permutation"]
_PLAIN_PATTERNS: dict[PlainPattern, native.Pattern] = {
    "sequential": {"kind": "sequential"},
    "backward": {"kind": "backward"},
    "uniform": {"kind": "uniform"},
    "permutation": {"kind": "permutation"},
}


UNBOUNDED_OPS = 2**63 - 1
"""The operations of a job that ends with another job."""


def jobs_phases(
    jobs: Mapping[str, JobOptions], phase: PhaseOptions, seed: int, devices: int, *, ends_with: str | None = None
) -> list[Phase]:
    """Unmeasured phases of each job whose files are laid out or filled, then the measured phase `main` with all jobs.

    Args:
        ends_with: the job whose end stops the others.
    """
    files_of: dict[str, list[native.FileSpec]] = {}
    users = 0
    for name, job in jobs.items():
        places = list(range(devices)) if job.devices is None else job.devices
        # A job that leaves the choice begins where the one before it ended, so that together they use all devices.
        first = users if job.devices is None else 0
        files_of[name] = _files_of(name, job, [*places[first % len(places) :], *places[: first % len(places)]])
        users += job.device_users
    layouts = [
        layout
        for name, of_job in files_of.items()
        if jobs[name].lays_out
        for layout in _layout(name, jobs[name], phase, of_job, seed)
    ]
    groups: list[native.GroupSpec] = []
    first_file = 0
    for name, job in jobs.items():
        groups += _groups(name, job, phase, first_file, derive_seed(seed, "main"))
        first_file += len(files_of[name])
    drop = any(job.reads and not job.uses_direct and job.engine != "null" for job in jobs.values())
    main = phase_json(
        "main",
        files=[file for of_job in files_of.values() for file in of_job],
        groups=groups,
        seed=derive_seed(seed, "main"),
        warm_up_ns=phase.warm_up,
        interval_ns=phase.interval,
        cut_transient=phase.duration is not None if phase.cut_transient is None else phase.cut_transient,
        verify=phase.verify,
        drop_caches=drop if phase.drop_caches is None else phase.drop_caches,
        stops_with=None if ends_with is None else {"jobs": copies_of(ends_with, jobs[ends_with]), "any": False},
    )
    return [*layouts, LoadPhase(name="main", measured=True, load=main)]


def layout_phase(
    name: str,
    files: list[native.FileSpec],
    *,
    file_bytes: int,
    seed: int,
    engine: native.EngineKind,
    direct: bool,
    queue_depth: int = 1,
    verify: bool = False,
    passes: int = 1,
    fills: bool = False,
) -> Phase:
    """Each file written from start to end, one after the other, so that their blocks don't interleave.

    Args:
        file_bytes: of each file; blocks are as large as divide it, up to LAYOUT_BLOCK_BYTES_MAX. direct: past the page
        cache, if that block allows it. passes: how often all files are written. fills: as of a
        phase.
    """
    block = math.gcd(file_bytes, LAYOUT_BLOCK_BYTES_MAX)
    writer = job_json(
        name,
        files=list(range(len(files))),
        align_bytes=block,
        length_bytes=file_bytes,
        seed=derive_seed(seed, name),
        queue_depth=queue_depth,
        until=until_json(bytes_=passes * file_bytes * len(files)),
        sync_at_end=True,
    )
    group = group_json(name, engine=engine, direct=direct and not block % SECTOR_BYTES, jobs=[writer])
    load = phase_json(name, files=files, groups=[group], seed=derive_seed(seed, name), verify=verify)
    return LoadPhase(name=name, measured=False, fills=fills, load=load)


def file_json(
    name: str, size_bytes: int, *, place: int = 0, extend: bool = True, write_hint: native.WriteHint | None = None
) -> native.FileSpec:
    """A file on the target's device number `place`, with its full size from the start or growing as it is written."""
    plain: native.FileSpec = {
        "path": name,
        "base_bytes": 0,
        "size_bytes": size_bytes,
        "create": True,
        "extend": extend,
    }
    if place:
        plain["place"] = place
    if write_hint is not None:
        plain["write_hint"] = write_hint
    return plain


def phase_json(
    name: str,
    *,
    files: list[native.FileSpec],
    groups: list[native.GroupSpec],
    seed: int,
    warm_up_ns: int = 0,
    interval_ns: int = 100_000_000,
    cut_transient: bool = False,
    verify: bool = False,
    pattern: native.VerifyPattern | None = None,
    drop_caches: bool = False,
    ends_with_first: bool = False,
    stops_with: native.StopCondition | None = None,
) -> native.Phase:
    """A phase's specification; what is left out has the value of a plain run by amount."""
    plain: native.Phase = {
        "name": name,
        "files": files,
        "groups": groups,
        "warm_up_ns": warm_up_ns,
        "interval_ns": interval_ns,
        "cut_transient": cut_transient,
        "verify": verify,
        "drop_caches": drop_caches,
        "ends_with_first": ends_with_first,
        "seed": seed,
    }
    if pattern is not None:
        plain["pattern"] = pattern
    if stops_with is not None:
        plain["stops_with"] = stops_with
    return plain


def group_json(
    name: str,
    *,
    engine: native.EngineKind,
    direct: bool,
    jobs: list[native.JobSpec],
    cpus: list[int] | None = None,
    batch: int | None = None,
    fixed_buffers: bool = True,
    registered_files: bool = True,
    poll: bool = False,
    sqpoll: bool = False,
    sqpoll_cpu: int | None = None,
    fresh_data: bool = True,
    close_in_time: bool = False,
    realtime: bool = False,
    uncached: bool = False,
    atomic_writes: bool = False,
    hybrid_poll: bool = False,
    registered_waits: bool = False,
    nowait_reads: bool = False,
) -> native.GroupSpec:
    """A group's specification, in the engine's default form."""
    group: native.GroupSpec = {
        "name": name,
        "engine": engine,
        "direct": direct,
        "cpus": cpus,
        "batch": batch,
        "fixed_buffers": fixed_buffers,
        "registered_files": registered_files,
        "poll": poll,
        "sqpoll": sqpoll,
        "sqpoll_cpu": sqpoll_cpu,
        "fresh_data": fresh_data,
        "close_in_time": close_in_time,
        "jobs": jobs,
    }
    if realtime:
        group["realtime"] = True
    if uncached:
        group["uncached"] = True
    if atomic_writes:
        group["atomic_writes"] = True
    if hybrid_poll:
        group["hybrid_poll"] = True
    if registered_waits:
        group["registered_waits"] = True
    if nowait_reads:
        group["nowait_reads"] = True
    return group


def job_json(
    name: str,
    *,
    files: list[int],
    align_bytes: int,
    length_bytes: int,
    seed: int,
    file_order: native.FileOrder = "sequential",
    pattern: native.Pattern | None = None,
    read_share: float = 0.0,
    blocks: Mapping[int, float] | None = None,
    writes: AlignedBlocks | None = None,
    offset_bytes: int = 0,
    queue_depth: int = 1,
    depth_search: native.DepthSearch | None = None,
    steady_state: native.SteadyState | None = None,
    start_ns: int | None = None,
    arrival: native.Arrival | None = None,
    until: native.JobBounds | None = None,
    sync: native.Sync | None = None,
    sync_at_end: bool = False,
    dsync_every: int | None = None,
    osync_every: int | None = None,
    commits: bool = False,
) -> native.JobSpec:
    """A job's specification. By default its blocks have `align_bytes`, the unit of its offsets, and it does one
    operation after another, from the start of each file.

    Args:
        blocks: sizes of operations with weights; of reads alone, if `writes` has those of writes.
    """
    job: native.JobSpec = {
        "name": name,
        "files": files,
        "length_bytes": length_bytes,
        "file_order": file_order,
        "pattern": pattern or {"kind": "sequential"},
        "read_share": read_share,
        "blocks": block_list(blocks or {align_bytes: 1.0}),
        "align_bytes": align_bytes,
        "offset_bytes": offset_bytes,
        "queue_depth": queue_depth,
        "arrival": arrival or {"kind": "closed", "think_ns": 0, "think_every": 1},
        "until": until or until_json(),
        "sync": sync,
        "sync_at_end": sync_at_end,
        "seed": seed,
    }
    # What few jobs have is left out of the others, whose documents so stay as they were.
    if writes is not None:
        job["writes"] = {"blocks": block_list(writes.sizes), "align_bytes": writes.align_bytes}
    if depth_search is not None:
        job["depth_search"] = depth_search
    if steady_state is not None:
        job["steady_state"] = steady_state
    if start_ns is not None:
        job["start_ns"] = start_ns
    if dsync_every is not None:
        job["dsync_every"] = dsync_every
    if osync_every is not None:
        job["osync_every"] = osync_every
    if commits:
        job["commits"] = True
    return job


def plain_pattern(kind: PlainPattern) -> native.Pattern:
    """A pattern that its kind alone describes."""
    return _PLAIN_PATTERNS[kind]


def until_json(
    *, ops: int | None = None, bytes_: int | None = None, duration_ns: int | None = None
) -> native.JobBounds:
    """A job's bounds; the first that is reached ends it."""
    return {"ops": ops, "bytes": bytes_, "duration_ns": duration_ns}


def _files_of(name: str, job: JobOptions, places: list[int]) -> list[native.FileSpec]:
    """The users of devices, copies or files, take the places in turn."""
    files_per_user = job.file_count // job.device_users
    return [
        file_json(
            f"{name}.{index}",
            job.file_bytes,
            place=places[index // files_per_user % len(places)],
            write_hint=job.write_hint,
        )
        for index in range(job.file_count)
    ]


def _layout(
    name: str, job: JobOptions, phase: PhaseOptions, files: list[native.FileSpec], seed: int
) -> Iterator[Phase]:
    yield layout_phase(
        f"layout {name}",
        files,
        file_bytes=job.file_bytes,
        seed=seed,
        engine=job.layout_engine,
        direct=job.uses_direct,
        queue_depth=1 if job.engine in ONE_AT_A_TIME else LAYOUT_QUEUE_DEPTH,
        verify=phase.verify,
        passes=2 if job.fill == "sequential twice" else 1,
        fills=job.fill is not None,
    )
    if job.fill == "random until steady":
        yield _random_until_steady(f"fill {name}", job, phase, files, derive_seed(seed, f"fill {name}"))


def _random_until_steady(
    name: str, job: JobOptions, phase: PhaseOptions, files: list[native.FileSpec], seed: int
) -> Phase:
    """One writer, all over the files of all copies: what wears a drive is all that is written to it."""
    steady = job.steady or SteadyOptions()
    writer = job_json(
        name,
        files=list(range(len(files))),
        file_order="random",
        pattern=plain_pattern("uniform"),
        blocks=job.block_size,
        align_bytes=job.align_bytes,
        length_bytes=job.file_bytes // job.align_bytes * job.align_bytes,
        seed=seed,
        queue_depth=1 if job.engine in ONE_AT_A_TIME else FILL_QUEUE_DEPTH,
        steady_state=steady.rule(0),
        until=until_json(duration_ns=FILL_WINDOWS_MAX * steady.window),
        sync_at_end=True,
    )
    group = group_json(name, engine=job.layout_engine, direct=job.uses_direct, jobs=[writer])
    load = phase_json(name, files=files, groups=[group], seed=seed, verify=phase.verify)
    return LoadPhase(name=name, measured=False, fills=True, load=load)


def _groups(name: str, job: JobOptions, phase: PhaseOptions, first_file: int, seed: int) -> list[native.GroupSpec]:
    specs = []
    for copy, copy_name in enumerate(copies_of(name, job)):
        first = first_file + (0 if job.shared_files else copy * job.files_per_job)
        specs.append(
            _job(copy_name, job, phase, list(range(first, first + job.files_per_job)), derive_seed(seed, copy_name))
        )
    return [
        group_json(
            group_name,
            engine=job.engine,
            direct=job.uses_direct,
            jobs=members,
            cpus=job.cpus,
            batch=job.batch,
            fixed_buffers=job.fixed_buffers,
            registered_files=job.registered_files,
            poll=job.poll,
            sqpoll=job.sqpoll,
            uncached=job.uncached,
            atomic_writes=job.atomic_writes,
            hybrid_poll=job.hybrid_poll,
            registered_waits=job.registered_waits,
            nowait_reads=job.nowait_reads,
        )
        for group_name, members in ([(name, specs)] if job.share_thread else [(s["name"], [s]) for s in specs])
    ]


def copies_of(name: str, job: JobOptions) -> list[str]:
    """The names of the job's copies in the engine's phase."""
    return [name] if job.jobs == 1 else [f"{name}.{copy}" for copy in range(job.jobs)]


def _job(name: str, job: JobOptions, phase: PhaseOptions, files: list[int], seed: int) -> native.JobSpec:
    syncs: dict[native.SyncKind, int | None] = {
        "fsync": job.fsync_every,
        "fdatasync": job.fdatasync_every,
        "sync_file_range": job.sync_file_range_every,
    }
    asked: list[native.Sync] = [{"kind": kind, "every_writes": every} for kind, every in syncs.items() if every]
    return job_json(
        name,
        files=files,
        align_bytes=job.align_bytes,
        length_bytes=job.range_bytes,
        seed=seed,
        file_order=job.file_order,
        pattern=_pattern(job),
        read_share=job.read_percent / 100,
        blocks=job.block_size,
        offset_bytes=job.range_start,
        queue_depth=job.queue_depth,
        arrival=_arrival(job),
        until=until_json(
            ops=job.operations if is_bounded(job, phase) else UNBOUNDED_OPS,
            bytes_=job.amount,
            duration_ns=None if phase.duration is None else phase.warm_up + phase.duration,
        ),
        sync=next(iter(asked), None),
        sync_at_end=job.sync_at_end,
        dsync_every=job.dsync_every,
        osync_every=job.osync_every,
        steady_state=None if job.steady is None else job.steady.rule(phase.warm_up),
    )


def _pattern(job: JobOptions) -> native.Pattern:
    match job.pattern:
        case "random":
            return {"kind": "uniform"}
        case "strided":
            assert job.stride is not None, "the options' conflicts ask for it"
            return {"kind": "strided", "stride_bytes": job.stride}
        case "zipf":
            return {"kind": "zipf", "theta": job.zipf_theta or ZIPF_THETA}
        case "pareto":
            return {"kind": "pareto", "h": job.pareto_h or PARETO_H}
        case "normal":
            return {"kind": "normal", "deviation_percent": job.normal_deviation or 0.0}
        case "zoned":
            return zoned(read_zones(job.zones or "", parse_bytes), job.range_bytes)
        case simple:
            return plain_pattern(simple)


def _arrival(job: JobOptions) -> native.Arrival:
    rate_per_s = job.rate_iops if job.rate is None else job.rate / job.mean_block_bytes
    if rate_per_s is None:
        return {"kind": "closed", "think_ns": job.think_time, "think_every": job.think_every or 1}
    return {"kind": "open", "rate_per_s": rate_per_s, "spacing": job.spacing or "constant"}
