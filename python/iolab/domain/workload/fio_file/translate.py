"""From a job file to phases: one per stage, with the files laid out before the first and verified after each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from iolab.domain import native_types as native
from iolab.domain.trial import FioPhase, LoadPhase, Phase
from iolab.domain.trial.trial import derive_seed
from iolab.domain.workload.fio_file.ini import USE_FIO, JobFileProblems
from iolab.domain.workload.fio_file.job_file import FioJob, JobFile, Runner
from iolab.domain.workload.fio_file.shape import Shape, shape_of
from iolab.domain.workload.job import RINGS
from iolab.domain.workload.load import file_json, group_json, job_json, phase_json, until_json

LAYOUT_BLOCK_BYTES = 2**20
LAYOUT_QUEUE_DEPTH = 8


@dataclass
class Plan:
    """A job file with everything that it comes to worked out, but for seeds and devices."""

    stages: list[list[Shape]]
    files: dict[str, int] = field(default_factory=dict)
    """Bytes of each file by its name, as the job file has it."""
    laid_out: dict[str, None] = field(default_factory=dict)
    """Those that hold data before the first stage."""
    runner: Runner = "iolab"

    @property
    def named_paths(self) -> list[str]:
        """Absolute names, in order: the job file itself states where."""
        return [name for name in self.files if name.startswith("/")]

    @property
    def file_bytes(self) -> int:
        """What all files hold together, in bytes."""
        return sum(self.files.values())


def plan(job_file: JobFile, *, default_size: int | None, problems: JobFileProblems, runner: Runner) -> Plan:
    """What is impossible is noted in `problems`; the plan then lacks it."""
    found = Plan([], runner=runner)
    for stage in job_file.stages:
        shapes = [shape for job in stage if (shape := shape_of(job, default_size, problems, runner)) is not None]
        found.stages.append(shapes)
        _check_stage(shapes, problems, runner)
        for shape in shapes:
            for clone in range(shape.job["numjobs"]):
                for name in shape.names(clone):
                    _check_name(name, shape.job, problems)
                    found.files[name] = max(found.files.get(name, 0), shape.file_bytes(clone))
                    if shape.lays_out:
                        found.laid_out[name] = None
    _check_distinct(found, problems)
    if runner == "iolab":
        _check_filling(found, problems)
    return found


def phases(found: Plan, seed: int, devices: int) -> list[Phase]:
    """Unmeasured layouts first; then each stage, measured, followed by the check of what it wrote if it verifies."""
    places = {name: number % devices for number, name in enumerate(found.named_paths or found.files)}
    files = {name: file_json(_local(name), size, place=places.get(name, 0)) for name, size in found.files.items()}
    result: list[Phase] = list(_layouts(found, files, seed))
    for name, stage in zip(_stage_names(found.stages), found.stages, strict=True):
        result.append(_stage_phase(name, stage, files, derive_seed(seed, name), found.runner))
        checked = [shape for shape in stage if shape.verifies and shape.writes and shape.job["do_verify"]]
        if checked and found.runner == "fio":
            result += _fio_check_phases(name, [shape for shape in checked if shape.is_one_pass], files, seed)
        elif checked:
            result += _check_phases(name, checked, files, derive_seed(seed, name))
    return result


def _local(name: str) -> str:
    """A name inside the target, whatever the job file's own place for it."""
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def _check_distinct(found: Plan, problems: JobFileProblems) -> None:
    """`/x` and `x` are two files to fio, and would be one inside the target."""
    names: dict[str, str] = {}
    for name in found.files:
        if (other := names.setdefault(_local(name), name)) != name:
            problems.add(None, f"filename: {other} and {name} would be the same file in the target; rename one")


def _check_filling(found: Plan, problems: JobFileProblems) -> None:
    """Files are laid out before anyone states which job reads them, so all blocks have one filling."""
    verifying = [shape for stage in found.stages for shape in stage if shape.verifies]
    if other := next((shape for shape in verifying if shape.filling != verifying[0].filling), None):
        what = f"{verifying[0].job.name} and {other.job.name} verify blocks with other contents; give verify and"
        line = other.job.line_of("verify_pattern" if other.job.has("verify_pattern") else "verify")
        problems.add(line, f"verify_pattern: {what} verify_pattern in [global], or {USE_FIO}")


