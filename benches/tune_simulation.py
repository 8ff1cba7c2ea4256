"""`iolab tune` on planted truth: twelve tunables, three of which depend on another, 5 % noise, and a level that drifts.
The peers are Optuna's TPE with five repeats of each candidate, and the same search with Optuna's other samplers.
[Tuning](../tuning.md) has the tables, which this bench rewrites."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from iolab.domain.tune.answer import ConfirmedCandidate
from iolab.domain.tune.answer import answer as decide
from iolab.domain.tune.search import Arm, Block, Search
from iolab.domain.tune.space import Parameter, Point, Space
from iolab.domain.tune.tuning import Budget, Tuning
from iolab.domain.verdict.judgement import Judgement
from iolab.domain.verdict.looks import FIRST_LOOK
from iolab.domain.verdict.sequential import judge_sequential
from iolab.studies.tuner.proposer import SAMPLER, SAMPLERS, drawn, proposer
from numpy.typing import NDArray
from result import Result, bounded
from statistics_simulation import write

Array = NDArray[np.float64]

COUNTS_ONLY = True
"""Nothing is timed, so any build of the extension will do."""
DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "tuning.md"
NOISE = 0.05
DRIFT = 0.005
"""Standard deviation of the level's step from one trial to the next."""
TRIALS = 150
REPEATS = 5
PEER_TRIALS = 1000
LEAST_TRIALS = 18
"""The trials of a search that gets a third of the peer's: three rounds at least, and `TRIALS` at most."""
WITHIN = 0.03
FIRST_SEED = 193687
"""The first seed of searches that had no part in the choice of how the search works."""
CONFIRM = 12
MARGIN = 0.02


def _ordered(key: str, count: int, **when: int) -> Parameter:
    given = {one: frozenset({place}) for one, place in when.items()}
    return Parameter(key, tuple(range(count)), ordered=True, sizes=tuple(map(float, range(count))), when=given)


NONE, DEADLINE, KYBER, BFQ = range(4)
SPACE = Space(
    (
        Parameter("scheduler", ("none", "mq-deadline", "kyber", "bfq"), ordered=False),
        _ordered("slice_idle", 5, scheduler=BFQ),
        Parameter("low_latency", (0, 1), ordered=False, when={"scheduler": frozenset({BFQ})}),
        _ordered("read_expire", 6, scheduler=DEADLINE),
        _ordered("nr_requests", 6),
        Parameter("rq_affinity", (0, 1, 2), ordered=False),
        Parameter("nomerges", (0, 1, 2), ordered=False),
        _ordered("read_ahead_kb", 8),
        _ordered("wbt_lat_usec", 6),
        _ordered("dirty_ratio", 8),
        _ordered("dirty_background_ratio", 6),
        _ordered("max_sectors_kb", 5),
    )
)
DEFAULT = SPACE.point(
    {
        "scheduler": DEADLINE,
        "read_expire": 2,
        "nr_requests": 4,
        "rq_affinity": 1,
        "nomerges": 0,
        "read_ahead_kb": 2,
        "wbt_lat_usec": 4,
        "dirty_ratio": 2,
        "dirty_background_ratio": 2,
        "max_sectors_kb": 4,
    }
)
TUNING = Tuning("w", SPACE, ("rate_bytes_per_s",), {}, Budget(trials=TRIALS, confirm=CONFIRM), None)
KEYS = [one.key for one in SPACE.parameters]
SIZES = {one.key: len(one.values) for one in SPACE.parameters}


