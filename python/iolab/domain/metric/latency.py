"""How long operations took."""

from __future__ import annotations

from iolab.base.histogram import few, values_needed
from iolab.domain.definition import NO_OPERATION, Metric

METRICS = (
    Metric(
        "latency_ns_mean",
        "ns",
        "time",
        "Mean latency, exact. From submission to completion; in an open loop from the time the operation was due.",
        "op",
        lambda seen: seen.latency_mean(),
        NO_OPERATION,
        per_job=True,
    ),
    Metric(
        "latency_ns_stddev",
        "ns",
        "cost",
        "Standard deviation of the latency, exact.",
        "op",
        lambda seen: seen.latency_stddev(),
        NO_OPERATION,
    ),
    Metric(
        "latency_ns_stddev_job_mean",
        "ns",
        "cost",
        "Mean over the jobs of each job's own standard deviation: without the spread between the jobs.",
        "io",
        lambda seen: seen.latency_stddev_job_mean(),
        NO_OPERATION,
    ),
    Metric(
        "latency_ns_min",
        "ns",
        "time",
        "Lowest latency, exact.",
        "op",
        lambda seen: seen.latency_min(),
        NO_OPERATION,
    ),
    Metric(
        "latency_ns_max",
        "ns",
        "time",
        "Highest latency, exact.",
        "op",
        lambda seen: seen.latency_max(),
        NO_OPERATION,
        per_job=True,
    ),
    *(
        Metric(
            f"latency_ns_p{label}",
            "ns",
            "time",
            f"{percent} % of operations took at most this long; from the histogram, at most 1 % too high, "
            f"never above the highest. Of {values_needed(percent / 100):,} operations and more.",
            "op",
            lambda seen, share=percent / 100: seen.latency_quantile(share),  # type: ignore[misc]
            few(percent / 100),
            per_job=True,
        )
        for label, percent in (("50", 50), ("90", 90), ("99", 99), ("999", 99.9))
    ),
    *(
        Metric(
            f"latency_share_over_{seconds}s",
            "share",
            "cost",
            f"Share of operations that took longer than {seconds} s.",
            "op",
            lambda seen, over_ns=seconds * 10**9: seen.latency_share_over(over_ns),  # type: ignore[misc]
            NO_OPERATION,
        )
        for seconds in (2, 10)
    ),
)
