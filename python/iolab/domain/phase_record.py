"""The record of a phase: the engine's (crates/measure/workload/src/record.rs), and what other runners make in its
likeness.

A job counts reads, writes and syncs under `read`, `write` and `sync`, what a replay discards under `discard`, or what
the engine `null` did not do under `null`, what became durable of a log under `commit`, and any other operation by name
under `ops`, all in the same shape. What is a number and not an operation stands by the metric's name under `measures`,
of a job or of the phase. Probes that were on stand under `probes` by name, each with what it observed, or with the
reason why it could not under `probes_absent`. Whoever reads a record asks the functions here, so that the engine's may
do without these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from resource import struct_rusage
from typing import Any, NotRequired, TypedDict, cast

from iolab.domain import native_types as native

ENGINE_OPS = ("read", "write", "sync", "discard", "null", "commit")


class JobRecord(TypedDict):
    """A job's record as any runner makes it: the engine's has `read`, `write` and `sync` (`discard` if it did some,
    `null` if it does nothing, `commit` if it writes a log), those of others have `ops` and `measures`.
    tests/test_native_types.py compares it with the engine's types."""

    name: str
    finished_ns: int
    read: NotRequired[native.OpRecord]
    write: NotRequired[native.OpRecord]
    sync: NotRequired[native.OpRecord]
    discard: NotRequired[native.OpRecord]
    null: NotRequired[native.OpRecord]
    commit: NotRequired[native.OpRecord]
    depth_search: NotRequired[native.DepthSearchResult]
    steady_state: NotRequired[native.Steadiness]
    replay: NotRequired[native.ReplayRecord]
    ops: NotRequired[dict[str, native.OpRecord]]
    measures: NotRequired[dict[str, float | None]]
    errors: list[native.ErrorRecord]
    mismatches_count: int
    mismatches: list[native.MismatchRecord]
    intervals: list[native.IntervalRecord]
    output: NotRequired[str]
    """The output of a command that failed."""


class GroupRecord(TypedDict):
    """Jobs whose use of CPUs was counted together; times in ns, the rest are counts."""

    name: str
    notes: list[str]
    cpu_user_ns: int
    cpu_system_ns: int
    context_switches_voluntary: int
    context_switches_involuntary: int
    faults_minor: int
    faults_major: int
    cpu_wait_ns: NotRequired[int | None]
    jobs: list[JobRecord]


class Failure(TypedDict):
    """What makes a whole phase worthless: one line, and the job that it is about."""

    job: str
    what: str


class ExtentsObservation(native.Examinations):
    """What the probe `extents` saw: of how many files, and how many were not looked at."""

    files_found: int
    files_left_out: int


class NvmeDrive(TypedDict):
    """What a drive counted during a phase."""

    host_bytes_written: int
    media_bytes_written: NotRequired[int]
    """Programmed for those; only if the drive says."""
    celsius: int
    """At the end."""


class NvmeObservation(TypedDict):
    """What the probe `nvme` saw, by the namespace's name."""

    drives: dict[str, NvmeDrive]


class HostCounters(native.CountersObservation):
    """What the probe `counters` saw; `sharing` on a simulated machine only."""

    sharing: NotRequired[dict[str, native.SharingFigures]]


class Chains(TypedDict):
    """Chains of calls, as far as they could be followed; the lists have an element per chain, each after its caller."""

    functions: list[str]
    """The function at the chain's end. The first is what lies outside of all functions, user mode above all."""
    callers: list[int]
    """The chain without its end; the first one's is itself."""
    instructions: list[int]
    """That the function at the end executed itself."""


class Lines(TypedDict):
    """The kernel's most expensive lines, the most expensive first."""

    lines: list[str]
    """`FILE:LINE`; the path is from the directory that all of them have in common."""
    instructions: list[int]


class SystemCalls(TypedDict):
    """What tasks asked the kernel for; the lists have an element per system call, the dearest first."""

    names: list[str]
    instructions: list[int]
    """In the kernel, from the entry to the return to user mode, without those of interrupts meanwhile."""
    calls: list[int]


