"""`iolab bisect` on simulated histories of 1,024 commits: one change of 1 to 5 standard deviations under five kinds of
noise, no change, two changes, a change that is fixed and broken again, and a creep. The peers are git bisect with
repeats, git_bayesect, Pinpoint's rule, Otava and the information bound. [Bisection](../bisection.md) has the tables,
which this bench rewrites."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import bisect_peers
import numpy as np
from history_simulation import correlated, gaussian, heavy_tailed
from iolab.domain.bisect.search import Search
from numpy.typing import NDArray
from result import NotMeasured, Result, bounded
from statistics_simulation import write
from tune_simulation import one_thread

Array = NDArray[np.float64]

COUNTS_ONLY = True
"""Nothing is timed, so any build of the extension will do."""
DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "bisection.md"
VERSIONS = 1025
"""The good end and 1,024 commits."""
UNBUILDABLE = 0.1
CONFIDENCE = 0.95
SEED = 23
"""The seed of the histories; no choice was made on them."""
BUDGET = 1000
RUNS_MAX = 6000
"""So much noise is drawn for a search; a peer that needs more begins again with it."""
SAME_WITHIN = 0.25
"""What iolab is told to take for no change, as a share of the effect that is planted."""
STEP_SD = CREEP_SD = 5.0
"""The size of a step or a creep, in histories with several changes or a creep."""
FEW = 8
"""The same where one change is planted, to be compared with peers, which look for one alone."""
SPREADS = (24, 32)
"""Into how many parts the range is divided of which each is looked at (`--spread`); the default is 24."""
LOOKED_EVERYWHERE = max(SPREADS)
SEARCHES = {5.0: 40, 2.0: 20, 1.0: 4}
"""By effect in SD: small ones take hundreds of runs, each of which looks at all that were before."""


def drifting(random: np.random.Generator, count: int) -> Array:
    """White noise beside a random walk that reaches one standard deviation in a hundred runs."""
    return np.asarray(random.normal(size=count) + np.cumsum(random.normal(0, 0.1, size=count)))


def two_modes(random: np.random.Generator, count: int) -> Array:
    values = 2.0 * (random.random(count) < 0.5) + 0.3 * random.normal(size=count)
    return np.asarray((values - 1.0) / np.sqrt(1.09))


NOISES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "Gaussian": gaussian,
    "heavy-tailed (t, 3 degrees of freedom)": lambda random, count: heavy_tailed(random, count) / np.sqrt(3),
    "drifting (0.1 SD a run)": drifting,
    "autocorrelated (0.5)": correlated(0.5),
    "two modes, 1.9 SD apart": two_modes,
}
TRUTHS: dict[str, tuple[float, ...] | str] = {
    "nothing": (),
    "one change": (STEP_SD,),
    "two changes, up and up": (STEP_SD, STEP_SD),
    "two changes, up and down": (STEP_SD, -STEP_SD),
    "fixed, then broken again": (STEP_SD, -STEP_SD, STEP_SD),
    "a creep over 50 commits": "creep",
}


@dataclass(frozen=True)
class Tried:
    right: bool
    """The named commit is the planted one; if commits can't be built, the named range holds it."""
    named_wrongly: bool
    """A commit was named that brought no change."""
    decided: bool
    runs: int
    stated: float = 1.0
    """The probability of the answer, as it was stated."""