def _check_name(name: str, job: FioJob, problems: JobFileProblems) -> None:
    if ".." in name.split("/"):
        option = "directory" if ".." in (job["directory"] or "").split("/") else "filename"
        problems.add(job.line_of(option), f'{option}: "{name}" leaves its directory; name files without ".."')


def _check_stage(stage: Sequence[Shape], problems: JobFileProblems, runner: Runner) -> None:
    ramps = {shape.job["ramp_time"] for shape in stage}
    if len(ramps) > 1:
        last = stage[-1].job
        problems.add(last.line_of("ramp_time"), "ramp_time: the jobs of a stage have one; give all the same")
    searching = next((shape.job for shape in stage if shape.depth_search is not None), None)
    if searching is not None and len(stage) > 1 and runner == "iolab":
        what = "its search measures the whole stage; give it a stage of its own with stonewall"
        problems.add(searching.line_of("latency_target"), f"latency_target: {what}, or {USE_FIO}")
    steady = next((shape.job for shape in stage if shape.steady_state is not None), None)
    if (
        steady is not None
        and steady.texts.get("group_reporting", "0") != "0"
        and _jobs(stage) > 1
        and runner == "iolab"
    ):
        what = "with group_reporting fio looks at all jobs of the group together, iolab at each; leave that out"
        problems.add(steady.line_of("steadystate"), f"steadystate: {what}, or {USE_FIO}")
    if runner == "iolab":
        _check_hints(stage, problems)
    writers: dict[str, str] = {}
    verifies = any(shape.verifies for shape in stage)
    for shape in stage:
        if verifies and shape.writes:
            for name in shape.names(0):
                if writers.setdefault(name, shape.job.name) != shape.job.name:
                    what = f"{writers[name]} and {shape.job.name} write the same file, so its contents are undefined"
                    problems.add(shape.job.line_of("verify"), f"verify: {what}")


def _check_hints(stage: Sequence[Shape], problems: JobFileProblems) -> None:
    """The kernel keeps a hint with the file."""
    hints: dict[str, str] = {}
    for shape in stage:
        for name, hint in _hints([shape]).items():
            if (other := hints.setdefault(name, hint)) != hint:
                what = f"another job hints {other} for {name}, and the kernel keeps one for a file; give both the same"
                problems.add(shape.job.line_of("write_hint"), f"write_hint: {what}")


def _hints(stage: Sequence[Shape]) -> dict[str, native.WriteHint]:
    """Of the files that are written with one, by their names."""
    hinted = [shape for shape in stage if shape.writes and shape.job["write_hint"] is not None]
    return {
        name: shape.job["write_hint"] for shape in hinted for clone in _clones(shape) for name in shape.names(clone)
    }


def _jobs(stage: Sequence[Shape]) -> int:
    return sum(shape.job["numjobs"] for shape in stage)


def _stage_names(stages: Sequence[Sequence[Shape]]) -> list[str]:
    """`main` for a single stage, else the first job's name, numbered if it is not the only one of that name."""
    if len(stages) == 1:
        return ["main"]
    names = _Names()
    firsts = (stage[0].job.name for stage in stages)
    return [names.unique("".join(one if one.isalnum() or one in "-_." else "_" for one in name)) for name in firsts]


