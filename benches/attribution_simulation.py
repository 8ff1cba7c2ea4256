"""`iolab attribute` on simulated trials: 20 keys, two of which have an effect of one standard deviation of the noise. A
second part is about machines whose values are a function of setting and seed alone, as simulated ones are: how often
intervals hold the mean over all seeds, if the trials of a round share their seed and if each trial has its own.
[Attribution](../attribution.md) has the tables, which this bench rewrites."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from iolab.domain.attribute.design import mixtures
from iolab.domain.attribute.judgement import attribute
from numpy.typing import NDArray
from result import Result, bounded
from statistics_simulation import write

Array = NDArray[np.float64]

COUNTS_ONLY = True
"""Nothing is timed, so any build of the extension will do."""
DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "attribution.md"
KEYS = 20
SEED = 23
"""The seed of the trials; no choice was made on them."""
ROUNDS_MAX = 8
ONE_AT_A_TIME = 1050
SEEDED_KEYS = (3, 20)
SEEDED_EFFECTS = (5.0, 2.5)
"""The effects of the first two keys, in standard deviations of what the seed adds to the level."""
EFFECT_SD = 1.0
"""The standard deviation of what a seed adds to an effect, in the same unit."""
TRUTHS: dict[str, Callable[[Array, Array], Array]] = {
    "two keys, 1 SD each": lambda a, b: a + b,
    "two keys, 1 SD each, and 1 SD more together": lambda a, b: a + b + a * b,
    "1 SD, only together": lambda a, b: a * b,
    "no key": lambda a, b: 0 * a,
}


@dataclass(frozen=True)
class Tried:
    right: bool
    decided: bool
    trials: int


def measure(quick: bool) -> list[Result]:
    count = 3 if quick else 100
    found = {name: [_tried(name, number) for number in range(count)] for name in TRUTHS}
    table = [["truth", "searches", "right", "stopped at 95 %", "trials, median", "trials, one at a time"]]
    for name, tried in found.items():
        right, decided = (f"{np.mean([getattr(one, part) for one in tried]):.0%}" for part in ("right", "decided"))
        needed = f"{np.median([one.trials for one in tried]):.0f}"
        table.append([name, str(count), right, decided, needed, f"{ONE_AT_A_TIME:,}"])
    held = {
        (keys, own): [_held(keys, number, own=own) for number in range(count)]
        for keys in SEEDED_KEYS
        for own in (False, True)
    }
    seeds = [["keys", "seed", "intervals", "that hold the truth", "trials, median"]]
    for (keys, own), each in held.items():
        inside = [one for held_, _ in each for one in held_]
        needed = f"{np.median([trials for _, trials in each]):.0f}"
        whose = "each trial's own" if own else "a round's"
        seeds.append([str(keys), whose, str(len(inside)), f"{np.mean(inside):.0%}", needed])
    if not quick:
        write({"attribution": table, "seeds": seeds}, DOCUMENT)
    missed = max(
        100 * (1 - float(np.mean([one for held_, _ in held[keys, True] for one in held_]))) for keys in SEEDED_KEYS
    )
    wrong = max(100 * float(np.mean([not one.right for one in tried])) for tried in found.values())
    trials = max(float(np.median([one.trials for one in tried])) for tried in found.values())
    return [
        bounded("wrong sets of keys, worst truth", "%", [wrong], limit=5),
        bounded(
            "95 % intervals of seeded trials that miss the truth, worst",
            "%",
            [missed],
            limit=100 if quick else 10,
        ),
        bounded("trials, worst truth", "", [trials], limit=ONE_AT_A_TIME // 3),
    ]


def _tried(name: str, number: int) -> Tried:
    random = np.random.default_rng([number, SEED])
    rows = mixtures(KEYS)
    at_bad = np.asarray(rows, dtype=np.float64)
    first, second = sorted(random.choice(KEYS, 2, replace=False).tolist())
    levels = TRUTHS[name](at_bad[:, first], at_bad[:, second])
    sides: list[tuple[bool, ...]] = []
    values: list[float] = []
    blocks: list[int] = []
    for round_ in range(ROUNDS_MAX):
        noise = random.normal(size=len(rows)) if number % 2 else random.standard_t(3, size=len(rows)) / np.sqrt(3)
        sides += rows
        values += (levels + noise + random.normal()).tolist()
        blocks += [round_] * len(rows)
        found = attribute(sides, values, blocks)
        if found.probability >= 0.95:
            break
    truth = () if name == "no key" else (first, second)
    return Tried(found.keys == truth, found.probability >= 0.95, len(values))


def _held(keys: int, number: int, *, own: bool) -> tuple[list[bool], int]:
    """Whether the interval of each named effect holds the mean over all seeds; and the number of trials. A trial's
    value is a function of its sides and its seed."""
    rows = mixtures(keys)
    at_bad = np.asarray(rows, dtype=np.float64)
    effects = np.zeros(keys)
    effects[:2] = SEEDED_EFFECTS
    sides: list[tuple[bool, ...]] = []
    values: list[float] = []
    blocks: list[int] = []
    for round_ in range(ROUNDS_MAX):
        for place, row in enumerate(at_bad):
            seed = [number, SEED, round_, *([place] if own else [])]
            random = np.random.default_rng(seed)
            values.append(
                float(random.normal() + row @ (effects + EFFECT_SD * random.normal(size=keys) * (effects != 0)))
            )
        sides += rows
        blocks += [round_] * len(rows)
        found = attribute(sides, values, blocks)
        if found.probability >= 0.95:
            break
    truth = [0.0 if len(one.keys) > 1 else float(effects[one.keys[0]]) for one in found.effects]
    return [one.low <= size <= one.high for one, size in zip(found.effects, truth, strict=True)], len(values)