@dataclass(frozen=True)
class Landscape:
    """The logarithm of the truth: a table for each key, and for pairs of keys. A key out of force adds nothing."""

    single: dict[str, Array]
    pairs: dict[tuple[str, str], Array]
    most: float = np.inf
    """The limit of all candidates, for a landscape in which the default is the best."""

    def level(self, point: Point) -> float:
        found = sum(float(table[point[key]]) for key, table in self.single.items() if key in point)
        found += sum(float(t[point[a], point[b]]) for (a, b), t in self.pairs.items() if a in point and b in point)
        return min(found, self.most)

    def best(self) -> float:
        """The highest level of all points, each looked at: under each scheduler an array with an axis for each key."""
        levels = []
        for place in range(SIZES["scheduler"]):
            keys = [one.key for one in SPACE.parameters[1:] if one.in_force({"scheduler": place})]
            total = np.zeros((1,) * len(keys)) + float(self.single.get("scheduler", np.zeros(4))[place])
            for key, table in self.single.items():
                if key in keys:
                    total = total + _along(table, [keys.index(key)], len(keys))
            for (a, b), table in self.pairs.items():
                if a == "scheduler" and b in keys:
                    total = total + _along(table[place], [keys.index(b)], len(keys))
                elif a in keys and b in keys:
                    total = total + _along(table, [keys.index(a), keys.index(b)], len(keys))
            levels.append(float(total.max()))
        return min(max(levels), self.most)


def _along(table: Array, axes: Sequence[int], count: int) -> Array:
    """The table with its axes at these places among so many."""
    shape = [1] * count
    for axis, size in zip(axes, table.shape, strict=True):
        shape[axis] = size
    return np.transpose(table, np.argsort(axes)).reshape(shape)


def _hill(random: np.random.Generator, count: int, height: float) -> Array:
    """One best place of a range, less on both sides."""
    top = random.integers(count)
    return np.asarray(-height * ((np.arange(count) - top) / max(1, count - 1)) ** 2)


def _key(random: np.random.Generator, key: str, height: float) -> Array:
    one = next(one for one in SPACE.parameters if one.key == key)
    return _hill(random, SIZES[key], height) if one.ordered else -height * random.random(SIZES[key])


def few_keys(random: np.random.Generator) -> Landscape:
    """Three keys matter, each by up to 40 %."""
    chosen = random.choice([key for key in KEYS if not SPACE.parameters[KEYS.index(key)].when], 3, replace=False)
    return Landscape({key: _key(random, str(key), 0.4) for key in chosen}, {})


def all_keys(random: np.random.Generator) -> Landscape:
    """Every key matters by up to 15 %."""
    return Landscape({key: _key(random, key, 0.15) for key in KEYS}, {})


def in_pairs(random: np.random.Generator) -> Landscape:
    """Four keys matter, and the best value of one depends on another."""
    a, b, c, d = random.choice(["nr_requests", "read_ahead_kb", "wbt_lat_usec", "dirty_ratio"], 4, replace=False)
    pairs = {}
    for one, other in ((a, b), (c, d)):
        ours, theirs = np.linspace(0, 1, SIZES[one])[:, None], np.linspace(0, 1, SIZES[other])[None, :]
        way = random.choice([-1.0, 1.0])
        pairs[one, other] = -0.8 * (ours - 0.5 - way * (theirs - 0.5)) ** 2
    single = {key: _key(random, str(key), 0.25) for key in (a, c)}
    return Landscape(single, pairs)


def hidden(random: np.random.Generator) -> Landscape:
    """One scheduler is the best only with its own key set well; as shipped it is the worst."""
    scheduler = np.asarray([0.0, -0.03, -0.06, -0.2])
    idle = np.asarray([0.4, 0.2, 0.05, 0.0, 0.0])
    return Landscape(
        {"scheduler": scheduler, "slice_idle": idle, "read_ahead_kb": _key(random, "read_ahead_kb", 0.2)}, {}
    )


def far(random: np.random.Generator) -> Landscape:
    """Two keys matter by a factor of up to three, all others by up to 4 %: what is little of the gain is much."""
    large = random.choice(["nr_requests", "read_ahead_kb", "dirty_ratio", "max_sectors_kb"], 2, replace=False)
    return Landscape({key: _key(random, key, 1.1 if key in large else 0.04) for key in KEYS}, {})


def rugged(random: np.random.Generator) -> Landscape:
    """Four keys whose values have nothing to do with their neighbours, and pairs likewise."""
    a, b, c, d = random.choice([key for key in KEYS if not SPACE.parameters[KEYS.index(key)].when], 4, replace=False)
    single = {key: -0.3 * random.random(SIZES[str(key)]) for key in (a, b, c, d)}
    return Landscape(single, {(a, b): 0.1 * random.random((SIZES[str(a)], SIZES[str(b)]))} if a == "scheduler" else {})


