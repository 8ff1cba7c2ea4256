"""How much was transferred, how fast, and how evenly jobs or weighted groups shared the device."""

from __future__ import annotations

from iolab.domain.definition import NO_IO, NO_TIME, Metric

METRICS = (
    Metric(
        "rate_bytes_per_s",
        "bytes/s",
        "rate",
        "Bytes transferred by all jobs, divided by the measured time; a final sync counts as time.",
        "transfer",
        lambda seen: seen.per_second(seen.bytes),
        NO_TIME,
        per_job=True,
    ),
    Metric(
        "iops",
        "1/s",
        "rate",
        "Completed operations per second of measured time.",
        "op",
        lambda seen: seen.per_second(seen.count),
        NO_TIME,
        per_job=True,
    ),
    Metric(
        "rate_sum_bytes_per_s",
        "bytes/s",
        "rate",
        "Sum of the jobs' own rates, each until its own last operation; above rate_bytes_per_s if the jobs end at "
        "different times. iozone calls it the children's throughput.",
        "io",
        lambda seen: seen.rate_sum(),
        NO_TIME,
        per_job=True,
    ),
    Metric("ops", "count", "neutral", "Completed operations.", "op", lambda seen: seen.count, NO_IO),
    Metric(
        "bytes",
        "bytes",
        "neutral",
        "Bytes transferred.",
        "transfer",
        lambda seen: seen.bytes,
        NO_IO,
        per_job=True,
    ),
)


SHARING = (
    Metric(
        "fairness_jain",
        "share",
        "benefit",
        "Jain's index of the jobs' rates: 1 when all are equal, 1/n when one of n has everything.",
        "io",
        lambda seen: seen.fairness(),
        "needs two jobs or more, and some I/O",
    ),
    Metric(
        "fairness_jain_weighted",
        "share",
        "benefit",
        "Jain's index of the weighted groups' rates per weight: 1 when each has what its weight entitles it to.",
        "measure",
        lambda seen: seen.fairness_weighted(),
        "needs two groups or more, and some I/O",
    ),
    Metric(
        "share_of_entitlement",
        "share",
        "benefit",
        "A weighted group's share of the bytes over its share of the weights; of the phase, the worst-off group's.",
        "measure",
        lambda seen: seen.share_of_entitlement(),
        "there was no I/O",
        per_group=True,
    ),
    Metric(
        "io_stalled_percent",
        "percent",
        "cost",
        "Share of the phase for which some process of a control group waited for I/O, a limit's throttling included "
        "(io.pressure); of the phase, the longest of a group.",
        "measure",
        lambda seen: seen.io_stalled_percent(),
        "this kernel shows no io.pressure of control groups",
        per_group=True,
    ),
)
