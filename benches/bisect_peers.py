"""Other tools' searches of a history, for `bisect_simulation`. Each takes a function that measures a version, and names
versions.

A measurement is a number, or None if the version can't be built. `git bisect` and Pinpoint are written from their
published rules (git-bisect(1); the comparison of Chromium's dashboard); git_bayesect and Otava are installed.
"""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from result import NotMeasured
from scipy import stats

Array = NDArray[np.float64]
Measure = Callable[[int], float | None]
Named = tuple[int, ...]
"""The versions that are said to have brought a change; empty for none."""

HOW_TO_INSTALL = "pip install --no-deps apache-otava==0.8.0 git-bayesect==1.2"
PINPOINT_ATTEMPTS = (10, 20, 40, 80, 160)
PINPOINT_ALPHA = 0.01
PINPOINT_BUILDS = 60
BAYESECT_RUNS_MAX = 3000


def git_bisect(measure: Measure, versions: int, repeats: int) -> Named:
    """Halves the range: a version is bad if the mean of this many runs is nearer to the bad end's mean than to the good
    end's."""

    def mean(version: int) -> float | None:
        first = measure(version)
        return None if first is None else float(np.mean([first, *(measure(version) for _ in range(repeats - 1))]))

    good, bad = mean(0), mean(versions - 1)
    assert good is not None and bad is not None
    low, high = 0, versions - 1
    skipped: set[int] = set()
    while candidates := [version for version in range(low + 1, high) if version not in skipped]:
        version = min(candidates, key=lambda one: abs(one - (low + high) // 2))
        found = mean(version)
        if found is None:
            skipped.add(version)
        elif abs(found - bad) < abs(found - good):
            high = version
        else:
            low = version
    return (high,)


def bayesect(measure: Measure, versions: int, threshold: float) -> Named:
    """git_bayesect's Bisector on whether a value is above the threshold; it counts from the newest version."""
    try:
        from git_bayesect import Bisector  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise NotMeasured(HOW_TO_INSTALL) from None
    search = Bisector(np.ones(versions))
    for _ in range(BAYESECT_RUNS_MAX):
        if search.distribution.max() >= 0.95:
            break
        place = search.select()
        value = measure(versions - 1 - place)
        search.record(place, None if value is None else value > threshold)
    return (versions - 1 - int(np.argmax(search.distribution)),)


def otava(series: Array) -> Named:
    """Change points of a finished series: one run of each version that can be built."""
    try:
        from otava.analysis import compute_change_points  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise NotMeasured(HOW_TO_INSTALL) from None
    found, _ = compute_change_points(series.tolist(), window_len=50, max_pvalue=0.001)
    return tuple(one.index for one in found)


def pinpoint(measure: Measure, versions: int, effect_sd: float) -> Named:
    """Compares neighbours among the built versions; if they differ, builds the middle; if that is undecided, doubles
    the runs of both. `effect_sd`: the size of change that it is asked for, from which its upper threshold follows."""
    values: dict[int, list[float]] = {}
    unbuildable: set[int] = set()

    def run(version: int, attempts: int) -> bool:
        mine = values.setdefault(version, [])
        while len(mine) < attempts:
            value = measure(version)
            if value is None:
                unbuildable.add(version)
                del values[version]
                return False
            mine.append(value)
        return True

    run(0, PINPOINT_ATTEMPTS[0]), run(versions - 1, PINPOINT_ATTEMPTS[0])
    named: list[int] = []
    open_pairs = [(0, versions - 1)]
    while open_pairs:
        low, high = open_pairs.pop()
        if not _differ(values, low, high, run, effect_sd):
            continue
        middle = next((one for one in _from_the_middle(low, high) if one not in unbuildable), None)
        while middle is not None and len(values) < PINPOINT_BUILDS and not run(middle, PINPOINT_ATTEMPTS[0]):
            middle = next((one for one in _from_the_middle(low, high) if one not in unbuildable), None)
        if middle is None or middle not in values:
            named.append(high)
        else:
            open_pairs += [(low, middle), (middle, high)]
    return tuple(sorted(named))


def _differ(
    values: dict[int, list[float]], low: int, high: int, run: Callable[[int, int], bool], effect_sd: float
) -> bool:
    for attempts in PINPOINT_ATTEMPTS:
        attempts = max(attempts, min(len(values[low]), len(values[high])))
        run(low, attempts), run(high, attempts)
        p = _p(np.asarray(values[low]), np.asarray(values[high]))
        if p < PINPOINT_ALPHA:
            return True
        if p > _upper_threshold(attempts, effect_sd):
            return False
    return False


def _from_the_middle(low: int, high: int) -> list[int]:
    return sorted(range(low + 1, high), key=lambda one: abs(one - (low + high) // 2))


def _p(a: Array, b: Array) -> float:
    return float(min(stats.mannwhitneyu(a, b).pvalue, stats.ks_2samp(a, b).pvalue))


@functools.cache
def _upper_threshold(attempts: int, effect_sd: float) -> float:
    """Above this p-value two samples count as alike: 1 % of samples that differ by the effect exceed it."""
    random = np.random.default_rng(attempts)
    drawn = [_p(random.normal(size=attempts), random.normal(effect_sd, size=attempts)) for _ in range(200)]
    return max(PINPOINT_ALPHA, float(np.quantile(drawn, 0.99)))
