"""What searches need that are told what iolab has to find out: the figures that causes.toml cites.

benches/oracles.py bisect     runs until one commit of 1,024 is named, for a search that is given the noise and that
                              there is one change, but not the levels; and for iolab's own, on the searches of
                              `bisect_simulation`, if it is given less and less of this
benches/oracles.py history    steps that a test finds in 60 runs which is given what the noise may be
benches/oracles.py tune       shortfall from the best, for searches of `tune_simulation` that are given which keys
                              interact and how much values vary, from trials drawn evenly and without drift
"""

import contextlib
import sys
from collections.abc import Sequence
from unittest import mock

import numpy as np
import tune_simulation
from bisect_simulation import FEW, SEED, UNBUILDABLE, History, ours
from iolab.domain.bisect import posterior
from iolab.domain.tune.space import Point
from numpy.typing import NDArray

Array = NDArray[np.float64]

COMMITS, CONFIDENCE, RUNS_MAX = 1024, 0.95, 1000
SEARCHES, OF_IOLAB = 60, 20
RUNS, STEP_SD, MACHINE_AT, CORRELATION = 60, 1.5, 20, 0.5
HISTORIES, NULL_HISTORIES = 1000, 3000
LANDSCAPES = 100
LEVEL_SD = 0.05
"""How much a value of a key is expected to change the logarithm, of those that matter by up to 15 %."""
LEVEL_LENGTH = 0.35
"""Over which share of a range such a change varies."""
RUGGED_SD, RUGGED_LENGTH = 0.3 / np.sqrt(12), 1e-3
"""The same for values that are drawn evenly from a range of 0.3."""
PAIR_SD, PAIR_LENGTH = 0.15, 0.4
"""The same for a pair, and the distance over which it varies, as a share of the range."""


def runs_until_named(effect: float, seed: int) -> int:
    """Measures where the level is least certain (the information of a Gaussian channel) until one commit has 95 %.

    The levels have a flat prior, and their difference one whose size is the true effect.
    """
    random = np.random.default_rng([seed, 7])
    truth = int(random.integers(1, COMMITS + 1))
    sums, counts = np.zeros(COMMITS + 1), np.zeros(COMMITS + 1)

    def measure(version: int) -> None:
        sums[version] += effect * (version >= truth) + random.normal()
        counts[version] += 1

    measure(0)
    measure(COMMITS)
    for runs in range(2, RUNS_MAX):
        total, number = np.cumsum(sums)[:-1], np.cumsum(counts)[:-1]
        after, later = sums.sum() - total, counts.sum() - number
        before_mean, after_mean, variance = total / number, after / later, 1 / number + 1 / later
        evidence = (total**2 / number + after**2 / later - np.log(number * later)) / 2
        spread = effect**2 + variance
        evidence -= ((after_mean - before_mean) ** 2 / spread + np.log(spread)) / 2
        chances = np.exp(evidence - evidence.max())
        chances /= chances.sum()
        if runs > 4 and chances.max() >= CONFIDENCE:
            return runs
        measure(int(_variances(chances, before_mean, 1 / number, after_mean, 1 / later).argmax()))
    return RUNS_MAX


UNTOLD: dict[str, dict[str, object]] = {
    "the noise is white and Gaussian, and there is one change": {},
    "the noise is white and Gaussian, and there are no more than three changes": {"PRIOR_OF_COUNT": None},
    "there are no more than three changes": {"PRIOR_OF_COUNT": None, "DRIFTS": None, "weights_of": None},
    "nothing": {"PRIOR_OF_COUNT": None, "DRIFTS": None, "weights_of": None, "PRIOR_CREEP": None},
}
"""What is told, and what of iolab's posterior is as it ships then; the rest is what is told."""
TOLD = {
    "PRIOR_OF_COUNT": (1e-9, 1.0, 1e-9, 1e-9),
    "PRIOR_CREEP": 1e-9,
    "DRIFTS": ((0.0, 0.0),),
    "weights_of": lambda residuals: np.ones(len(residuals)),
}


def runs_of_iolab(effect: float, number: int, told: str, spread: int) -> int:
    """Under Gaussian noise. `spread`: of how many parts of the range a version has to be measured."""
    known = {name: what for name, what in TOLD.items() if name not in UNTOLD[told]}
    with contextlib.ExitStack() as stack:
        for name, what in known.items():
            stack.enter_context(mock.patch.object(posterior, name, what))
        history = History([number, SEED], "Gaussian", (effect,), UNBUILDABLE)
        return ours(history, effect, spread=spread).runs


