"""As how many independent series some count that partly move as one, such as the percentiles of one latency.

Hunter's inequality (J. Appl. Probab. 13, 1976) bounds the probability that any of several series alarms: the sum over
all, less the probability that both alarm, for the pairs along any tree. The tree here joins the closest series. The
correlation of a pair is taken from the ranks of the differences from run to run, where a step is one value, and counts
by its lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

STANDARD_ERRORS = 2.0
"""By which a correlation counts as smaller than it is found, since the tree joins the largest of many. Chosen."""
CORRELATION_MAX = 0.9999
"""Above it, two series are one but for rounding."""
SERIES_MAX = 2000
"""More count each by itself: their pairs would take too long."""


def independent_count(series: Sequence[Sequence[float | None]], false_alarms: float, *, looks: int = 1) -> float:
    """The number by which a p-value of one series is multiplied, so that of all series together no more than
    `false_alarms` of the histories without a change show one."""
    import numpy as np
    from scipy.special import ndtri

    count, runs = len(series), len(series[0]) if series else 0
    if not 1 < count <= SERIES_MAX or runs < 5:
        return float(max(1, count))
    correlation = _correlation(series)
    shrunk = np.tanh(
        np.maximum(0.0, np.arctanh(np.minimum(correlation, 1 - 1e-9)) - STANDARD_ERRORS / math.sqrt(runs - 4))
    )
    # A value per place is tested.
    far = -float(ndtri(false_alarms / (2 * count * looks * runs)))
    return count - float(_both(_closest(np.where(correlation > CORRELATION_MAX, 1.0, shrunk)), far).sum())


def _correlation(series: Sequence[Sequence[float | None]]) -> Array:
    """Without sign: of two series of which one falls as the other rises, both alarm, too."""
    import numpy as np
    from scipy.stats import rankdata

    values = np.asarray(series, dtype=np.float64)
    changes = np.diff(values, axis=1)
    ranks = rankdata(changes, axis=1, nan_policy="omit")
    centred = np.nan_to_num(ranks - np.nanmean(ranks, axis=1, keepdims=True))
    sizes = np.sqrt((centred**2).sum(axis=1))
    return np.asarray(np.abs(centred @ centred.T) / np.maximum(np.outer(sizes, sizes), 1e-12), dtype=np.float64)


def _closest(correlation: Array) -> Array:
    """The correlations along the tree of the closest series, by Prim."""
    import numpy as np

    count = len(correlation)
    outside = np.ones(count, dtype=np.bool_)
    outside[0] = False
    nearest, taken = correlation[0].copy(), []
    for _ in range(count - 1):
        one = int(np.argmax(np.where(outside, nearest, -1.0)))
        taken.append(nearest[one])
        outside[one] = False
        nearest = np.maximum(nearest, correlation[one])
    return np.asarray(taken, dtype=np.float64)


def _both(correlation: Array, far: float) -> Array:
    """The probability that a normal variate lies beyond `far` if one of this correlation does, on the same side."""
    import numpy as np
    from scipy.special import ndtr, ndtri

    tail = float(ndtr(-far))
    variates = -ndtri(tail * (np.arange(200) + 0.5) / 200)
    spread = np.sqrt(np.maximum(1 - correlation**2, 1e-12))[:, None]
    return np.asarray(ndtr((correlation[:, None] * variates - far) / spread).mean(axis=1), dtype=np.float64)