def nothing(_random: np.random.Generator) -> Landscape:
    """No key matters."""
    return Landscape({}, {})


def default_best(random: np.random.Generator) -> Landscape:
    """Every key matters, and no candidate gets beyond the default."""
    found = all_keys(random)
    return Landscape(found.single, {}, most=found.level(DEFAULT))


LANDSCAPES: dict[str, Callable[[np.random.Generator], Landscape]] = {
    "three keys, up to 40 % each": few_keys,
    "all twelve, up to 15 % each": all_keys,
    "four keys, in pairs": in_pairs,
    "a scheduler that needs its key": hidden,
    "four keys, rugged": rugged,
    "two keys, a factor of three each": far,
}
NULLS: dict[str, Callable[[np.random.Generator], Landscape]] = {"nothing": nothing, "the default is best": default_best}


class Machine:
    """Trials of a landscape, with noise and a level that drifts from trial to trial."""

    def __init__(self, landscape: Landscape, seed: Sequence[int]) -> None:
        self.landscape = landscape
        self.random = np.random.default_rng(seed)
        self.level = 0.0
        self.trials = 0

    def measure(self, point: Point) -> float:
        """The logarithm of one trial's value."""
        self.trials += 1
        self.level += DRIFT * float(self.random.normal())
        return self.landscape.level(point) + self.level + NOISE * float(self.random.normal())

    def round(self, points: Sequence[Point]) -> list[float]:
        """Each point once, in random order."""
        found = [0.0] * len(points)
        for place in self.random.permutation(len(points)):
            found[place] = self.measure(points[place])
        return found


@dataclass(frozen=True)
class Tried:
    """`short_of`: how far the answer's truth is from the best, as a share; `winner_short_of`: that of what the search
    found, before keys were left out of it; `gain`: of the answer over the default; `kept`: what the smaller setting
    keeps of it; `claimed`: the verdict is faster."""

    short_of: float
    winner_short_of: float
    searched: int
    within_after: int | None
    trials: int
    claimed: bool
    gain: float
    kept: float | None
    keys: int


def ours(name: str, number: int, sampler: str = SAMPLER, trials: int = TRIALS) -> Tried:
    landscape = (LANDSCAPES | NULLS)[name](np.random.default_rng([number, 7]))
    machine = Machine(landscape, [number, 8])
    best, start = landscape.best(), landscape.level(DEFAULT)
    budget = Budget(trials=trials, confirm=CONFIRM)
    search = Search(SPACE, proposer(SPACE, 1, sampler), budget, seed=number)
    course: list[float] = []
    finalists: list[Point] = []
    judged: dict[int, Judgement] = {}
    while (block := search.next()) is not None:
        if block.stage == "confirm":
            finalists = list(block.points)
            judged = _confirmed(machine, block)
            search.measured(block, [])
            continue
        arms: list[Arm] = [(value,) for value in machine.round([DEFAULT, *(_on(point) for point in block.points)])]
        search.measured(block, arms)
        if block.stage == "search":
            found = search.winners()
            course += [1 - np.exp(landscape.level(_on(found[0]) if found else DEFAULT) - best)] * len(arms)
    levels = [landscape.level(_on(point)) for point in finalists]
    fresh = {
        name: ConfirmedCandidate(name, point, (judged[place],), {})
        for place, (name, point) in enumerate(zip(("winner", "smaller"), finalists, strict=False))
    }
    chosen = [fresh[name].point for name in decide(fresh, TUNING).chosen]
    answer = chosen[0] if chosen else None
    level = landscape.level(_on(answer)) if answer is not None else start
    within = next((at + 1 for at in range(len(course)) if max(course[at:]) <= WITHIN), None)
    kept = (levels[1] - start) / (levels[0] - start) if len(levels) > 1 and levels[0] > start else None
    return Tried(
        float(1 - np.exp(level - best)),
        float(1 - np.exp((levels[0] if levels else start) - best)),
        search.trials_used,
        within,
        machine.trials,
        bool(chosen),
        float(np.exp(level - start) - 1),
        kept,
        len(answer or {}),
    )


