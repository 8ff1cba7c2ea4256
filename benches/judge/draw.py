"""Draws configurations: the same for the same seed and number, whatever was drawn before.

Configurations 2n and 2n + 1 have one load and one drive, and differ in the queue: the order of the two is a question of
its own.
"""

import random
from dataclasses import replace

from judge.configuration import BARE, Configuration, Job

KERNELS = ("6.1.0-56-cloud", "6.12.117+deb12-cloud")
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq", "bfq")
DRIVES = ((500, 1), (500, 2), (500, 4), (1000, 1), (1000, 4), (1000, 8), (2000, 2), (2000, 8), (2000, 16), (4000, 1))
"""Latency in microseconds and commands at once: fast enough for many operations, too slow for the CPU to count."""
SLOW_DRIVES = ((2000, 1), (4000, 1), (4000, 2), (8000, 4))
"""For buffered I/O, whose requests are large."""
MQ_DEADLINE = (("fifo_batch", (1, 4, 32)), ("writes_starved", (1, 4)), ("read_expire", (20, 100)))
JOBS_MAX = 4
COPIES_MAX = 16
"""Threads of all jobs together."""


def configuration(seed: int, number: int) -> Configuration:
    """The configuration of that number, from 0."""
    load = _load(random.Random(f"load {seed} {number // 2}"))
    queue = _queue(random.Random(f"queue {seed} {number}"))
    if number % 2 and queue == _queue(random.Random(f"queue {seed} {number - 1}")):
        queue = replace(queue, scheduler="none" if queue.scheduler != "none" else "mq-deadline", tunables={})
    return replace(load, scheduler=queue.scheduler, tunables=queue.tunables, nr_requests=queue.nr_requests)


def _load(draws: random.Random) -> Configuration:
    family = draws.choices(("direct", "synced", "buffered"), (60, 20, 20))[0]
    kernel = draws.choice(KERNELS)
    latency_us, depth = draws.choice(SLOW_DRIVES if family == "buffered" else DRIVES)
    filesystem = BARE
    if family == "synced":
        filesystem = draws.choice(("ext4", "xfs"))
    elif family == "buffered":
        filesystem = draws.choice((BARE, "ext4", "xfs"))
    jobs: list[Job] = []
    for _ in range(draws.choices((1, 2, 3, JOBS_MAX), (20, 45, 25, 10))[0]):
        job = _job(draws, family)
        left = COPIES_MAX - sum(one.copies for one in jobs)
        jobs.append(replace(job, copies=min(job.copies, left)))
    dirty = draws.choice((1, 2, 4)) if any(not job.direct and job.read_percent < 100 for job in jobs) else 0
    return Configuration(
        kernel=kernel,
        latency_us=latency_us,
        drive_depth=depth,
        scheduler="none",
        jobs=tuple(jobs),
        filesystem=filesystem,
        dirty_percent=dirty,
        duration_ms=draws.choice((1500, 2000)),
    )


def _job(draws: random.Random, family: str) -> Job:
    reads = draws.choices((100, 0, draws.choice((30, 50, 70))), (45, 40, 15))[0]
    job = Job(
        pattern=draws.choice(("random", "sequential")),
        read_percent=reads,
        block_kib=draws.choice((4, 4, 16, 64)),
        depth=draws.choices((1, 2, 4, 8, 16, 32), (40, 10, 15, 15, 10, 10))[0],
        copies=draws.choices((1, 2, 3, 4), (60, 20, 10, 10))[0],
        think_ms=draws.choices((0, 1, 2, 5, 10), (70, 8, 8, 7, 7))[0],
        think_every=draws.choice((1, 1, 4)),
    )
    if family == "buffered" and draws.random() < 0.6:
        job = replace(job, direct=False, depth=1)
    if family == "synced" and job.read_percent < 100 and draws.random() < 0.7:
        job = replace(job, fsync_every=draws.choice((1, 4, 16)), depth=1, direct=draws.random() < 0.4)
    return job if job.think_ms else replace(job, think_every=1)


def _queue(draws: random.Random) -> Configuration:
    scheduler = draws.choice(SCHEDULERS)
    tunables: dict[str, int] = {}
    if scheduler == "bfq":
        tunables["low_latency"] = draws.choice((0, 0, 1))
        if draws.random() < 0.4:
            tunables["slice_idle"] = draws.choice((0, 2))
    if scheduler == "mq-deadline" and draws.random() < 0.4:
        name, values = draws.choice(MQ_DEADLINE)
        tunables[name] = draws.choice(values)
    if scheduler == "kyber" and draws.random() < 0.3:
        name, value = draws.choice((("read_lat_nsec", 8_000_000), ("write_lat_nsec", 2_000_000)))
        tunables[name] = value
    requests = draws.choice((16, 64, 256)) if scheduler != "none" and draws.random() < 0.15 else 0
    return Configuration(
        kernel="", latency_us=0, drive_depth=0, scheduler=scheduler, jobs=(), tunables=tunables, nr_requests=requests
    )
