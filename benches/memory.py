"""Peak memory (resident set) of a process that does 1 million and 200 million I/Os on the null
engine. It must not grow with the number of I/Os.
"""

from pathlib import Path

import ours
from result import Result, at_most, paired

FEW, MANY = 1_000_000, 200_000_000
GROWTH = 1.05


def measure(quick: bool) -> list[Result]:
    many, rounds = (5_000_000, 1) if quick else (MANY, 3)
    base = {"engine": "null", "pattern": "random", "queue_depth": 32}
    few, much = ({**base, "operations": count} for count in (FEW, many))
    small, large = [], []
    for _ in range(rounds):
        small.append(peak_bytes(few))
        large.append(peak_bytes(much))
    name, peer = f"peak memory, {many // 1_000_000} million I/Os", f"the same with {FEW // 1_000_000} million"
    commands = [ours.describe(few), ours.describe(much)]
    return [paired(name, "bytes", large, small, peer, target=at_most(GROWTH), commands=commands)]


def peak_bytes(options: dict[str, object]) -> float:
    return ours.peak_memory_bytes(ours.phase(Path("null"), 1 << 40, options))
