"""A family of attacks: how many there are, and who makes one."""

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """What came of a case."""

    attacks: int = 1
    wrong: list[str] = field(default_factory=list)
    """A line for each thing that is not as it should be."""


Attack = Callable[[int], Outcome]
"""Makes the case of that number: what it does follows from the seed and the number alone."""


@dataclass(frozen=True)
class Lane:
    """One of those that attack side by side, each on ground of its own."""

    number: int
    directory: Path
    """On a disk, not in memory; removed afterwards."""
    seed: int

    @property
    def has_the_machine(self) -> bool:
        """What is nobody's own (kernel settings, control groups, tracing) is changed on one lane only."""
        return self.number == 0

    def random(self, family: str, case: int) -> random.Random:
        return random.Random(f"{self.seed} {family} {case}")


@dataclass(frozen=True)
class Family:
    name: str
    what: str
    attacks: int
    """The number of attacks in the whole kit."""
    attacks_quick: int
    lane: Callable[[Lane], AbstractContextManager[Attack]]
    needs_root: bool = False
    lanes: int = 2
    """At most so many side by side."""