def _layouts(found: Plan, files: Mapping[str, native.FileSpec], seed: int) -> Iterator[Phase]:
    """Files of one size together, each written from start to end, one after the other."""
    by_size: dict[tuple[int, bool], list[native.FileSpec]] = {}
    direct = any(shape.direct for stage in found.stages for shape in stage)
    for name in found.laid_out:
        by_size.setdefault((files[name]["size_bytes"], direct), []).append(files[name])
    verifying = [shape for stage in found.stages for shape in stage if shape.verifies]
    verify = bool(verifying)
    filling = verifying[0].filling if verifying else None
    for number, ((size, direct), same) in enumerate(by_size.items()):
        name = "layout" if number == 0 else f"layout {number + 1}"
        writer = job_json(
            name,
            files=list(range(len(same))),
            # The largest power of two up to a mebibyte that divides the size.
            align_bytes=min(LAYOUT_BLOCK_BYTES, size & -size),
            length_bytes=size,
            seed=derive_seed(seed, name),
            queue_depth=LAYOUT_QUEUE_DEPTH,
            until=until_json(bytes_=size * len(same)),
            sync_at_end=True,
        )
        group = group_json(name, engine="io_uring", direct=direct, jobs=[writer])
        load = phase_json(
            name, files=same, groups=[group], seed=derive_seed(seed, name), verify=verify, pattern=filling
        )
        yield LoadPhase(name=name, measured=False, load=load)


def _stage_phase(
    name: str, stage: Sequence[Shape], files: Mapping[str, native.FileSpec], seed: int, runner: Runner
) -> Phase:
    used = list(dict.fromkeys(file for shape in stage for clone in _clones(shape) for file in shape.names(clone)))
    numbers = {file: number for number, file in enumerate(used)}
    groups: list[native.GroupSpec] = []
    options: dict[str, dict[str, str]] = {}
    names = _Names()
    for shape in stage:
        for clone in _clones(shape):
            job_name = names.unique(shape.job.name if shape.job["numjobs"] == 1 else f"{shape.job.name}.{clone}")
            options[job_name] = dict(shape.job.texts)
            job = _job(
                job_name, shape, clone, [numbers[file] for file in shape.names(clone)], derive_seed(seed, job_name)
            )
            groups.append(_group(job_name, shape, clone, job))
    hints = _hints(stage) if runner == "iolab" else {}
    load = phase_json(
        name,
        files=[_with_hint(files[file], hints.get(file)) for file in used],
        groups=groups,
        seed=seed,
        warm_up_ns=max(shape.job["ramp_time"] for shape in stage),
        verify=any(shape.verifies for shape in stage),
        pattern=next((shape.filling for shape in stage if shape.verifies), None),
        drop_caches=any(
            shape.reads and not shape.direct and shape.engine != "null" and shape.job["invalidate"] for shape in stage
        ),
    )
    if runner == "fio":
        # Checking is a phase of its own: its reads are not what the job is measured by.
        return FioPhase(
            name=name, measured=True, load=load, options={job: {**its, **_UNCHECKED} for job, its in options.items()}
        )
    return LoadPhase(name=name, measured=True, load=load)


def _with_hint(file: native.FileSpec, hint: native.WriteHint | None) -> native.FileSpec:
    return file if hint is None else {**file, "write_hint": hint}


_UNCHECKED = {"do_verify": "0"}


def _fio_check_phases(
    name: str, stage: Sequence[Shape], files: Mapping[str, native.FileSpec], seed: int
) -> Iterator[Phase]:
    """fio looks for what the same jobs have written. It finds what one pass over the files leaves (verify_only)."""
    if not stage:
        return
    written = _stage_phase(name, stage, files, derive_seed(seed, name), "fio")
    assert isinstance(written, FioPhase)
    options = {job: {**its, "verify_only": "1"} for job, its in written.options.items()}
    for its in options.values():
        its.pop("do_verify", None)
    yield written.model_copy(update={"name": f"verify {name}", "measured": False, "options": options})


def _clones(shape: Shape) -> range:
    return range(shape.job["numjobs"])


