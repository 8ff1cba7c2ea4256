"""Which percentiles of so many values are worth a number: those with enough values beyond them."""

from __future__ import annotations

BEYOND_MIN = 10
"""Values beyond a percentile from which on it is shown: p99 from 1,000 values on, p99.9 from 10,000."""


def is_known(percent: float, count: int) -> bool:
    """Whether enough of `count` values lie beyond the percentile; the median of any is shown."""
    return percent <= 50 or count * (100 - percent) >= 100 * BEYOND_MIN - 1e-6
