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


def share_over(histogram: Sequence[Bucket], threshold: int) -> float | None:
    """Share of values above `threshold`, 0 to 1; of the bucket that holds the threshold, the part above it."""
    total = sum(count for _, _, count in histogram)
    if not total:
        return None
    over = sum(count * _part_over(lowest, highest, threshold) for lowest, highest, count in histogram)
    return over / total


def _part_over(lowest: int, highest: int, threshold: int) -> float:
    return min(1.0, max(0.0, (highest - threshold) / (highest - lowest + 1)))
