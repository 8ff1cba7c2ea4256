"""`iolab history` on simulated histories: 365 nights of 50 metrics without a change, under five kinds of noise; a step
of 2 % at a noise of 1 %; 60 runs of one metric without a change, or with a change of the machine alone; and steps of
several sizes in few runs and in many. [Histories](../history.md) has the tables, which this bench rewrites."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from iolab.domain.history.changes import changes_in
from numpy.typing import NDArray
from result import Result, bounded
from statistics_simulation import write

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]

COUNTS_ONLY = True
"""Nothing is timed, so any build of the extension will do."""
DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "history.md"
NIGHTS, METRICS = 365, 50
STEP_AT = 300
STEP_SD = 2.0
GIVEN_UP_AFTER = 30
SHORT, MACHINE_AT, MACHINE_SD = 60, 20, 5.0
RUNS = (20, 30, 60, 120)
SIZES_SD = (1.0, 1.5, 2.0, 3.0)
SEED = 337118
"""Drawn when the test was final, which other seeds had served to choose."""
NEAR = 5
"""Runs from a step at which it counts as found."""


def measure(quick: bool) -> list[Result]:
    histories, steps = (1, 3) if quick else (4, 24)
    alarms = {name: _alarms(draw, histories, seed) for seed, (name, draw) in enumerate(NOISES.items())}
    seen = {count: _nights(count, 1, steps) for count in (1, METRICS)}
    nightly = _nights(METRICS, NIGHTS, steps)
    short = {name: _short(draw, 6 if quick else 200, seed) for seed, (name, draw) in enumerate(NOISES.items())}
    power = {runs: [_found(runs, size, 6 if quick else 200) for size in SIZES_SD] for runs in RUNS}
    after_machine = [_found(SHORT, size, 6 if quick else 200, machine=True) for size in SIZES_SD]
    tables = {
        "short": [
            ["noise", "histories", "alarm", "that is no drift", "beside a machine change", "that is no drift"],
            *([name, *one.row()] for name, one in short.items()),
        ],
        "power": [
            ["runs", *(f"{size:g} SD" for size in SIZES_SD)],
            *([str(runs), *(_share(one) for one in found)] for runs, found in power.items()),
            [f"{SHORT}, after a change of the machine", *(_share(one) for one in after_machine)],
        ],
        "no change": [
            ["noise", "histories", "histories with an alarm", "series with an alarm"],
            *(
                [name, str(histories), f"{np.mean([count > 0 for count in found]):.1%}", str(sum(found))]
                for name, found in alarms.items()
            ),
        ],
        "step": [
            ["series", "looks", "median of nights until it is seen", "seen within 5 nights"],
            *([str(count), "1", *_told(nights)] for count, nights in seen.items()),
            [str(METRICS), str(NIGHTS), *_told(nightly)],
        ],
    }
    if not quick:
        write(tables, DOCUMENT)
    worst = max(100 * float(np.mean([count > 0 for count in found])) for found in alarms.values())
    slack = 300 * float(np.sqrt(0.05 * 0.95 / histories))
    plain, large = power[SHORT][SIZES_SD.index(1.5)], power[SHORT][SIZES_SD.index(3.0)]
    plain_after, large_after = after_machine[SIZES_SD.index(1.5)], after_machine[SIZES_SD.index(3.0)]
    wrong = [100 * max(short[name].plain, short[name].machine) / short[name].histories for name in TOLD_APART]
    sure = [100 * max(one.plain_sure, one.machine_sure) / one.histories for one in short.values()]
    return [
        *(
            bounded(
                name,
                "%",
                [100 - 100 * found[0] / found[1]],
                limit=allowed + _chance(found, allowed / 100),
            )
            for name, found, allowed in (
                ("steps of 1.5 SD missed in 60 runs", plain, 10),
                ("steps of 3 SD missed in 60 runs", large, 1),
                ("steps of 1.5 SD missed in 60 runs, after a change of the machine", plain_after, 10),
                ("steps of 3 SD missed in 60 runs, after a change of the machine", large_after, 1),
            )
        ),
        bounded(
            "60 runs with a false alarm, worst noise that 60 runs tell from a step",
            "%",
            [max(wrong)],
            limit=round(5 + _chance(plain, 0.05), 1),
        ),
        bounded(
            "60 runs with a false alarm that is stated to be no drift, worst noise",
            "%",
            [max(sure)],
            limit=round(5 + _chance(plain, 0.05), 1),
        ),
        bounded("histories with a false alarm, worst noise", "%", [worst], limit=round(5 + slack, 1)),
        bounded(
            "nights until 2 % at 1 % noise is seen, of 50 metrics",
            "",
            [float(np.median(seen[METRICS]))],
            limit=5,
        ),
    ]


@dataclass(frozen=True)
class Alarms:
    """Of so many `histories` of one metric, all without a change of their own: those that show one, those that show one
    without stating that it may be drift, and the same two beside a change of the machine, elsewhere than there."""

    histories: int
    plain: int
    plain_sure: int
    machine: int
    machine_sure: int

    def row(self) -> list[str]:
        counts = (self.plain, self.plain_sure, self.machine, self.machine_sure)
        return [str(self.histories), *(_share((one, self.histories)) for one in counts)]


def _short(draw: Draw, histories: int, seed: int) -> Alarms:
    counts = np.zeros(4, dtype=np.int64)
    for number in range(histories):
        values = draw(np.random.default_rng([number, seed, 3, SEED]), SHORT)
        moved = values + MACHINE_SD * (np.arange(SHORT) >= MACHINE_AT)
        plain = changes_in(list(values))
        machine = [one for one in changes_in(list(moved)) if abs(one.at - MACHINE_AT) > NEAR]
        for place, found in enumerate((plain, machine)):
            counts[2 * place :][:2] += [bool(found), any(not one.may_be_drift for one in found)]
    return Alarms(histories, *counts.tolist())


def _found(runs: int, size: float, steps: int, *, machine: bool = False) -> tuple[int, int]:
    """How many steps of Gaussian noise are found near their place, which is drawn from the middle half; or at two
    thirds, after a change of the machine at one third."""
    found = 0
    for number in range(steps):
        random = np.random.default_rng([number, runs, round(10 * size), machine, SEED])
        at = int(random.integers(runs // 4, runs - runs // 4 + 1)) if not machine else 2 * runs // 3
        values = gaussian(random, runs) + size * (np.arange(runs) >= at)
        if machine:
            values += MACHINE_SD * (np.arange(runs) >= MACHINE_AT)
        found += any(abs(one.at - at) <= NEAR for one in changes_in(list(values)))
    return found, steps


def _share(of: tuple[int, int]) -> str:
    return f"{of[0] / of[1]:.1%}"


def _chance(of: tuple[int, int], share: float) -> float:
    """Two standard errors of a share of this many histories, in percent."""
    return round(200 * float(np.sqrt(share * (1 - share) / of[1])), 1)


def _told(nights: list[int]) -> list[str]:
    return [f"{np.median(nights):.0f}", f"{np.mean(np.asarray(nights) <= 5):.0%}"]


def _alarms(draw: Draw, histories: int, seed: int) -> list[int]:
    """The number of series that show a change, for each history without one."""
    random = np.random.default_rng([seed, 1, SEED])
    return [
        sum(bool(changes_in(list(draw(random, NIGHTS)), series=METRICS)) for _ in range(METRICS))
        for _ in range(histories)
    ]


def _nights(series: int, looks: int, steps: int) -> list[int]:
    """How many nights after a step of 2 SD it is shown for the first time, the history being looked at every night; of
    so many steps."""
    histories = [gaussian(np.random.default_rng([number, 2, SEED]), NIGHTS) for number in range(steps)]
    for values in histories:
        values[STEP_AT:] += STEP_SD
    seen = dict.fromkeys(range(steps), GIVEN_UP_AFTER)
    for nights in range(2, GIVEN_UP_AFTER):
        for number in [number for number, at in seen.items() if at == GIVEN_UP_AFTER]:
            found = changes_in(list(histories[number][: STEP_AT + nights]), series=series, looks=looks)
            if any(one.latest >= STEP_AT - 2 for one in found):
                seen[number] = nights
    return list(seen.values())


def gaussian(random: np.random.Generator, count: int) -> Array:
    return random.normal(size=count)


def heavy_tailed(random: np.random.Generator, count: int) -> Array:
    return random.standard_t(3, size=count)


def two_modes(random: np.random.Generator, count: int) -> Array:
    return np.asarray(2.0 * (random.random(count) < 0.3) + 0.3 * random.normal(size=count))


def correlated(rho: float) -> Draw:
    def draw(random: np.random.Generator, count: int) -> Array:
        values = random.normal(size=count)
        for place in range(1, count):
            values[place] = rho * values[place - 1] + np.sqrt(1 - rho**2) * values[place]
        return values

    return draw


def wandering(random: np.random.Generator, count: int) -> Array:
    return np.asarray(0.8 * random.normal(size=count) + 0.6 * correlated(0.99)(random, count))


TOLD_APART = ("Gaussian", "heavy-tailed (t, 3 degrees of freedom)", "two modes", "autocorrelated (0.5)")
"""The noises that 60 runs distinguish from a step."""
NOISES: dict[str, Draw] = {
    "Gaussian": gaussian,
    "heavy-tailed (t, 3 degrees of freedom)": heavy_tailed,
    "two modes": two_modes,
    "autocorrelated (0.5)": correlated(0.5),
    "a level that wanders (0.99; a third of the variance)": wandering,
}