class InstructionsObservation(TypedDict):
    """What the probe `instructions` counted of a phase; the lists have an element per symbol, the most expensive
    first."""

    operations: int
    """That succeeded, warm-up included; of a metadata load, files made; of a sort, passes of its processes."""
    total: int
    user: int
    """In user mode; the rest of `total` is the kernel's."""
    contexts: dict[str, int]
    """The kernel's by who it worked for: `task`, `kernel thread`, `interrupt`, `softirq`."""
    symbols: list[str]
    modules: list[str]
    """Which module each symbol is of; empty: the kernel itself."""
    instructions: list[int]
    calls: list[int]
    """How often the block that the symbol begins with was executed."""
    string_bytes: NotRequired[list[int]]
    """Bytes that its repeated string instructions took, each of which is one instruction; absent if every repetition is
    one."""
    locked: NotRequired[list[int]]
    """Instructions that change memory as one step for all CPUs (`lock`, `xchg`); absent from earlier records."""
    system_calls: NotRequired[SystemCalls]
    memory: NotRequired[dict[str, int]]
    """Accesses, of all modes: `read`, `write`; on request."""
    cache_misses: NotRequired[int]
    """The misses of the simple cache that was asked for."""
    chains: NotRequired[Chains]
    """Where they were asked for."""
    lines: NotRequired[Lines]
    """On request; then functions that were inlined are among `symbols` too."""


class Observations(TypedDict, total=False):
    """By probe, what it saw, in the shapes that docs/reference/probes.md describes."""

    block: native.BlockObservation
    switches: native.SwitchesObservation
    profile: native.ProfileObservation
    counters: HostCounters
    cpu: native.CpuObservation
    memory: native.MemoryObservation
    io_cost: native.IoCostObservation
    extents: ExtentsObservation
    nfs: native.NfsObservation
    nvme: NvmeObservation
    instructions: InstructionsObservation


class AnyObservation(TypedDict, total=False):
    """What observations of several probes have alike."""

    series: dict[str, native.SampledSeries]
    notes: list[str]
    trace_events_lost: int
    samples_lost: int


class Conditions(TypedDict, total=False):
    """What the machine did to a phase from outside; what its kernel does not show is left out."""

    steal_share: float
    """The share of the CPU time of all CPUs that a hypervisor took."""
    cpu_throttled_s: float
    """By quotas of control groups."""
    thermal_throttles: float
    process_read_bytes: float
    """What iolab's process had read from devices."""
    written_back_bytes: float
    """What the kernel wrote from the page cache, of whichever process."""


class RecordedProbes(TypedDict, total=False):
    """The part of a phase's record about its probes, if any was on."""

    probes: Observations
    probes_absent: dict[str, str]
    """Why a probe that was on observed nothing."""


class PhaseRecord(RecordedProbes):
    """A phase's record as any runner makes it: the engine's (crates/measure/workload/src/record.rs), with what probes
    saw."""

    phase: str
    started_unix_ns: int
    elapsed_ns: int
    wall_clock_shift_ns: int
    measured_from_ns: int
    measured_to_ns: int
    transient: native.Transient | None
    stopped: bool
    build_profile: str
    clock: native.ClockKind
    groups: list[GroupRecord]
    process_cpu_user_ns: int
    process_cpu_system_ns: int
    measures: NotRequired[dict[str, float | None]]
    io_stalled_us: NotRequired[dict[str, int]]
    """By control group: the time for which some of its processes waited for I/O."""
    failures: NotRequired[list[Failure]]
    conditions: NotRequired[Conditions]


def jobs_of(phase: PhaseRecord) -> dict[str, JobRecord]:
    """By name, in the order of the groups."""
    return {job["name"]: job for group in phase["groups"] for job in group["jobs"]}


def ops_of(job: JobRecord) -> dict[str, native.OpRecord]:
    """The job's operations by name: count, bytes, latency."""
    by_key: Mapping[str, Any] = job
    found: dict[str, native.OpRecord] = {op: by_key[op] for op in ENGINE_OPS if op in job}
    return {**found, **job.get("ops", {})}


def measures_of(part: PhaseRecord | JobRecord) -> dict[str, float | None]:
    """What a job or a phase measured besides operations, by metric."""
    return dict(part.get("measures", {}))


def io_stalled_us_of(phase: PhaseRecord) -> dict[str, int]:
    """By control group: the time for which some of its processes waited for I/O, as far as the kernel shows it."""
    return dict(phase.get("io_stalled_us", {}))


def failures_of(phase: PhaseRecord) -> list[Failure]:
    """What made the phase fail as a whole: `job` and `what`. The engine's phases fail by operation only."""
    return list(phase.get("failures", []))


def probes_of(phase: PhaseRecord) -> Observations:
    """What each probe observed, by its name."""
    return phase.get("probes", {})