def _variances(chances: Array, before: Array, before_variance: Array, after: Array, after_variance: Array) -> Array:
    """The variance of each version's level, shape (versions,), over where the change may be, shape (versions - 1,)."""

    def expected(of_before: Array, of_after: Array) -> Array:
        changed = np.concatenate([[0], np.cumsum(chances * of_after)])
        unchanged = np.concatenate([[0], np.cumsum(chances * of_before)])
        return np.asarray(changed + unchanged[-1] - unchanged)

    squares = expected(before**2 + before_variance, after**2 + after_variance)
    return np.asarray(squares - expected(before, after) ** 2)


class StepTest:
    """The likelihood ratio of a step, averaged over its places, beside steps that are known: the noise is the likeliest
    of those given, with the step and without. `limit`: exceeded in 5 % of histories without a step at most, whichever
    noise they have."""

    def __init__(self, correlations: tuple[float, ...], known: tuple[int, ...]) -> None:
        times = np.arange(RUNS)
        self.places = np.array([at for at in range(2, RUNS - 1) if all(abs(at - one) > 1 for one in known)])
        self.freedom = RUNS - 1 - len(known)
        self.noises = []
        random = np.random.default_rng(33)
        for correlation in correlations:
            covariance = correlation ** np.abs(times[:, None] - times[None, :]).astype(float)
            root = np.linalg.cholesky(covariance)
            fixed = np.linalg.solve(root, np.array([times >= at for at in (0, *known)], dtype=float).T)
            base, triangle = np.linalg.qr(fixed)
            steps = np.linalg.solve(root, np.array([times >= at for at in self.places], dtype=float).T)
            steps -= base @ (base.T @ steps)
            cost = float(np.log(np.diag(root)).sum() + np.log(np.abs(np.diag(triangle))).sum())
            self.noises.append((root, base, steps / np.sqrt((steps**2).sum(axis=0)), cost))
        nulls = [
            [self.ratio(root @ random.normal(size=RUNS))[0] for _ in range(NULL_HISTORIES)] for root, *_ in self.noises
        ]
        self.limit = max(float(np.quantile(one, 0.95)) for one in nulls)

    def ratio(self, values: Array) -> tuple[float, int]:
        """Its logarithm, and the likeliest place."""
        without, with_ = [], []
        for root, base, steps, cost in self.noises:
            rest = np.linalg.solve(root, values)
            rest -= base @ (base.T @ rest)
            left = float(rest @ rest)
            without.append(-cost - self.freedom / 2 * np.log(left))
            with_.append(-cost - self.freedom / 2 * np.log(left - (steps.T @ rest) ** 2))
        gains = np.max(with_, axis=0) - max(without)
        return float(np.log(np.mean(np.exp(gains)))), int(self.places[gains.argmax()])


def steps_found(correlations: tuple[float, ...], *, machine: bool) -> tuple[float, float]:
    """The shares of steps that are found, and found within five runs, of those of `history_simulation`."""
    test = StepTest(correlations, (MACHINE_AT,) if machine else ())
    found = []
    for seed in range(HISTORIES):
        random = np.random.default_rng([seed, 34])
        at = 2 * RUNS // 3 if machine else int(random.integers(RUNS // 4, RUNS - RUNS // 4 + 1))
        ratio, place = test.ratio(random.normal(size=RUNS) + STEP_SD * (np.arange(RUNS) >= at))
        found.append((ratio > test.limit, ratio > test.limit and abs(place - at) <= 5))
    seen, near = np.mean(found, axis=0)
    return float(seen), float(near)


def shortfall_without_pairs(trials: int, seed: int) -> float:
    """In percent, with twelve keys of up to 15 % each: told that no keys interact, and over what distance they vary."""
    random = np.random.default_rng([seed, 99])
    landscape = tune_simulation.all_keys(random)
    return _shortfall_of_additive(landscape, tune_simulation.KEYS, LEVEL_SD, LEVEL_LENGTH, trials, random)


def shortfall_of_rugged(trials: int, seed: int) -> float:
    """In percent, with four keys whose values have nothing to do with their neighbours: told which keys, and this."""
    random = np.random.default_rng([seed, 97])
    landscape = tune_simulation.rugged(random)
    return _shortfall_of_additive(landscape, list(landscape.single), RUGGED_SD, RUGGED_LENGTH, trials, random)