class History:
    """A planted history: levels of the versions in SD, which of them can be built, and noise in the order of runs."""

    def __init__(self, seed: Sequence[int], noise: str, steps: Sequence[float] | str, unbuildable: float) -> None:
        self.random = np.random.default_rng(seed)
        self.noise = NOISES[noise](self.random, RUNS_MAX)
        self.runs = 0
        self.levels = np.zeros(VERSIONS)
        self.changes: tuple[int, ...] = ()
        if isinstance(steps, str):
            first = int(self.random.integers(100, VERSIONS - 150))
            self.levels += np.clip((np.arange(VERSIONS) - first) / 50, 0, 1) * CREEP_SD
        else:
            # Far enough apart that each level is visible.
            places = np.sort(self.random.choice(np.arange(1, VERSIONS // 40), len(steps), replace=False)) * 40
            self.changes = tuple(int(one) + int(self.random.integers(-19, 20)) for one in places)
            for version, size in zip(self.changes, steps, strict=True):
                self.levels[version:] += size
        self.lost = set(np.flatnonzero(self.random.random(VERSIONS) < unbuildable).tolist()) - {0, VERSIONS - 1}

    def measure(self, version: int) -> float | None:
        """One run; a version that can't be built costs none."""
        if version in self.lost:
            return None
        self.runs += 1
        return float(self.levels[version] + self.noise[self.runs % RUNS_MAX])


def ours(history: History, effect: float, *, creeps: bool = False, spread: int | None = None) -> Tried:
    margin = SAME_WITHIN * effect
    search = Search(VERSIONS, confidence=CONFIDENCE, budget=BUDGET, spread=spread, margin=lambda _level: margin)
    while (version := search.next()) is not None:
        value = history.measure(version)
        if value is None:
            search.unmeasurable(version)
        else:
            search.measured(version, value)
    found = search.answer()
    named = found.changes if found.kind == "changes" else ()
    if creeps:
        right = found.kind == "creep"
    elif not history.changes:
        right = found.kind == "none"
    else:
        right = len(named) == len(history.changes) and all(
            one.first <= truth <= one.last for one, truth in zip(named, history.changes, strict=True)
        )
    wrongly = any(not any(one.first <= truth <= one.last for truth in history.changes) for one in named)
    return Tried(right, wrongly, found.stopped == "decided", history.runs, found.probability)


def peer(history: History, name: str, effect: float) -> Tried:
    """A peer's answer is right if it names the planted version, or only unbuildable versions lie between the two."""
    if name == "otava":
        alive = [version for version in range(VERSIONS) if version not in history.lost]
        series = [history.measure(version) for version in alive]
        named = tuple(alive[place] for place in bisect_peers.otava(np.asarray(series, dtype=np.float64)))
    elif name == "bayesect":
        ends = [np.mean([history.measure(end) or 0.0 for _ in range(3)]) for end in (0, VERSIONS - 1)]
        named = bisect_peers.bayesect(history.measure, VERSIONS, float(np.mean(ends)))
    elif name == "pinpoint":
        named = bisect_peers.pinpoint(history.measure, VERSIONS, effect)
    else:
        named = bisect_peers.git_bisect(history.measure, VERSIONS, int(name))
    right = len(named) == len(history.changes) and all(
        _only_lost_between(history, one, truth) for one, truth in zip(named, history.changes, strict=True)
    )
    return Tried(right, not right and bool(named), True, history.runs)


def _only_lost_between(history: History, named: int, truth: int) -> bool:
    low, high = sorted((named, truth))
    return all(version in history.lost for version in range(low, high))


def bits_per_run(effect: float) -> float:
    """What one run says at most of which of two levels, `effect` standard deviations apart, a version has: the mutual
    information of a fair bit and a Gaussian around one of two places (numerical integral, bits)."""
    y = np.linspace(-10 - effect, 10 + effect, 40_001)
    at = [np.exp(-0.5 * (y - place) ** 2) / np.sqrt(2 * np.pi) for place in (-effect / 2, effect / 2)]
    mixed = (at[0] + at[1]) / 2
    entropy = -np.trapezoid(mixed * np.log2(np.maximum(mixed, 1e-300)), y)
    return float(entropy - 0.5 * np.log2(2 * np.pi * np.e))


def bound(effect: float) -> float:
    """Runs that any search needs on average to name one of 1,024 commits with an error of 5 % (Fano's inequality), when
    both levels and the noise are known, and Gaussian."""
    error = 1 - CONFIDENCE
    doubt = -error * np.log2(error) - (1 - error) * np.log2(1 - error) + error * np.log2(VERSIONS - 2)
    return float((np.log2(VERSIONS - 1) - doubt) / bits_per_run(effect))


def _ours(job: tuple[str, tuple[float, ...] | str, float, int, int | None]) -> Tried:
    noise, steps, unbuildable, number, spread = job
    effect = CREEP_SD if isinstance(steps, str) else max(map(abs, steps), default=STEP_SD)
    history = History([number, SEED], noise, steps, unbuildable)
    return ours(history, effect, creeps=steps == "creep", spread=spread)


def _peer(job: tuple[str, float, str, int]) -> Tried:
    noise, effect, name, number = job
    return peer(History([number, SEED], noise, (effect,), UNBUILDABLE), name, effect)


def git_repeats(effect: float) -> int:
    """As many runs of each version as make git bisect err in 5 % of searches under Gaussian noise: ten comparisons,
    each of means that lie half the effect from where they would be taken for the other's."""
    from scipy.special import ndtri

    each = (1 - CONFIDENCE) / np.log2(VERSIONS - 1)
    # The threshold itself lies between two means of as many runs.
    return max(1, int(np.ceil(1.5 * (2 * ndtri(1 - each) / effect) ** 2)))


def measure(quick: bool) -> list[Result]:
    count, others = (2, 2) if quick else (20, 40)
    searches = {5.0: 2} if quick else SEARCHES
    with ProcessPoolExecutor(initializer=one_thread) as pool:
        # The peers first: if one is not installed, nothing is simulated in vain.
        peers: dict[tuple[str, float], list[Tried]] = {}
        for effect in searches:
            for name in (str(git_repeats(effect)), "bayesect", "pinpoint", "otava"):
                jobs = [("Gaussian", effect, name, n) for n in range(others)]
                try:
                    peers[name if not name.isdigit() else "git bisect", effect] = list(pool.map(_peer, jobs))
                except NotMeasured:
                    if quick:
                        continue
                    raise
        one = {
            (noise, effect): list(pool.map(_ours, [(noise, (effect,), UNBUILDABLE, n, FEW) for n in range(number)]))
            for noise in NOISES
            for effect, number in searches.items()
        }
        planted = {
            (name, spread): [
                *pool.map(
                    _ours,
                    [
                        (noise, steps, 0.0, n, spread)
                        for n in range(count // 2 or 1)
                        for noise in ("Gaussian", "heavy-tailed (t, 3 degrees of freedom)")
                    ],
                )
            ]
            for name, steps in TRUTHS.items()
            for spread in SPREADS
        }
    if not quick:
        write(_tables(one, planted, peers), DOCUMENT)
    return _results(one, planted, peers)


def _tables(
    one: dict[tuple[str, float], list[Tried]],
    planted: dict[tuple[str, int], list[Tried]],
    peers: dict[tuple[str, float], list[Tried]],
) -> dict[str, list[list[str]]]:
    searches = [
        ["noise", "effect, SD", "searches", "decided", "right of them", "stated, mean", "runs, median", "bound"]
    ]
    for (noise, effect), tried in one.items():
        decided = [each for each in tried if each.decided]
        searches.append(
            [
                *(noise, f"{effect:g}", str(len(tried)), f"{len(decided) / len(tried):.0%}", _right(decided)),
                *(_stated(decided), _runs(tried), f"{bound(effect):.0f}"),
            ]
        )
    truths = [["history", "`--spread`", "searches", "right", "a wrong commit named", "runs, median"]]
    for (name, spread), tried in planted.items():
        wrongly = f"{np.mean([each.named_wrongly for each in tried]):.0%}"
        truths.append([name, str(spread), str(len(tried)), _right(tried), wrongly, _runs(tried)])
    beside = [["effect, SD", "", "searches", "right", "runs, median"]]
    for effect in sorted({effect for _, effect in peers}):
        mine = one["Gaussian", effect]
        beside.append([f"{effect:g}", "iolab bisect", str(len(mine)), _right(mine), _runs(mine)])
        for (name, at), tried in peers.items():
            if at == effect:
                told = PEERS[name].format(repeats=git_repeats(effect))
                beside.append([f"{effect:g}", told, str(len(tried)), _right(tried), _runs(tried)])
    return {"searches": searches, "histories": truths, "peers": beside}


PEERS = {
    "git bisect": "git bisect, {repeats} runs of each",
    "bayesect": "git_bayesect 1.2",
    "pinpoint": "Pinpoint's rule",
    "otava": "Otava 0.8",
}


def _share(found: Sequence[bool]) -> float:
    return float(np.mean(found)) if found else 0.0


def _right(tried: Sequence[Tried]) -> str:
    return f"{np.mean([each.right for each in tried]):.0%}" if tried else "-"


def _stated(tried: Sequence[Tried]) -> str:
    return f"{np.mean([each.stated for each in tried]):.0%}" if tried else "-"


def _runs(tried: Sequence[Tried]) -> str:
    return f"{np.median([each.runs for each in tried]):,.0f}"


def _results(
    one: dict[tuple[str, float], list[Tried]],
    planted: dict[tuple[str, int], list[Tried]],
    peers: dict[tuple[str, float], list[Tried]],
) -> list[Result]:
    of_bound = [
        float(np.median([each.runs for each in tried])) / bound(effect)
        for (noise, effect), tried in one.items()
        if noise == "Gaussian"
    ]
    of_git = [
        float(np.median([each.runs for each in one["Gaussian", effect]]))
        / float(np.median([each.runs for each in tried]))
        for (name, effect), tried in peers.items()
        if name == "git bisect"
    ]
    wrong = [100 * _share([not each.right for each in tried if each.decided]) for tried in one.values()]
    nothing = 100 * float(np.mean([each.named_wrongly for each in planted["nothing", SPREADS[0]]]))
    missed = max(
        100 * float(np.mean([not each.right for each in tried]))
        for (name, spread), tried in planted.items()
        if name != "nothing" and spread == LOOKED_EVERYWHERE
    )
    figures = (
        ("wrong answers of those decided at 95 %, worst noise and effect", "%", max(wrong), 6),
        ("runs against the information bound, worst effect", "", max(of_bound), 2),
        ("runs against git bisect's, worst effect", "", max(of_git), round(1 / 3, 3)),
        ("histories without a change in which a commit is named", "%", nothing, 5),
        (f"several changes or a creep, --spread {LOOKED_EVERYWHERE}: not named as such, worst", "%", missed, 10),
    )
    return [bounded(name, unit, [found], limit=limit) for name, unit, found, limit in figures]
