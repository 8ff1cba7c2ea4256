"""Reduces a configuration that shows something to the smallest that still shows it, as a property test shrinks.

It is pure: `shows` decides. Each step tries the simpler neighbours in a fixed order and takes the first that still
shows it; it ends when none does. A neighbour is strictly simpler by `size`, so it ends.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from judge.configuration import BARE, Configuration, Job

PLAIN = Job()
"""What each property of a job shrinks to, if nothing simpler shows the same."""
TRIES_MAX = 60
"""Questions for one reduction: each boots a guest."""


def smallest(asked: Configuration, shows: Callable[[Configuration], bool], tries_max: int = TRIES_MAX) -> Configuration:
    """The simplest found; `asked` itself if nothing simpler shows it.

    Args:
        shows: whether a configuration still shows it; asked once for each.
        tries_max: so often at most.
    """
    known: dict[str, bool] = {}
    while True:
        for simpler in neighbours(asked):
            if simpler.key not in known:
                if len(known) >= tries_max:
                    return asked
                known[simpler.key] = shows(simpler)
            if known[simpler.key]:
                asked = simpler
                break
        else:
            return asked


def neighbours(asked: Configuration) -> Iterator[Configuration]:
    """Each one step simpler: the largest steps first."""
    jobs = asked.jobs
    if len(jobs) > 1:
        for number in range(len(jobs)):
            yield _without_unused_limit(replace(asked, jobs=jobs[:number] + jobs[number + 1 :]))
    if asked.filesystem != BARE and not any(job.fsync_every for job in jobs):
        yield replace(asked, filesystem=BARE)
    for number, job in enumerate(jobs):
        for simpler in _simpler_jobs(job):
            yield _without_unused_limit(replace(asked, jobs=(*jobs[:number], simpler, *jobs[number + 1 :])))
    if asked.scheduler != "none":
        yield replace(asked, scheduler="none", tunables={}, nr_requests=0)
    for name in asked.tunables:
        yield replace(asked, tunables={key: value for key, value in asked.tunables.items() if key != name})
    if asked.nr_requests:
        yield replace(asked, nr_requests=0)
    if asked.drive_depth > 1:
        yield replace(asked, drive_depth=1)


def _without_unused_limit(asked: Configuration) -> Configuration:
    """Dirty pages have a limit only if some I/O is buffered."""
    return asked if asked.buffered else replace(asked, dirty_percent=0)


def _simpler_jobs(job: Job) -> Iterator[Job]:
    if job.fsync_every:
        yield replace(job, fsync_every=0)
    if job.think_ms:
        yield replace(job, think_ms=0, think_every=1)
    if not job.direct:
        yield replace(job, direct=True)
    if job.copies > 1:
        yield replace(job, copies=1)
    if job.depth > 1:
        yield replace(job, depth=1)
        if job.depth > 2:
            yield replace(job, depth=job.depth // 2)
    if job.read_percent < 100:
        yield replace(job, read_percent=100, fsync_every=0)
    if 0 < job.read_percent < 100:
        yield replace(job, read_percent=0)
    if job.block_kib != PLAIN.block_kib:
        yield replace(job, block_kib=PLAIN.block_kib)
    if job.pattern != PLAIN.pattern:
        yield replace(job, pattern=PLAIN.pattern)


def size(asked: Configuration) -> int:
    """Each step of `neighbours` lowers it."""
    jobs = sum(
        20
        + job.copies
        + 2 * job.depth.bit_length()
        + bool(job.fsync_every)
        + bool(job.think_ms)
        + (not job.direct)
        + (job.read_percent < 100)
        + (0 < job.read_percent < 100)
        + (job.block_kib != PLAIN.block_kib)
        + (job.pattern != PLAIN.pattern)
        for job in asked.jobs
    )
    queue = 2 * (asked.scheduler != "none") + len(asked.tunables) + bool(asked.nr_requests)
    return jobs + queue + (asked.filesystem != BARE) + (asked.drive_depth > 1) + bool(asked.dirty_percent)