class _Names:
    """fio lets several jobs have one name; a record does not."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """The name, or the first of `name-2`, `name-3`, ... that nobody has."""
        found, number = name, self._next.get(name, 2)
        while found in self._taken:
            found = f"{name}-{number}"
            number += 1
        self._next[name] = number
        self._taken.add(found)
        return found


def _group(name: str, shape: Shape, clone: int, job: native.JobSpec) -> native.GroupSpec:
    return group_json(
        name,
        engine=shape.engine,
        direct=shape.direct,
        jobs=[job],
        cpus=_cpus(shape.job, clone),
        batch=shape.job["iodepth_batch"] if shape.engine in (*RINGS, "libaio") else None,
        fixed_buffers=shape.job["fixedbufs"],
        registered_files=shape.job["registerfiles"],
        poll=shape.job["hipri"],
        sqpoll=shape.job["sqthread_poll"],
        sqpoll_cpu=shape.job["sqthread_poll_cpu"],
        uncached=shape.job["uncached"],
        atomic_writes=shape.job["atomic"],
    )


def _cpus(job: FioJob, clone: int) -> list[int] | None:
    cpus: list[int] | None = job["cpus_allowed"] or job["cpumask"]
    return [cpus[clone % len(cpus)]] if cpus and job["cpus_allowed_policy"] == "split" else cpus


def _job(name: str, shape: Shape, clone: int, files: list[int], seed: int) -> native.JobSpec:
    job = shape.job
    every_writes = job["fsync"] or job["fdatasync"]
    return job_json(
        name,
        files=files,
        align_bytes=shape.align_bytes,
        length_bytes=shape.length_bytes,
        seed=seed,
        file_order=job["file_service_type"],
        pattern=shape.pattern(),
        read_share=shape.read_share,
        blocks=shape.blocks,
        writes=shape.writes_alone,
        start_ns=shape.start_ns or None,
        depth_search=shape.depth_search,
        steady_state=shape.steady_state,
        offset_bytes=shape.offset_bytes(clone),
        queue_depth=shape.queue_depth,
        arrival=_arrival(shape),
        until=shape.bounds(),
        sync=None
        if not every_writes or not shape.writes
        else {"kind": "fsync" if job["fsync"] else "fdatasync", "every_writes": every_writes},
        sync_at_end=job["end_fsync"] and shape.writes,
        dsync_every=1 if job["sync"] == "dsync" and shape.writes else None,
        osync_every=1 if job["sync"] in ("sync", "1") and shape.writes else None,
    )


def _arrival(shape: Shape) -> native.Arrival:
    job = shape.job
    rates = [rate for rate in shape.rates_per_s if rate is not None]
    if not rates:
        open_loop = job["rate_iops"] or job["rate"]
        think_ns, think_every = (0, 1) if open_loop else (job["thinktime"], job["thinktime_blocks"])
        return {"kind": "closed", "think_ns": think_ns, "think_every": think_every}
    # Two Poisson processes are one with drawn directions; two even ones are not.
    even: native.Spacing = "constant" if len(rates) == 1 else "constant_each"
    spacing: native.Spacing = "poisson" if job["rate_process"] == "poisson" else even
    return {"kind": "open", "rate_per_s": sum(rates), "spacing": spacing}


def _check_phases(
    name: str, stage: Sequence[Shape], files: Mapping[str, native.FileSpec], seed: int
) -> Iterator[Phase]:
    """Everything that the stage's verifying jobs wrote, read once in sequence. Not measured: only wrong data counts."""
    for shape in stage:
        for clone in _clones(shape):
            names = shape.names(clone)
            phase_name = f"verify {name} {shape.job.name}.{clone}"
            block = min(shape.sizes)
            reader = job_json(
                phase_name,
                files=list(range(len(names))),
                align_bytes=block,
                length_bytes=shape.length_bytes // block * block,
                seed=derive_seed(seed, phase_name),
                offset_bytes=shape.offset_bytes(clone),
                read_share=1.0,
                queue_depth=shape.queue_depth,
                until=until_json(bytes_=shape.length_bytes // block * block * len(names)),
            )
            group = group_json(phase_name, engine=shape.engine, direct=shape.direct, jobs=[reader])
            load = phase_json(
                phase_name,
                files=[files[file] for file in names],
                groups=[group],
                seed=seed,
                verify=True,
                pattern=shape.filling,
            )
            yield LoadPhase(name=phase_name, measured=False, load=load)