def _shortfall_of_additive(
    landscape: tune_simulation.Landscape,
    keys: Sequence[str],
    level_sd: float,
    length: float,
    trials: int,
    random: np.random.Generator,
) -> float:
    parameters = tune_simulation.SPACE.parameters
    columns = [(one.key, value) for one in parameters if one.key in keys for value in range(len(one.values))]
    points = [_drawn(random) for _ in range(trials)]
    rows = np.array([[float(point.get(key) == value) for key, value in columns] for point in points])
    near = np.zeros((len(columns), len(columns)))
    for at, (key, value) in enumerate(columns):
        one = next(one for one in parameters if one.key == key)
        for other, (key_, value_) in enumerate(columns):
            if key == key_:
                apart = (value - value_) / max(1, len(one.values) - 1) / length
                near[at, other] = np.exp(-0.5 * apart**2) if one.ordered else float(value == value_)
    values = np.array([landscape.level(point) + tune_simulation.NOISE * random.normal() for point in points])
    covariance = level_sd**2 * rows @ near @ rows.T + tune_simulation.NOISE**2 * np.eye(trials) + 1
    weights = level_sd**2 * near @ rows.T @ np.linalg.solve(covariance, values - values.mean())
    effects = dict(zip(columns, weights.tolist(), strict=True))
    found: list[tuple[float, Point]] = []
    for scheduler in range(tune_simulation.SIZES["scheduler"]):
        point = {"scheduler": scheduler}
        for one in parameters[1:]:
            if one.in_force(point):
                values_of_key = range(len(one.values))
                point[one.key] = int(np.argmax([effects.get((one.key, value), 0.0) for value in values_of_key]))
        found.append((sum(effects.get(one, 0.0) for one in point.items()), point))
    return _shortfall(landscape, max(found, key=lambda one: one[0])[1])


def shortfall_given_pairs(trials: int, seed: int) -> float:
    """In percent, with four keys in two pairs: told which, and over what distance they vary."""
    random = np.random.default_rng([seed, 98])
    landscape = tune_simulation.in_pairs(random)
    keys = [key for pair in landscape.pairs for key in pair]
    sizes = [tune_simulation.SIZES[key] for key in keys]
    places = np.array([[random.integers(size) for size in sizes] for _ in range(trials)])
    levels = [landscape.level(dict(zip(keys, place, strict=True))) for place in places.tolist()]
    values = np.array(levels) + tune_simulation.NOISE * random.normal(size=trials)

    def alike(a: Array, b: Array, pair: slice) -> Array:
        apart = (a[:, None, pair] - b[None, :, pair]) / (np.array(sizes[pair]) - 1) / PAIR_LENGTH
        return np.asarray(PAIR_SD**2 * np.exp(-0.5 * (apart**2).sum(axis=2)))

    pairs = (slice(0, 2), slice(2, 4))
    covariance = sum(alike(places, places, pair) for pair in pairs) + tune_simulation.NOISE**2 * np.eye(trials) + 1
    weights = np.linalg.solve(covariance, values - values.mean())
    best: dict[str, int] = {}
    for pair in pairs:
        grid = np.zeros((sizes[pair.start] * sizes[pair.start + 1], 4))
        grid[:, pair] = np.array([(a, b) for a in range(sizes[pair.start]) for b in range(sizes[pair.start + 1])])
        chosen = grid[int((alike(grid, places, pair) @ weights).argmax())]
        best |= {key: int(value) for key, value in zip(keys[pair], chosen[pair], strict=True)}
    return _shortfall(landscape, best)


def _drawn(random: np.random.Generator) -> dict[str, int]:
    point: dict[str, int] = {}
    for one in tune_simulation.SPACE.parameters:
        if one.in_force(point):
            point[one.key] = int(random.integers(len(one.values)))
    return point


def _shortfall(landscape: tune_simulation.Landscape, point: Point) -> float:
    return 100 * float(1 - np.exp(landscape.level(point) - landscape.best()))


def main() -> None:
    if sys.argv[1:] == ["bisect"]:
        for effect in (1.0, 2.0, 5.0):
            runs = [runs_until_named(effect, seed) for seed in range(SEARCHES)]
            print(f"{effect:g} SD: {np.median(runs):.0f} runs in the median of {SEARCHES} searches", flush=True)
        for told in UNTOLD:
            for spread in (0, FEW):
                runs = [runs_of_iolab(2.0, number, told, spread) for number in range(OF_IOLAB)]
                print(f"2 SD: iolab, told that {told}, {spread} parts: {np.median(runs):.0f} runs", flush=True)
    elif sys.argv[1:] == ["history"]:
        for told, correlations in (("white", (0.0,)), (f"white or {CORRELATION:g} correlated", (0.0, CORRELATION))):
            for after, machine in (("", False), (", after a known step", True)):
                seen, near = steps_found(correlations, machine=machine)
                print(f"told that noise is {told}{after}: {seen:.1%} found, {near:.1%} within five runs")
    elif sys.argv[1:] == ["tune"]:
        for name, search, trials in (
            ("all twelve, up to 15 % each", shortfall_without_pairs, (125, 150)),
            ("four keys, in pairs", shortfall_given_pairs, (30, 68)),
            ("four keys, rugged", shortfall_of_rugged, (40, 60, 82)),
        ):
            for count in trials:
                short = np.median([search(count, seed) for seed in range(LANDSCAPES)])
                print(f"{name}: {short:.1f} % short in the median after {count} trials")
    else:
        sys.exit((__doc__ or "").strip())


if __name__ == "__main__":
    main()
