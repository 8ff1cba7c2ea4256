"""`iolab attribute` on simulated trials: 20 keys of which two matter by one standard deviation of the noise.
[Attribution](../attribution.md) has the table, which this bench rewrites.
"""

from __future__ import annotations

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

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "attribution.md"
KEYS = 20
SEED = 23
"""Of the trials; no choice was made on them."""
ROUNDS_MAX = 8
ONE_AT_A_TIME = 1050
COMMAND = ["benches/run.py attribution_simulation"]
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
    if not quick:
        write({"attribution": table}, DOCUMENT)
    wrong = max(100 * float(np.mean([not one.right for one in tried])) for tried in found.values())
    trials = max(float(np.median([one.trials for one in tried])) for tried in found.values())
    return [
        bounded("wrong sets of keys, worst truth", "%", [wrong], limit=5, commands=COMMAND),
        bounded("trials, worst truth", "", [trials], limit=ONE_AT_A_TIME // 3, commands=COMMAND),
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
