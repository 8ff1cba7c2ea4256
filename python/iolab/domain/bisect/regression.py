"""The evidence of a regression on any subset of columns, sizes and noise integrated out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

WIDTHS_SD = (0.3, 1.0, 3.0, 10.0, 100.0)
"""Standard deviations of the normal priors of a change's size, in standard deviations of the noise; equally likely."""
SIZES_WIDTH_SD = 1e5
"""The prior of the sizes of levels: as good as none, or a large size would leave residuals."""


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

        count = subsets.shape[1]
        variance = np.asarray(self.widths_sd)[:, None] ** 2
        # Gaussian elimination of all subsets at once; a matrix is a list of arrays, shape (widths, subsets) each.
        rows = [
            [self.gram[subsets[:, i], subsets[:, j]] + (1 / variance) * (i == j) for j in range(count)]
            for i in range(count)
        ]
        right = [self.against[subsets[:, i]] for i in range(count)]
        explained = np.zeros((len(self.widths_sd), len(subsets)))
        volume = np.full(explained.shape, count * np.log(variance))
        for i in range(count):
            pivot = rows[i][i]
            volume += np.log(pivot)
            explained += right[i] ** 2 / pivot
            for j in range(i + 1, count):
                factor = rows[j][i] / pivot
                right[j] = right[j] - factor * right[i]
                for column in range(i + 1, count):
                    rows[j][column] = rows[j][column] - factor * rows[i][column]
        left = np.maximum(self.total - explained, 1e-12 * self.total + 1e-300)
        per_width = -0.5 * volume - 0.5 * (self.count - 1) * np.log(left)
        highest = per_width.max(axis=0)
        return np.asarray(highest + np.log(np.exp(per_width - highest).mean(axis=0)), dtype=np.float64)

    def sizes(self, subsets: NDArray[np.intp]) -> tuple[Array, Array]:
        """The least-squares coefficients of each subset, shrunk a little, and their standard errors in units of the
        noise's standard deviation; shape (subsets, columns of each) all."""
        import numpy as np

        count = subsets.shape[1]
        gram = self.gram[subsets[:, :, None], subsets[:, None, :]] + np.eye(count) / SIZES_WIDTH_SD**2
        inverse = np.linalg.inv(gram)
        sizes = (inverse @ self.against[subsets][:, :, None])[:, :, 0]
        return sizes, np.sqrt(np.diagonal(inverse, axis1=1, axis2=2))
