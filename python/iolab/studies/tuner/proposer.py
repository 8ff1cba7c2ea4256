"""Optuna's samplers as the search's source of candidates: ask and tell (its words), with nothing kept between two
blocks.

Each time the sampler gets anew what is known, since that changes with every block: the estimates of all points.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from iolab.base.errors import MachineError

if TYPE_CHECKING:
    from iolab.domain.tune.search import Propose
    from iolab.domain.tune.space import Point, Space

SAMPLER = "tpe"
"""None of `SAMPLERS` is shown to be better by benches/tune_simulation.py; this one handles keys that depend on
others."""
SAMPLERS = ("tpe", "tpe-univariate", "nsga2", "qmc", "random")
STARTUP = 10
"""Points that are drawn blindly before the sampler looks at what is known."""
REFUSED_MAX = 200
"""So many draws that no requirement allows, and the rest of a block stays empty."""


def check_installed() -> None:
    """MachineError if Optuna is missing: what to install."""
    if importlib.util.find_spec("optuna") is None:
        raise MachineError("iolab tune needs Optuna, which is not installed", remedy="pip install 'iolab[tune]'")


def proposer(space: Space, objectives: int = 1, sampler: str = SAMPLER) -> Propose:
    """A source of new points of the space, best by what is known."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    distributions: dict[str, Any] = {
        one.key: optuna.distributions.IntDistribution(0, len(one.values) - 1)
        if one.ordered
        else optuna.distributions.CategoricalDistribution(list(range(len(one.values))))
        for one in space.parameters
    }

    def propose(known: Sequence[tuple[Point, Sequence[float]]], count: int, seed: int) -> list[Point]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of samplers that state what they can't do with keys out of force
            study = optuna.create_study(directions=["maximize"] * objectives, sampler=_sampler(sampler, seed))
            study.add_trials(
                [
                    optuna.trial.create_trial(
                        params=dict(point),
                        distributions={key: distributions[key] for key in point},
                        values=list(values),
                    )
                    for point, values in known
                ]
            )
            found: list[Point] = []
            for _ in range(REFUSED_MAX):
                if len(found) >= count:
                    break
                trial = study.ask()
                places = drawn(trial, space)
                if space.allows(places):
                    found.append(places)
                else:
                    study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return found

    return propose


def drawn(trial: Any, space: Space) -> Point:
    """What a trial of Optuna's suggests for each key that is in force, as places among the key's values."""
    places: dict[str, int] = {}
    for one in space.parameters:
        if one.in_force(places):
            last = len(one.values) - 1
            places[one.key] = (
                trial.suggest_int(one.key, 0, last)
                if one.ordered
                else trial.suggest_categorical(one.key, list(range(last + 1)))
            )
    return places


def _sampler(name: str, seed: int) -> Any:
    from optuna import samplers

    if name == "random":
        return samplers.RandomSampler(seed=seed)
    if name == "qmc":
        return samplers.QMCSampler(seed=seed, scramble=True)
    if name == "nsga2":
        return samplers.NSGAIISampler(seed=seed, population_size=20)
    together = name == "tpe"
    return samplers.TPESampler(seed=seed, multivariate=together, group=together, n_startup_trials=STARTUP)
