"""The weight of each measurement: less for an outlier of noise with heavy tails."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FREEDOM = 4.0
"""Degrees of freedom of the t distribution whose weights outliers get."""
TAILS_SAY = 1.0
"""Outliers lose weight if the log likelihood of such tails is higher than the normal distribution's by this."""
OUTLIER_SPREADS, TYPICAL_SPREADS, NEAR_SPREADS = 2.5, 1.0, 1.5
"""A residual of so many spreads would lose half of its weight, unless the value is so near to a typical one of another
trial; of a trial at the same level it is not."""
MODE_SHARE = 0.75
"""If this share of the outliers lie where others do, they are trials in another mode, and keep their weight."""
EVEN = 5 / 9
"""The bimodality of evenly spread values; what has more has modes."""
SMALLEST_SPREAD = 1e-6
"""Residuals closer together than this share of the values' range are rounding, and no scale for outliers."""


def weights_of(residuals: Array) -> Array:
    """The weight of each measurement, 1 on average, from residuals in units of the values' range: alike, unless the
    residuals have heavy tails."""
    import numpy as np

    even = np.ones(len(residuals))
    spread = float(np.median(np.abs(residuals - np.median(residuals)))) * 1.4826
    if spread < SMALLEST_SPREAD or _tails(residuals, spread) < TAILS_SAY:
        return even
    weights = (FREEDOM + 1) / (FREEDOM + (residuals / spread) ** 2)
    return np.asarray(weights / weights.mean(), dtype=np.float64)


def is_in_modes(residuals: Array, values: Array) -> bool:
    """Whether the trials that no setting accounts for lie where trials of other settings do: a metric with modes, which
    come by chance, and no outliers."""
    import numpy as np

    spread = float(np.median(np.abs(residuals - np.median(residuals)))) * 1.4826
    far, typical = np.abs(residuals) > OUTLIER_SPREADS * spread, np.abs(residuals) <= TYPICAL_SPREADS * spread
    if spread < SMALLEST_SPREAD or not far.any() or not typical.any():
        return False
    apart = np.abs(values[far][:, None] - values[typical][None, :]).min(axis=1)
    return bool((apart <= NEAR_SPREADS * spread).mean() >= MODE_SHARE)


def bimodality(residuals: Array) -> float:
    """Sarle's coefficient, (skewness^2 + 1) / kurtosis: 1/3 for normal residuals, 5/9 for even ones, 1 for two values
    (SAS Institute, SAS/STAT user's guide; Pfister et al., Frontiers in Psychology 4:700, 2013). 0 without spread."""
    centred = residuals - residuals.mean()
    variance = float((centred**2).mean())
    if not variance:
        return 0.0
    skewness, kurtosis = ((centred**power).mean() / variance ** (power / 2) for power in (3, 4))
    return float((skewness**2 + 1) / kurtosis)


def _tails(residuals: Array, spread: float) -> float:
    """By how much the log likelihood of Student's t, with the likeliest scale, is above the normal distribution's."""
    import numpy as np
    from scipy.special import gammaln

    count = len(residuals)
    variance = spread**2
    for _ in range(8):
        weights = (FREEDOM + 1) / (FREEDOM + residuals**2 / variance)
        variance = float((weights * residuals**2).mean())
    constant = gammaln((FREEDOM + 1) / 2) - gammaln(FREEDOM / 2) - 0.5 * math.log(FREEDOM * math.pi * variance)
    of_t = count * constant - (FREEDOM + 1) / 2 * float(np.log1p(residuals**2 / (FREEDOM * variance)).sum())
    of_normal = -0.5 * count * (math.log(2 * math.pi * float((residuals**2).mean())) + 1)
    return float(of_t - of_normal)
