"""The metrics of a phase as a whole: its times, and what went wrong in it."""

from __future__ import annotations

from iolab.domain.definition import NO_TIME, Metric

METRICS = (
    Metric(
        "elapsed_s",
        "s",
        "time",
        "Wall time from the common start to the last completion (a job's own), warm-up and transient included.",
        "phase",
        lambda seen: seen.elapsed_s,
        NO_TIME,
        per_job=True,
    ),
    Metric(
        "measured_s",
        "s",
        "neutral",
        "Time that the other metrics cover.",
        "phase",
        lambda seen: seen.measured_s,
        NO_TIME,
    ),
    Metric(
        "transient_s",
        "s",
        "neutral",
        "Time cut off at the start because it was not yet steady.",
        "phase",
        lambda seen: seen.transient_s,
        "no transient was looked for",
    ),
    Metric(
        "errors",
        "count",
        "cost",
        "Failed operations and short transfers, over the whole phase.",
        "phase",
        lambda seen: seen.errors,
        NO_TIME,
    ),
    Metric(
        "mismatches",
        "count",
        "cost",
        "Blocks that were read with wrong contents, over the whole phase.",
        "io",
        lambda seen: seen.mismatches,
        "nothing was verified: verify = false",
    ),
)
