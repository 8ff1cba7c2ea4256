"""Whether a trial measured what it seems to measure: what casts doubt on its numbers, by how much, and what to do.

Computed from the record alone; what the machine did meanwhile is in a phase's record under `conditions`, where the
trial ran here (`iolab.machines.host.conditions`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iolab.base.plain_text import counted
from iolab.base.quantity import scale_for
from iolab.base.strict_json import JsonObject
from iolab.domain import native_types as native
from iolab.domain.phase_record import GroupRecord, PhaseRecord, jobs_of, ops_of, probes_of
from iolab.domain.probe.instructions import copied
from iolab.domain.trial import LoadPhase, Phase

if TYPE_CHECKING:
    from iolab.domain.measured_run import MeasuredRun
    from iolab.domain.record import Record

CACHED_FROM = 0.1
WRAPPED_FROM = 1.01
STEAL_FROM = 0.05
THROTTLED_FROM = 0.02
GENERATOR_CPU_FROM = 0.95
COPIED_FROM = 0.02
STRING_BYTES_FROM = 512.0
LATE_FROM = 0.01
"""From here on it is reported."""
LATE_FORBIDS_FROM = 0.5
"""From here on what was measured is no replay of the trace, and nothing is judged by it."""
UNSERVED_FROM = 0.02
UNSERVED_DEVIATIONS = 4
"""Of Poisson arrivals: more than chance leaves unserved. This and the limits above are chosen."""
NOT_POLLED = "polled completion refused"
"""How the note of it begins (crates/measure/engine/src/setup.rs, crates/model/stack/src/world/task.rs)."""
NAMED_MAX = 3
"""Workloads or settings that a line names; more are counted."""
NOT_JUDGED = "its figures are not judged"
"""How the problem of an imported job that failed ends."""
ARRIVING = ("read", "write", "discard", "null")
"""Operations that arrive; a sync follows them."""
UNACCOUNTED = frozenset({"9p", "virtiofs", "fuse", "fuseblk", "ceph", "cifs", "smb3", "zfs"})
"""Filesystems whose reads the kernel does not account to the task that waits for them, or that have a cache of their
own."""


@dataclass(frozen=True)
class Doubt:
    """One way in which numbers may not be what they seem."""

    what: Callable[[float], str]
    """In words, of the largest value of any trial."""
    remedy: str


DOUBTS: dict[str, Doubt] = {
    "unserved": Doubt(
        lambda share: (
            f"an open loop was served as little as {100 * (1 - share):.3g} % of the operations that it asked for: they "
            "queue up, and its latencies grow with the duration"
        ),
        "a lower rate; IOPS is what was served",
    ),
    "late": Doubt(
        lambda share: f"up to {share * 100:.1f} % of a replay's arrivals were late, by more than 100 µs",
        'a place that is fast enough for the trace, timing = "dependent", or a larger time_scale',
    ),
    "late_by": Doubt(
        lambda time_ns: f"a replay's arrivals were up to {scale_for('ns', [time_ns]).with_unit(time_ns)} late",
        "the same",
    ),
    "no_io": Doubt(
        lambda _: "the engine null does no I/O: its operations are no reads or writes",
        "another engine asks the device",
    ),
    "page_cache": Doubt(
        lambda share: f"up to {_percent(share)} of what was read came from the page cache",
        "direct = true asks the device, or drop_caches = true and an amount that reads no block twice",
    ),
    "written_to_memory": Doubt(
        lambda share: f"up to {_percent(share)} of what was written stayed in the page cache, and cost no device time",
        "sync_at_end = true counts it, direct = true asks the device",
    ),
    "wrapped": Doubt(
        lambda times: f"buffered jobs read up to {times:.1f} times their files: what is read again is in memory",
        "larger files, or an amount",
    ),
    "not_polled": Doubt(
        lambda _: "polled completion (poll) was refused: the job waited for interrupts, as without it",
        "a drive with polled queues (nvme: poll_queues), or no poll",
    ),
    "no_steady_state": Doubt(
        lambda _: "no steady state was seen: the numbers cover everything after the warm-up",
        "a longer duration or a warm_up, or cut_transient = false if the start counts",
    ),
    "not_preconditioned": Doubt(
        lambda _: "random writes before the measured phase ended before their rate was steady (fill)",
        "a wider spread or slope in steady, or a longer window: the writes end after five",
    ),
    "steal": Doubt(
        lambda share: f"other guests took up to {_percent(share)} of the CPU time (steal)",
        "a quieter host, or more rounds",
    ),
    "cpu_quota": Doubt(
        lambda share: f"a CPU quota stopped iolab for up to {_percent(share)} of the time",
        "a higher cpu.max of its control group",
    ),
    "thermal": Doubt(
        lambda times: f"the CPUs were throttled for heat, up to {times:,.0f} times in a trial",
        "cooling, or a lower fixed frequency",
    ),
    "generator_cpu": Doubt(
        lambda share: (
            f"a thread of the load generator was busy for up to {_percent(share)} of the time: it may be "
            "what limits, and not the device"
        ),
        "more jobs, or larger requests",
    ),
    "copied": Doubt(
        lambda share: (
            f"copying took up to {_percent(share)} of the kernel's instructions, by functions that the kernel chooses "
            "by the processor's flags"
        ),
        "the changes function by function, or, without a filesystem, memory_backed = 0 in drive_parameters",
    ),
    "string_bytes": Doubt(
        lambda count: (
            f"string instructions took up to {count:,.0f} bytes an operation, each of them as one instruction, "
            "however long"
        ),
        "string_bytes_per_op beside instructions",
    ),
}
"""By code, in the order of the output. docs/read-a-report.md explains each."""


def doubts(record: Record) -> dict[str, float]:
    """The doubts about a trial, each with the largest value over its measured phases."""
    found: dict[str, float] = {}
    done = {phase["phase"]: phase for phase in record.phases}
    filesystems = {str(one.get("type")) for one in _filesystems(record.observed)}
    for phase in record.spec.phases:
        if not phase.measured and _ended_unsteady(phase, record.notes):
            found["not_preconditioned"] = 1.0
        if phase.measured and phase.name in done:
            for code, value in _of_phase(phase, done[phase.name], accounted=not filesystems & UNACCOUNTED):
                found[code] = max(value, found.get(code, 0.0))
    return found


def unfaithful(run: MeasuredRun) -> set[str]:
    """The workloads that replay a trace so late that nothing can be judged by them."""
    return {workload for workload, _, found in run.doubts if found.get("late", 0.0) >= LATE_FORBIDS_FROM}


def overloaded(run: MeasuredRun) -> set[tuple[str, str]]:
    """Each (workload, setting) whose open loops asked for more than was served in half of its trials or more."""
    return {place for place, (some, of) in _counts(run, "unserved").items() if 2 * some >= of}


def partly_unsteady(run: MeasuredRun) -> dict[tuple[str, str], tuple[int, int]]:
    """By (workload, setting), how many of its trials count their start because no steady state was seen, and of how
    many; without workloads of which all trials do, or none."""
    found = _counts(run, "no_steady_state")
    of_workload = {name: [count for (one, _), count in found.items() if one == name] for name, _ in found}
    return {
        place: count
        for place, count in found.items()
        if 0 < sum(some for some, _ in of_workload[place[0]]) < sum(of for _, of in of_workload[place[0]])
    }


def _counts(run: MeasuredRun, code: str) -> dict[tuple[str, str], tuple[int, int]]:
    """By (workload, setting), how many trials have the doubt, and of how many."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for workload, setting, found in run.doubts:
        some, of = counts.get((workload, setting), (0, 0))
        counts[workload, setting] = (some + (code in found), of + 1)
    return counts


