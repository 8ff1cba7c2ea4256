"""How much was transferred, and how fast."""

from __future__ import annotations

from iolab.domain.definition import NO_IO, NO_TIME, Metric

METRICS = (
    Metric(
        "rate_bytes_per_s",
        "bytes/s",
        "higher",
        "Bytes transferred by all jobs, divided by the measured time; a final sync counts as time.",
        "transfer",
        lambda seen: seen.per_second(seen.bytes),
        NO_TIME,
        per_job=True,
    ),
    Metric(
        "iops",
        "1/s",
        "higher",
        "Completed operations per second of measured time.",
        "op",
        lambda seen: seen.per_second(seen.count),
        NO_TIME,
        per_job=True,
    ),
    Metric(
        "rate_sum_bytes_per_s",
        "bytes/s",
        "higher",
        "Sum of the jobs' own rates, each until its own last operation; above rate_bytes_per_s if the jobs end at "
        "different times. iozone calls it the children's throughput.",
        "io",
        lambda seen: seen.rate_sum(),
        NO_TIME,
        per_job=True,
    ),
    Metric("ops", "count", None, "Completed operations.", "op", lambda seen: seen.count, NO_IO),
    Metric(
        "bytes",
        "bytes",
        None,
        "Bytes transferred.",
        "transfer",
        lambda seen: seen.bytes,
        NO_IO,
        per_job=True,
    ),
)
