"""Combinations of job and phase options that make no sense, each with what to do instead."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from iolab.base.quantity import format_bytes, parse_bytes, size_in_words
from iolab.domain.workload.job import ONE_AT_A_TIME, RINGS, TAKE_FLAGS, JobOptions, PhaseOptions
from iolab.domain.workload.kind import Conflict
from iolab.domain.workload.zone import EXPECTED, read_zones

SECTOR_BYTES = 512
STAMP_BYTES = 512
"""What one stamp of a verified block covers (crates/measure/engine/src/memory.rs)."""


def phase_conflicts(phase: PhaseOptions) -> Iterator[Conflict]:
    """Options of a phase that exclude each other: those that cut time off, of a run that ends by amount."""
    if phase.duration is None:
        for key in ("warm_up", "cut_transient"):
            if getattr(phase, key):
                yield Conflict(
                    (key,), "only with duration: a run by amount is measured from its first byte to its last"
                )


def job_conflicts(job: JobOptions, phase: PhaseOptions, *, is_stopped: bool = False) -> Iterator[Conflict]:
    """Conflicts of one job in its phase, keys relative to the job's table.

    Args:
        is_stopped: the end of another job is its end.
    """
    if not is_stopped:
        yield from _bounds(job, phase)
    yield from _engine(job)
    yield from _sizes(job)
    yield from _pattern(job)
    yield from _arrival(job)
    yield from _sync(job)
    yield from _steady(job)
    yield from _fill(job)
    if phase.verify:
        yield from _verify(job)


def cpus_conflicts(cpus: Sequence[int] | None) -> Iterator[Conflict]:
    """The conflicts of the option `cpus`, if it is given: no CPU at all, or one below 0."""
    if cpus is not None and (not cpus or min(cpus) < 0):
        yield Conflict(("cpus",), "expected a list of CPU numbers such as [0] or [0, 1]")


def sector_conflicts(key: str, size_bytes: int) -> Iterator[Conflict]:
    """The conflicts of the size of an operation with direct I/O that is not a whole number of sectors."""
    if size_bytes % SECTOR_BYTES:
        what = f"{size_in_words(size_bytes)} is not a multiple of {SECTOR_BYTES}, which direct I/O needs"
        yield Conflict((key,), what)


def is_bounded(job: JobOptions, phase: PhaseOptions) -> bool:
    """Whether the job has an end of its own."""
    return phase.duration is not None or job.amount is not None or job.operations is not None


def _bounds(job: JobOptions, phase: PhaseOptions) -> Iterator[Conflict]:
    if not is_bounded(job, phase):
        yield Conflict(("duration",), 'when does it end? give duration = "2s", amount = "1GiB" or operations = 1000')


def _engine(job: JobOptions) -> Iterator[Conflict]:
    if job.engine in ONE_AT_A_TIME and job.queue_depth > 1:
        yield Conflict(
            ("queue_depth",),
            f"{job.queue_depth} with engine {job.engine}, which waits for each operation; use io_uring or libaio",
        )
    if job.engine == "mmap" and job.direct:
        yield Conflict(
            ("direct",), "mmap goes through the page cache; leave direct out, or use io_uring, libaio or psync"
        )
    if job.engine in (*ONE_AT_A_TIME, "null") and job.batch is not None:
        yield Conflict(("batch",), f"engine {job.engine} has no batches; use io_uring or libaio")
    if job.engine == "io_uring_cmd" and not job.uses_direct:
        yield Conflict(("direct",), "commands to a drive pass the page cache by; leave direct out, or use io_uring")
    if job.sqpoll and job.engine not in RINGS:
        yield Conflict(("sqpoll",), f"only with engines io_uring and io_uring_cmd, not {job.engine}")
    if job.poll and job.engine not in (*RINGS, "pvsync"):
        yield Conflict(("poll",), f"only with engines io_uring, io_uring_cmd and pvsync, not {job.engine}")
    if job.poll and not job.uses_direct:
        yield Conflict(("poll",), "polled completion needs direct = true")
    if job.hybrid_poll and (job.engine != "io_uring" or not job.poll or job.sqpoll):
        yield Conflict(
            ("hybrid_poll",),
            "only a ring that polls sleeps first: engine io_uring, poll = true, no sqpoll",
        )
    if job.registered_waits and job.engine not in RINGS:
        yield Conflict(("registered_waits",), f"only with engines io_uring and io_uring_cmd, not {job.engine}")
    if job.registered_waits and job.poll:
        yield Conflict(("registered_waits",), "a ring that polls reads no registered time limit; leave poll out")
    if job.nowait_reads and job.engine not in ("io_uring", "pvsync"):
        yield Conflict(("nowait_reads",), f"only with engines io_uring and pvsync, not {job.engine}")
    if job.nowait_reads and not job.reads:
        yield Conflict(("nowait_reads",), "the job only writes")
    for key, given in (("uncached", job.uncached), ("atomic_writes", job.atomic_writes)):
        if given and job.engine not in TAKE_FLAGS:
            yield Conflict((key,), f"only with engines io_uring, libaio and pvsync, not {job.engine}")
    if job.uncached and job.uses_direct:
        yield Conflict(("uncached",), "direct I/O has nothing in the page cache; uncached needs direct = false")
    if job.atomic_writes and not job.uses_direct:
        yield Conflict(("atomic_writes",), "the kernel writes atomically past the page cache alone; say direct = true")
    if job.atomic_writes and not job.writes:
        yield Conflict(("atomic_writes",), "the job only reads")
    if job.write_hint is not None and not job.writes:
        yield Conflict(("write_hint",), "the job only reads")
    if job.write_hint is not None and job.engine == "null":
        yield Conflict(("write_hint",), "the null engine writes nothing")
    if job.atomic_writes:
        for size in (size for size in job.block_size if size.bit_count() != 1):
            yield Conflict(("block_size",), f"{format_bytes(size)} is no power of two, as atomic writes have to be")
    if job.devices is not None and (not job.devices or min(job.devices) < 0):
        yield Conflict(("devices",), "expected a list of device numbers such as [0] or [0, 2]")
    yield from cpus_conflicts(job.cpus)


def _sizes(job: JobOptions) -> Iterator[Conflict]:
    largest = max(job.block_size)
    if job.range_start >= job.file_bytes:
        yield Conflict(
            ("range_start",), f"{format_bytes(job.range_start)} is not inside files of {format_bytes(job.file_bytes)}"
        )
    elif job.range_start + (job.range_length or 0) > job.file_bytes:
        yield Conflict(("range_length",), f"the range ends after the end of files of {format_bytes(job.file_bytes)}")
    elif largest > job.range_bytes:
        holder = "file_size" if job.range_length is None and not job.range_start else "the range"
        yield Conflict(
            ("block_size",), f"{format_bytes(largest)} is larger than {holder}, {format_bytes(job.range_bytes)}"
        )
    if job.range_start % job.align_bytes:
        yield Conflict(("range_start",), f"is not a multiple of align, {format_bytes(job.align_bytes)}")
    if job.amount is not None and job.amount < largest:
        yield Conflict(("amount",), f"{format_bytes(job.amount)} is less than one block of {format_bytes(largest)}")
    if job.uses_direct and job.engine != "null":
        aligned = {"block_size": (*job.block_size,), "align": (job.align or 0,), "range_start": (job.range_start,)}
        for key, sizes in aligned.items():
            for size in sizes:
                if size % SECTOR_BYTES:
                    yield Conflict(
                        (key,),
                        f"{size_in_words(size)} is not a multiple of {SECTOR_BYTES}, which direct I/O needs; "
                        "choose a multiple or set direct = false",
                    )


PATTERN_OF = {
    "stride": "strided",
    "zipf_theta": "zipf",
    "pareto_h": "pareto",
    "normal_deviation": "normal",
    "zones": "zoned",
}
"""The pattern that reads the option."""


def _pattern(job: JobOptions) -> Iterator[Conflict]:
    for key, pattern in PATTERN_OF.items():
        if getattr(job, key) is not None and job.pattern != pattern:
            yield Conflict((key,), f'only with pattern = "{pattern}", not "{job.pattern}"')
    if job.pattern == "strided":
        if job.stride is None:
            yield Conflict(("pattern",), 'strided needs stride, such as stride = "64KiB"')
        elif job.stride % job.align_bytes:
            yield Conflict(
                ("stride",), f"{format_bytes(job.stride)} is not a multiple of {format_bytes(job.align_bytes)}"
            )
    if job.pattern == "zoned":
        try:
            read_zones(job.zones or "", parse_bytes)
        except ValueError as error:
            yield Conflict(("zones",) if job.zones else ("pattern",), str(error) if job.zones else f"zones: {EXPECTED}")
    if job.pattern == "permutation" and len(job.block_size) > 1:
        yield Conflict(("block_size",), "permutation visits each block once, so it needs one size")


def _arrival(job: JobOptions) -> Iterator[Conflict]:
    open_loop = job.rate is not None or job.rate_iops is not None
    if job.rate is not None and job.rate_iops is not None:
        yield Conflict(("rate_iops",), "rate is given too; keep one of the two")
    if open_loop and job.think_time:
        yield Conflict(("think_time",), "an open loop (rate, rate_iops) does not wait for completions; leave one out")
    if job.spacing is not None and not open_loop:
        yield Conflict(("spacing",), "spaces the operations of an open loop; give rate or rate_iops too")
    if job.think_every is not None and not job.think_time:
        yield Conflict(("think_every",), 'needs think_time, such as think_time = "1ms"')


CALLS_THAT_SYNC = ("fsync_every", "fdatasync_every", "sync_file_range_every")
WRITES_THAT_SYNC = ("dsync_every", "osync_every")


def _sync(job: JobOptions) -> Iterator[Conflict]:
    for keys in (CALLS_THAT_SYNC, WRITES_THAT_SYNC):
        given = [key for key in keys if getattr(job, key)]
        for key in given[1:]:
            yield Conflict((key,), f"{given[0]} is given too; keep one of the two")
    for key in WRITES_THAT_SYNC:
        if getattr(job, key) and job.engine in ("mmap", "null"):
            yield Conflict((key,), f"engine {job.engine} makes no call that could be durable")
    if job.sync_file_range_every and job.uses_direct:
        what = "direct I/O leaves nothing dirty in the page cache to send; say direct = false"
        yield Conflict(("sync_file_range_every",), what)
    if not job.writes:
        for key in (*CALLS_THAT_SYNC, *WRITES_THAT_SYNC, "sync_at_end"):
            if getattr(job, key):
                yield Conflict((key,), "nothing is written: read_percent is 100")


def _steady(job: JobOptions) -> Iterator[Conflict]:
    if job.steady is None:
        return
    if job.jobs > 1:
        what = f"each of {job.jobs} copies would end at a time of its own; make one deeper with queue_depth"
        yield Conflict(("steady",), what)
    for what in job.steady.problems():
        yield Conflict(("steady", "window"), what)


def _fill(job: JobOptions) -> Iterator[Conflict]:
    if job.fill is None:
        return
    if job.engine == "null":
        yield Conflict(("fill",), "the null engine writes nothing")
    if job.layout is False:
        yield Conflict(("layout",), "fill writes the files; leave layout out")
    if job.fill == "random until steady" and not job.uses_direct:
        yield Conflict(("fill",), "the page cache would be what is steady; say direct = true")


def _verify(job: JobOptions) -> Iterator[Conflict]:
    if job.engine == "null":
        yield Conflict(("engine",), "the null engine moves no data, so there is nothing to verify")
    if job.shared_files and job.jobs > 1 and job.writes:
        yield Conflict(
            ("shared_files",),
            "with verify, a file has one writer, else its contents are undefined; set shared_files = false",
        )
    aligned = {"block_size": math.gcd(*job.block_size), "align": job.align or 0, "range_start": job.range_start}
    for key, size in aligned.items():
        if size % STAMP_BYTES:
            yield Conflict(
                (key,), f"with verify, blocks are stamped in units of {STAMP_BYTES} bytes; choose a multiple"
            )