def lines(run: MeasuredRun) -> list[str]:
    """A line for each doubt about any of the run's trials: what, where, and what would help."""
    sentences = []
    trials = run.doubts
    for code, doubt in DOUBTS.items():
        of_code = [(workload, setting, found[code]) for workload, setting, found in trials if code in found]
        if of_code:
            worst = max(value for *_, value in of_code)
            workloads = _some({workload for workload, *_ in of_code}, run.workloads)
            settings = _some({setting for _, setting, _ in of_code}, run.settings)
            count = f"{len(of_code)} of {counted(len(trials), 'trial')}" if len(trials) > 1 else ""
            places = "; ".join(part for part in (count, workloads, settings) if part)
            sentences.append(f"{doubt.what(worst)}{f' ({places})' if places else ''}; what helps: {doubt.remedy}")
    return sentences


def _some(names: set[str], of: Sequence[str]) -> str:
    """The names, if they are not all names."""
    if len(names) == len(of):
        return ""
    named = [name for name in of if name in names]
    more = f" and {len(named) - NAMED_MAX} more" if len(named) > NAMED_MAX else ""
    return f"{', '.join(named[:NAMED_MAX])}{more}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _ended_unsteady(phase: Phase, notes: Sequence[str]) -> bool:
    """Notes are all that is kept of a phase that is not measured (`Steadiness::note` of crates/measure/workload)."""
    own = [note for note in notes if note.startswith(f"{phase.name}: ")]
    return any("steady state not reached" in note for note in own)


