"""What measurements of one round have in common, taken out: rounds draw other seeds, and a seed moves every version by
about the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORTH_IT = 0.5
"""Rounds explain something if the remaining variance, per degree of freedom, is at most this share of what it was."""


def without_rounds(versions: Sequence[int], rounds: Sequence[int], values: Sequence[float]) -> list[float]:
    """The values as if all had been measured in an average round: of levels by version and effects by round, fitted
    together, the effects are subtracted. Unchanged, if too few versions have rounds in common."""
    import numpy as np

    if len(set(rounds)) < 2:
        return list(values)
    wanted = np.asarray(values, dtype=float)
    of_versions, of_rounds = _columns(versions), _columns(rounds)
    left, free = _residual(of_versions, wanted)
    design = np.hstack([of_versions, of_rounds])
    left_then, free_then = _residual(design, wanted)
    if free_then < 1 or left_then / free_then > WORTH_IT * left / free:
        return list(values)
    fitted = np.linalg.lstsq(design, wanted - wanted.mean(), rcond=None)[0]
    effects = of_rounds @ fitted[of_versions.shape[1] :]
    found: list[float] = (wanted - (effects - effects.mean())).tolist()
    return found


def _columns(names: Sequence[int]) -> NDArray[np.float64]:
    """A column for each name, 1 where it stands."""
    import numpy as np

    _, places = np.unique(names, return_inverse=True)
    return np.eye(int(places.max()) + 1)[places]


def _residual(design: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[float, int]:
    """The sum of squares that is left, and its degrees of freedom."""
    import numpy as np

    centred = values - values.mean()
    fitted, _, rank, _ = np.linalg.lstsq(design, centred, rcond=None)
    left = centred - design @ fitted
    return float(left @ left), len(values) - int(rank)
