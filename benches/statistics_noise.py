"""What storage does to repeated measurements: the noise models of docs/reference/statistics.md.

Each draws `experiments` experiments of `rounds` rounds in which the two settings are identical, as they would run: a
sequence of 2 x rounds trials, the two of a round next to each other in an order tossed anew each round.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], tuple[Array, Array]]


def sequence(trials: Callable[[np.random.Generator, int, int], Array]) -> Draw:
    """Two settings on one machine: `trials(rng, experiments, count)` in run order, dealt to baseline and candidate."""

    def draw(rng: np.random.Generator, experiments: int, rounds: int) -> tuple[Array, Array]:
        values = trials(rng, experiments, 2 * rounds)
        first, second = values[:, 0::2], values[:, 1::2]
        baseline_first = rng.integers(0, 2, first.shape) == 0
        return np.where(baseline_first, first, second), np.where(baseline_first, second, first)

    return draw


def arms(baseline: Callable[[Array], Array], candidate: Callable[[Array], Array]) -> Draw:
    """Two settings with a noise of their own; each maps standard normal numbers to values."""

    def draw(rng: np.random.Generator, experiments: int, rounds: int) -> tuple[Array, Array]:
        shape = (experiments, rounds)
        return baseline(rng.standard_normal(shape)), candidate(rng.standard_normal(shape))

    return draw


def gaussian(spread: float) -> Callable[[Array], Array]:
    return lambda z: 100 * (1 + spread * z)


def lognormal(spread: float, *, equal_means: bool = False) -> Callable[[Array], Array]:
    return lambda z: 100 * np.exp(spread * z - (spread**2 / 2 if equal_means else 0))


def independent(value: Callable[[Array], Array]) -> Draw:
    return sequence(lambda rng, experiments, count: value(rng.standard_normal((experiments, count))))


def autoregressive(correlation: float, value: Callable[[Array], Array]) -> Draw:
    def trials(rng: np.random.Generator, experiments: int, count: int) -> Array:
        z = rng.standard_normal((experiments, count))
        for trial in range(1, count):
            z[:, trial] = correlation * z[:, trial - 1] + np.sqrt(1 - correlation**2) * z[:, trial]
        return value(z)

    return sequence(trials)


def drift(over_the_run: float, spread: float) -> Draw:
    return sequence(
        lambda rng, experiments, count: (
            np.linspace(1, 1 + over_the_run, count) * gaussian(spread)(rng.standard_normal((experiments, count)))
        )
    )


def step(half_way: float, spread: float, *, between_rounds: bool = True) -> Draw:
    """The level jumps half-way: between two rounds, or, of an odd number, between the two trials of the middle one."""

    def trials(rng: np.random.Generator, experiments: int, count: int) -> Array:
        trial = np.arange(count)
        place = trial // 2 * 2 if between_rounds else trial
        level = np.where(place >= count // 2, 1 + half_way, 1)
        return level * gaussian(spread)(rng.standard_normal((experiments, count)))

    return sequence(trials)


def outliers(share: float, factor: float, spread: float) -> Draw:
    def trials(rng: np.random.Generator, experiments: int, count: int) -> Array:
        values = gaussian(spread)(rng.standard_normal((experiments, count)))
        return np.where(rng.random(values.shape) < share, factor, 1.0) * values

    return sequence(trials)


def two_modes(gap: float, share: float, spread: float) -> Draw:
    """A trial is slower by `gap` with probability `share`, each for itself."""
    return outliers(share, 1 - gap, spread)


REQUIRED: dict[str, Draw] = {
    "white noise, 5 %": independent(gaussian(0.05)),
    "lognormal, 30 %": independent(lognormal(0.3)),
    "AR(1), 0.8, 5 %": autoregressive(0.8, lognormal(0.05)),
    "drift +30 %, noise 3 %": drift(0.3, 0.03),
    "step -30 % half-way, noise 3 %": step(-0.3, 0.03),
    "1 % outliers x 10, noise 3 %": outliers(0.01, 10, 0.03),
    "two modes 25 % apart, noise 3 %": two_modes(0.25, 0.5, 0.03),
    "arms of 2 % and 10 %": arms(gaussian(0.02), gaussian(0.1)),
}

INDEPENDENT = (
    "white noise, 5 %",
    "lognormal, 30 %",
    "1 % outliers x 10, noise 3 %",
    "two modes 25 % apart, noise 3 %",
    "arms of 2 % and 10 %",
)
"""Those that have no drift: rounds that are not interleaved can promise nothing under the others."""

HARSHER: dict[str, Draw] = {
    "white noise, 20 %": independent(gaussian(0.2)),
    "AR(1), 0.5, 5 %": autoregressive(0.5, gaussian(0.05)),
    "AR(1), 0.9, 10 %": autoregressive(0.9, gaussian(0.1)),
    "drift +50 %, noise 1 %": drift(0.5, 0.01),
    "drift +50 %, noise 2 %": drift(0.5, 0.02),
    "drift -50 %, noise 2 %": drift(-0.5, 0.02),
    "drift +20 %, noise 5 %": drift(0.2, 0.05),
    "step inside a round, noise 3 %": step(-0.3, 0.03, between_rounds=False),
    "1 % outliers / 10, noise 5 %": outliers(0.01, 0.1, 0.05),
    "two modes 20 % apart, noise 5 %": two_modes(0.2, 0.5, 0.05),
    "two modes 30 % apart, noise 1 %": two_modes(0.3, 0.5, 0.01),
    "slow mode in 10 %, noise 2 %": two_modes(0.25, 0.1, 0.02),
    "arms of 2 % and 20 %": arms(gaussian(0.02), gaussian(0.2)),
    "lognormal 2 % and 20 %, equal medians": arms(lognormal(0.02), lognormal(0.2)),
    "lognormal 2 % and 20 %, equal means": arms(lognormal(0.02), lognormal(0.2, equal_means=True)),
}
