"""How evenly jobs, or weighted groups, shared the device."""

from __future__ import annotations

from iolab.domain.definition import Metric

METRICS = (
    Metric(
        "fairness_jain",
        "share",
        "higher",
        "Jain's index of the jobs' rates: 1 when all are equal, 1/n when one of n has everything.",
        "io",
        lambda seen: seen.fairness(),
        "needs two jobs or more, and some I/O",
    ),
    Metric(
        "fairness_jain_weighted",
        "share",
        "higher",
        "Jain's index of the weighted groups' rates per weight: 1 when each has what its weight entitles it to.",
        "measure",
        lambda seen: seen.fairness_weighted(),
        "needs two groups or more, and some I/O",
    ),
    Metric(
        "share_of_entitlement",
        "share",
        "higher",
        "A weighted group's share of the bytes over its share of the weights; of the phase, the worst-off group's.",
        "measure",
        lambda seen: seen.share_of_entitlement(),
        "there was no I/O",
        per_group=True,
    ),
)
