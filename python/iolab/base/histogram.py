"""Latency histograms as records carry them: (lowest, highest, count) of each non-empty bucket, all jobs on one grid."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

Bucket = tuple[int, int, int]


def merged(histograms: Iterable[Iterable[Sequence[int]]]) -> list[Bucket]:
    """One histogram of all, buckets in rising order."""
    counts: Counter[tuple[int, int]] = Counter()
    for histogram in histograms:
        for lowest, highest, count in histogram:
            counts[lowest, highest] += count
    return [(lowest, highest, count) for (lowest, highest), count in sorted(counts.items())]


def quantile(histogram: Sequence[Bucket], share: float, *, most: float | None) -> float | None:
    """The highest value of the bucket in which `share` of all values is reached, and no higher than `most`, the highest
    of all if that is known; None of an empty histogram.

    Nearest rank: the value of rank ceil(share x count). At most one bucket's width (1 %) above the true quantile.
    """
    total = sum(count for _, _, count in histogram)
    rank = max(1, math.ceil(share * total))
    seen = 0
    for _, highest, count in histogram:
        seen += count
        if seen >= rank:
            return highest if most is None else min(highest, most)
    return None


BEYOND = 10
"""Values that a quantile leaves above itself, at least: of fewer, it is a matter of which one was the highest."""


def values_needed(share: float) -> int:
    """From how many values on a quantile is reported: 1,000 for p99, 10,000 for p99.9."""
    return round(BEYOND / (1 - share))


def is_known(percent: float, count: int) -> bool:
    """Whether a percentile of this many values is shown."""
    return count >= values_needed(percent / 100)


def few(share: float) -> str:
    """Why a quantile is absent."""
    return f"of fewer than {values_needed(share):,} values, fewer than {BEYOND} lie beyond it"


def known_quantile(histogram: Sequence[Bucket], share: float, highest: float) -> float | None:
    """`quantile`, and None if too few values lie beyond it. A bucket may end above the highest value that was
    seen, which is `highest`; a quantile does not."""
    if sum(count for _, _, count in histogram) < values_needed(share):
        return None
    return quantile(histogram, share, most=highest)


def share_over(histogram: Sequence[Bucket], threshold: int) -> float | None:
    """Share of values above `threshold`, 0 to 1; of the bucket that holds the threshold, the part above it."""
    total = sum(count for _, _, count in histogram)
    if not total:
        return None
    over = 0.0
    for lowest, highest, count in histogram:
        if lowest > threshold:
            over += count
        elif highest > threshold:
            over += count * (highest - threshold) / (highest - lowest + 1)
    return over / total