def any_probes_of(phase: PhaseRecord) -> dict[str, AnyObservation]:
    """The same, for who treats all probes alike."""
    return cast(dict[str, AnyObservation], dict(probes_of(phase)))


def probes_absent_of(phase: PhaseRecord) -> dict[str, str]:
    """Why probes that were on observed nothing, by name."""
    return dict(phase.get("probes_absent", {}))


def observed_with(phase: str, probes: Iterable[str]) -> RecordedProbes:
    """The record's part about probes that saw the phase together with others, under the name of one of them."""
    why = f"it saw all that ran at once, and stands with the phase {phase}"
    absent = dict.fromkeys(probes, why)
    return {"probes_absent": absent} if absent else {}


def series_of(observation: AnyObservation) -> dict[str, native.SampledSeries]:
    """A probe's time series by what each is of (`all`, `cpu0`, ...): `at_ns`, the points since the probe's start, and
    `columns`, by name as many numbers (null: none at this point)."""
    return dict(observation.get("series", {}))


def without_series(phase: PhaseRecord) -> PhaseRecord:
    """Less the histograms, intervals and probes' time series, which are most of it."""
    groups: list[GroupRecord] = [
        {**group, "jobs": [_job_without_histograms(job) for job in group["jobs"]]} for group in phase["groups"]
    ]
    bare: PhaseRecord = {**phase, "groups": groups}
    if "probes" in phase:
        less = {name: _without_series(observation) for name, observation in any_probes_of(phase).items()}
        bare["probes"] = cast(Observations, less)
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
        """From the result of getrusage(2) or wait4(2); seconds become ns."""
        return cls(
            cpu_user_ns=round(usage.ru_utime * 1e9),
            cpu_system_ns=round(usage.ru_stime * 1e9),
            context_switches_voluntary=usage.ru_nvcsw,
            context_switches_involuntary=usage.ru_nivcsw,
            faults_minor=usage.ru_minflt,
            faults_major=usage.ru_majflt,
        )

    def less_cpu(self, spent_ns: int) -> Usage:
        """Without so much CPU time, of which the kernel does not state how much was the user's."""
        whole = self.cpu_user_ns + self.cpu_system_ns
        kept = max(0.0, 1 - spent_ns / whole) if whole else 0.0
        return replace(self, cpu_user_ns=round(kept * self.cpu_user_ns), cpu_system_ns=round(kept * self.cpu_system_ns))

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
    groups: Sequence[GroupRecord],
    stopped: bool = False,
    measures: Mapping[str, float | None] | None = None,
    failures: Sequence[Failure] = (),
) -> PhaseRecord:
    """A phase of other runners than the engine: all of its time is measured.

    Args:
        measures: by metric; None if it could not be measured.
        failures: what makes the whole phase worthless.
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


def group_record(name: str, usage: Usage, jobs: Sequence[JobRecord], notes: Sequence[str] = ()) -> GroupRecord:
    """Jobs whose use of CPUs was counted together."""
    return {
        "name": name,
        "notes": list(notes),
        "cpu_user_ns": usage.cpu_user_ns,
        "cpu_system_ns": usage.cpu_system_ns,
        "context_switches_voluntary": usage.context_switches_voluntary,
        "context_switches_involuntary": usage.context_switches_involuntary,
        "faults_minor": usage.faults_minor,
        "faults_major": usage.faults_major,
        "jobs": list(jobs),
    }


def job_record(
    name: str,
    *,
    finished_ns: int,
    ops: Mapping[str, native.OpRecord] | None = None,
    measures: Mapping[str, float | None] | None = None,
    errors: Sequence[native.ErrorRecord] = (),
) -> JobRecord:
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


def _job_without_histograms(job: JobRecord) -> JobRecord:
    bare = {op: _op_without_histogram(found) for op, found in ops_of(job).items()}
    further = {"ops": {op: bare[op] for op in job["ops"]}} if "ops" in job else {}
    own = {op: bare[op] for op in ENGINE_OPS if op in job}
    return cast(JobRecord, {**job, **own, **further, "intervals": []})


def _op_without_histogram(op: native.OpRecord) -> native.OpRecord:
    return {**op, "latency": {**op["latency"], "histogram": []}} if op["latency"] else op


def _without_series(observation: AnyObservation) -> AnyObservation:
    return cast(AnyObservation, {name: value for name, value in observation.items() if name != "series"})