def _on(point: Point) -> Point:
    """The machine's settings under a point: the default if the point has none."""
    return SPACE.point({**DEFAULT, **point})


def _confirmed(machine: Machine, block: Block) -> dict[int, Judgement]:
    values: list[list[float]] = []
    for _ in range(block.rounds):
        values.append(machine.round([DEFAULT, *(_on(point) for point in block.points)]))
        if len(values) < FIRST_LOOK:
            continue
        table = np.exp(np.asarray(values))
        found = {
            place: judge_sequential(
                table[:, 0].tolist(),
                table[:, place + 1].tolist(),
                nature="rate",
                max_rounds=block.rounds,
                same_within=MARGIN,
                comparisons=len(block.points),
            )
            for place in range(len(block.points))
        }
        if all(judgement.verdict != "undecided" for judgement in found.values()):
            break
    return found


def peer(name: str, number: int) -> Tried:
    """Optuna's default sampler, each candidate's value the mean of five trials."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    landscape = LANDSCAPES[name](np.random.default_rng([number, 7]))
    machine = Machine(landscape, [number, 8])
    best = landscape.best()
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=number))
    study.enqueue_trial(dict(DEFAULT))
    course: list[float] = []
    incumbent, top = DEFAULT, -np.inf
    while machine.trials < PEER_TRIALS:
        trial = study.ask()
        places = drawn(trial, SPACE)
        value = float(np.mean([machine.measure(places) for _ in range(REPEATS)]))
        study.tell(trial, value)
        if value > top:
            top, incumbent = value, dict(places)
        course += [1 - np.exp(landscape.level(incumbent) - best)] * REPEATS
    within = next((at + 1 for at in range(len(course)) if max(course[at:]) <= WITHIN), None)
    gain = float(np.exp(landscape.level(incumbent) - landscape.level(DEFAULT)) - 1)
    return Tried(course[-1], course[-1], machine.trials, within, machine.trials, False, gain, None, 12)


def measure(quick: bool) -> list[Result]:
    count, nulls, of_samplers = (2, 4, 1) if quick else (40, 40, 3)
    with ProcessPoolExecutor(initializer=one_thread) as pool:
        seeds, fresh = range(FIRST_SEED, FIRST_SEED + count), range(FIRST_SEED, FIRST_SEED + nulls)
        found = {name: list(pool.map(ours, [name] * count, seeds)) for name in LANDSCAPES}
        peers = {name: list(pool.map(peer, [name] * count, seeds)) for name in LANDSCAPES}
        thirds = {
            name: min(TRIALS, max(LEAST_TRIALS, round(_median_trials(tried) / 3))) for name, tried in peers.items()
        }
        of_a_third = {
            name: found[name]
            if trials == TRIALS
            else list(pool.map(ours, [name] * count, seeds, [SAMPLER] * count, [trials] * count))
            for name, trials in thirds.items()
        }
        nothing_helps = {name: list(pool.map(ours, [name] * nulls, fresh)) for name in NULLS}
        samplers = {
            sampler: [
                one
                for name in LANDSCAPES
                for one in pool.map(ours, [name] * of_samplers, range(of_samplers), [sampler] * of_samplers)
            ]
            for sampler in SAMPLERS
        }
    if not quick:
        write(
            {
                "planted": _planted(found, peers),
                "thirds": _of_a_third(of_a_third, thirds),
                "samplers": _of_samplers(samplers),
                "nulls": _nulls(nothing_helps),
            },
            DOCUMENT,
        )
    winner = max(float(np.median([one.winner_short_of for one in tried])) for tried in found.values())
    smaller = max(float(np.median([one.short_of for one in tried])) for tried in found.values())
    shares = [_median_trials(found[name]) / _median_trials(peers[name]) for name in LANDSCAPES]
    third = max(float(np.median([one.winner_short_of for one in tried])) for tried in of_a_third.values())
    false = [float(np.mean([one.claimed and one.gain <= 0 for one in tried])) for tried in nothing_helps.values()]
    return [
        bounded("winner's shortfall from the exhaustive best, median, worst landscape", "%", [100 * winner], limit=3),
        bounded(
            "shortfall of the answer with fewer keys, median, worst landscape",
            "%",
            [100 * smaller],
            limit=3,
        ),
        bounded(
            "trials to come within 3 %, as a share of TPE's with 5 repeats, worst landscape",
            "%",
            [100 * max(shares)],
            limit=33.3,
        ),
        bounded(
            "winner's shortfall, a third of the trials that TPE needs, median, worst landscape",
            "%",
            [100 * third],
            limit=3,
        ),
        bounded("false winners if nothing helps, worst", "%", [100 * max(false)], limit=5),
    ]


def one_thread() -> None:
    """Limits each process of a pool to one thread: there are as many processes as CPUs."""
    import os

    os.environ["OPENBLAS_NUM_THREADS"] = "1"


def _median_trials(tried: Sequence[Tried]) -> float:
    """Until the best found is within 3 % of the best there is, and stays so; a search that never gets there counts as
    one more trial than it had."""
    return float(np.median([one.within_after or one.searched + 1 for one in tried]))


def _planted(found: dict[str, list[Tried]], peers: dict[str, list[Tried]]) -> list[list[str]]:
    table = [
        [
            "truth",
            "searches",
            "winner short of the best, median",
            "winner within 3 %",
            "answer with fewer keys, median",
            "trials until within 3 %",
            "TPE, 5 repeats",
            "share",
            "trials in all",
            "keys of the answer",
            "gain kept by fewer keys",
        ]
    ]
    for name, tried in found.items():
        ours_needed, peer_needed = _median_trials(tried), _median_trials(peers[name])
        kept = [one.kept for one in tried if one.kept is not None]
        never = np.mean([one.within_after is None for one in peers[name]]) > 0.5
        table.append(
            [
                name,
                str(len(tried)),
                f"{100 * np.median([one.winner_short_of for one in tried]):.1f}%",
                f"{np.mean([one.winner_short_of <= WITHIN for one in tried]):.0%}",
                f"{100 * np.median([one.short_of for one in tried]):.1f}%",
                f"{ours_needed:.0f}",
                f"over {PEER_TRIALS:,}" if never else f"{peer_needed:,.0f}",
                f"{ours_needed / peer_needed:.0%}",
                f"{np.median([one.trials for one in tried]):.0f}",
                f"{np.median([one.keys for one in tried]):.0f}",
                f"{100 * np.median(kept):.0f}%" if kept else "-",
            ]
        )
    return table


def _of_a_third(found: dict[str, list[Tried]], thirds: dict[str, int]) -> list[list[str]]:
    table = [["truth", "trials of the search", "winner short of the best, median", "winner within 3 %"]]
    for name, tried in found.items():
        short = [one.winner_short_of for one in tried]
        within = f"{np.mean(np.asarray(short) <= WITHIN):.0%}"
        table.append([name, str(thirds[name]), f"{100 * np.median(short):.1f}%", within])
    return table


def _of_samplers(found: dict[str, list[Tried]]) -> list[list[str]]:
    table = [["sampler", "searches", "short of the best, mean", "within 3 %", "trials until within 3 %, median"]]
    for name, tried in found.items():
        table.append(
            [
                name,
                str(len(tried)),
                f"{100 * np.mean([one.short_of for one in tried]):.1f}%",
                f"{np.mean([one.short_of <= WITHIN for one in tried]):.0%}",
                f"{_median_trials(tried):.0f}",
            ]
        )
    return table


def _nulls(found: dict[str, list[Tried]]) -> list[list[str]]:
    table = [["truth", "searches", "a winner was claimed", "a false winner was claimed", "trials in all, median"]]
    for name, tried in found.items():
        false = [one.claimed and one.gain <= 0 for one in tried]
        table.append(
            [
                name,
                str(len(tried)),
                f"{np.mean([one.claimed for one in tried]):.1%}",
                f"{np.mean(false):.1%}",
                f"{np.median([one.trials for one in tried]):.0f}",
            ]
        )
    return table
