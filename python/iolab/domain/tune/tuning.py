"""What an experiment's [tune] asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iolab.domain.tune.space import Space


@dataclass(frozen=True)
class Budget:
    """When the search ends: after so many trials, the default's included, or so much time. `per_block`: candidates of a
    block; `key_rounds`: of mixtures at most; `confirm`: fresh rounds at most."""

    trials: int
    time_s: float | None = None
    per_block: int = 5
    key_rounds: int = 2
    confirm: int = 12


@dataclass(frozen=True)
class Tuning:
    """The question of a search for the best setting. `objectives`: keys of metrics; `limits`: by key of a metric how
    much worse than the default it may get, as a share; `first`: a simulated machine to search on before, or None."""

    workload: str
    space: Space
    objectives: tuple[str, ...]
    limits: Mapping[str, float]
    budget: Budget
    first: str | None

    @property
    def metrics(self) -> list[str]:
        """What every trial is asked for: objectives, then limits."""
        return [*self.objectives, *(key for key in self.limits if key not in self.objectives)]