def _of_phase(phase: Phase, done: PhaseRecord, *, accounted: bool) -> Iterator[tuple[str, float]]:
    transient = done["transient"]
    if transient is not None and not transient["steady"]:
        yield "no_steady_state", 1.0
    yield from _of_machine(done)
    yield from _of_replay(done)
    yield from _of_counts(done)
    if any(note.startswith(NOT_POLLED) for group in done["groups"] for note in group["notes"]):
        yield "not_polled", 1.0
    if isinstance(phase, LoadPhase):
        if (unserved := max(_unserved(phase.load, done), default=0.0)) >= UNSERVED_FROM:
            yield "unserved", unserved
        groups = {group["name"]: group for group in phase.load["groups"]}
        if any(group["engine"] == "null" for group in groups.values()):
            yield "no_io", 1.0
            return
        yield from _of_reads(phase.load, done, accounted=accounted)
        yield from _of_writes(phase.load, done, accounted=accounted)
        busiest = max((_cpu_share(group, done) for group in done["groups"]), default=0.0)
        # If instructions are counted nothing waits for a device: the processor is what is asked.
        if busiest >= GENERATOR_CPU_FROM and "instructions" not in probes_of(done):
            yield "generator_cpu", busiest


def _unserved(load: native.Phase, done: PhaseRecord) -> Iterator[float]:
    """Of each open loop, the share of its arrivals in the measured part that were not served in it, if that is more
    than chance leaves."""
    jobs = jobs_of(done)
    for job in (job for group in load["groups"] for job in group["jobs"] if job["name"] in jobs):
        arrival, record = job["arrival"], jobs[job["name"]]
        if arrival["kind"] != "open":
            continue
        # A job that ends by an amount is done before the phase may be, and one may begin late.
        until_ns = done["measured_to_ns"] if "duration_ns" in job["until"] else record["finished_ns"]
        span_ns = until_ns - max(done["measured_from_ns"], job.get("start_ns") or 0)
        asked = arrival["rate_per_s"] * span_ns / 1e9
        served = sum(op["count"] for name, op in ops_of(record).items() if name in ARRIVING)
        by_chance = UNSERVED_DEVIATIONS * math.sqrt(max(asked, 0)) if arrival["spacing"] == "poisson" else 2
        if asked - served > by_chance:
            yield 1 - served / asked


def _of_replay(done: PhaseRecord) -> Iterator[tuple[str, float]]:
    found = [replay for job in jobs_of(done).values() if (replay := job.get("replay")) is not None]
    arrivals = sum(replay["arrivals"] for replay in found)
    late = sum(replay["arrivals_late"] for replay in found) / arrivals if arrivals else 0.0
    if late >= LATE_FROM:
        yield "late", late
        yield "late_by", float(max(replay["lateness_ns_max"] or 0 for replay in found))


