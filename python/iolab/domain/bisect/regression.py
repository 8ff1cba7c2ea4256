"""The evidence of a regression on any subset of columns, sizes and noise integrated out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

WIDTHS_SD = (0.3, 1.0, 3.0, 10.0, 100.0)
"""Standard deviations of the normal priors of a change's size, in standard deviations of the noise; equally likely."""
SIZES_WIDTH_SD = 1e5
"""The prior of the sizes that levels are told with: as good as none, or a large size would leave residuals."""


@dataclass(frozen=True)
class Regression:
    """A regression on any subset of columns, level taken out and noise whitened: what decides it all.

    `gram`: shape (columns, columns); `against`: columns times the target, shape (columns,); `total`: the sum of
    squares of the target; `count`: measurements; `widths_sd`: of the prior of the sizes.
    """

    gram: Array
    against: Array
    total: float
    count: int
    widths_sd: tuple[float, ...] = WIDTHS_SD

    def log_evidence(self, subsets: NDArray[np.intp]) -> Array:
        """The log evidence of each subset, shape (subsets, columns of each) -> (subsets,), up to one constant."""
        import numpy as np

        gram = self.gram[subsets[:, :, None], subsets[:, None, :]]
        against = self.against[subsets]
        variance = np.asarray(self.widths_sd)[:, None, None, None] ** 2
        ridge = gram[None] + np.eye(subsets.shape[1]) / variance
        if subsets.shape[1] == 1:
            explained = against[None, :, 0] ** 2 / ridge[..., 0, 0]
            volume = np.log((ridge * variance)[..., 0, 0])
        else:
            explained = np.einsum("si,wsij,sj->ws", against, np.linalg.inv(ridge), against)
            volume = np.log(np.linalg.det(ridge * variance))
        left = np.maximum(self.total - explained, 1e-12 * self.total + 1e-300)
        per_width = -0.5 * volume - 0.5 * (self.count - 1) * np.log(left)
        highest = per_width.max(axis=0)
        return np.asarray(highest + np.log(np.exp(per_width - highest).mean(axis=0)), dtype=np.float64)

    def sizes(self, subsets: Sequence[tuple[int, ...]]) -> list[tuple[Array, Array]]:
        """Of each subset of columns the least-squares coefficients, shrunk a little, and their standard errors in units
        of the noise's standard deviation."""
        import numpy as np

        found: list[tuple[Array, Array]] = [(np.empty(0), np.empty(0))] * len(subsets)
        for length in {len(one) for one in subsets} - {0}:
            places = [place for place, one in enumerate(subsets) if len(one) == length]
            columns = np.asarray([subsets[place] for place in places])
            gram = self.gram[columns[:, :, None], columns[:, None, :]] + np.eye(length) / SIZES_WIDTH_SD**2
            inverse = np.linalg.inv(gram)
            sizes = (inverse @ self.against[columns][:, :, None])[:, :, 0]
            errors = np.sqrt(np.diagonal(inverse, axis1=1, axis2=2))
            for place, size, error in zip(places, sizes, errors, strict=True):
                found[place] = (size, error)
        return found