def _of_counts(done: PhaseRecord) -> Iterator[tuple[str, float]]:
    found = probes_of(done).get("instructions")
    if found is not None:
        string_bytes, share = copied(found)
        if share >= COPIED_FROM:
            yield "copied", share
        if string_bytes >= STRING_BYTES_FROM:
            yield "string_bytes", string_bytes


def _of_machine(done: PhaseRecord) -> Iterator[tuple[str, float]]:
    conditions = done.get("conditions", {})
    elapsed_s = done["elapsed_ns"] / 1e9
    if (steal := conditions.get("steal_share") or 0.0) >= STEAL_FROM:
        yield "steal", steal
    throttled_s = conditions.get("cpu_throttled_s") or 0.0
    if elapsed_s > 0 and throttled_s / elapsed_s >= THROTTLED_FROM:
        yield "cpu_quota", min(1.0, throttled_s / elapsed_s)
    if (times := conditions.get("thermal_throttles") or 0) > 0:
        yield "thermal", float(times)


def _of_reads(load: native.Phase, done: PhaseRecord, *, accounted: bool) -> Iterator[tuple[str, float]]:
    """What buffered reads may not have asked the device for."""
    jobs = jobs_of(done)
    span_ns = done["measured_to_ns"] - done["measured_from_ns"]
    read_bytes, buffered = 0, False
    passes = 0.0
    for group in load["groups"]:
        for job in group["jobs"]:
            read = ops_of(jobs[job["name"]]).get("read") if job["name"] in jobs else None
            if read is None or not read["bytes"]:
                continue
            read_bytes += read["bytes"]
            if not group["direct"]:
                buffered = True
                passes = max(passes, read["bytes"] / max(1, job["length_bytes"] * len(job["files"])))
    if not buffered or not span_ns:
        return
    fetched = done.get("conditions", {}).get("process_read_bytes")
    if fetched is not None and accounted and len(done["groups"]):
        # Fetched is of the whole phase, what the jobs read of its measured part.
        cached = 1 - fetched * span_ns / done["elapsed_ns"] / read_bytes
        if cached >= CACHED_FROM:
            yield "page_cache", min(1.0, cached)
    if passes >= WRAPPED_FROM:
        yield "wrapped", passes


def _of_writes(load: native.Phase, done: PhaseRecord, *, accounted: bool) -> Iterator[tuple[str, float]]:
    """What buffered writes left in memory: what the kernel wrote back meanwhile is of all processes, so that this is
    the least."""
    written_back = done.get("conditions", {}).get("written_back_bytes")
    jobs = jobs_of(done)
    written_bytes = sum(
        jobs[job["name"]].get("write", {}).get("bytes", 0)
        for group in load["groups"]
        if not group["direct"]
        for job in group["jobs"]
        if job["name"] in jobs
    )
    span_ns = done["measured_to_ns"] - done["measured_from_ns"]
    if written_back is None or not accounted or not written_bytes or not span_ns:
        return
    kept = 1 - written_back * span_ns / done["elapsed_ns"] / written_bytes
    if kept >= CACHED_FROM:
        yield "written_to_memory", min(1.0, kept)


def _cpu_share(group: GroupRecord, done: PhaseRecord) -> float:
    """The share of one CPU over the measured part: a group is a thread."""
    span_ns = done["measured_to_ns"] - done["measured_from_ns"]
    used: float = group["cpu_user_ns"] + group["cpu_system_ns"]
    return min(1.0, used / span_ns) if span_ns > 0 else 0.0


def _filesystems(observed: Any) -> Iterator[JsonObject]:
    if isinstance(observed, dict):
        if isinstance(observed.get("filesystem"), dict):
            yield observed["filesystem"]
        for value in observed.values():
            yield from _filesystems(value)
    elif isinstance(observed, list):
        for value in observed:
            yield from _filesystems(value)
