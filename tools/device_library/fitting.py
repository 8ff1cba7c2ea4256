"""Fits a model's three keys to three of its figures, and predicts the other five.

How long writes stall no figure of the model's own shows: that follows from the class's other models (`spread`), whose
figures the null predictor reads too.
"""

import math
import tomllib
from dataclasses import dataclass
from typing import Any

from classes import PROGRAM_KEY, STALL_WRITES, WRITE_KEY, DeviceClass, class_of, device_of
from iolab.domain.calibration import iocost
from iolab.domain.calibration.key import FLASH, Key, with_values
from iolab.studies.calibrate.simulated import DeviceUnderTest
from runs import Model, geometric_mean

FITTED = ("rrandiops", "wbps", "wrandiops")
HELD_BACK = ("rbps", "rseqiops", "wseqiops", "rlat_us", "wlat_us")
LATENCIES = {f"{name}_us": cell for name, cell in iocost.LATENCIES.items()}
CLOSE = 0.004
"""In logarithms: a figure is met."""
STEPS_MAX = 12
OPERATIONS = 5 * STALL_WRITES
MACHINE = """
kernel = "6.1"
cpus = { count = 16, time_slice_ns = 4000000, call_ns = 700, completion_ns = 700, page_copy_ns = 300, jitter = 0.05 }
[[drives]]
device = "set by the fit"
scheduler = { name = "none" }
queue = { hardware_queues = 16, nomerges = 1 }
"""
"""As the benchmark has it: no scheduler, no merges but with the last request, at least 16 CPUs (E: their times)."""


@dataclass(frozen=True)
class Fitted:
    """A model's device, and what it answers."""

    model: Model
    kind: DeviceClass
    device: dict[str, Any]
    keys: dict[str, int]
    """The fitted keys."""
    kept: tuple[str, ...]
    """Of them, those that the figure doesn't show: they are the class's."""
    figures: dict[str, float]
    """All eight, simulated."""

    def factor(self, figure: str) -> float:
        """By what factor the simulated figure and the measured one differ."""
        return apart(self.figures[figure], self.model.figures[figure])


def apart(one: float, other: float) -> float:
    """By what factor, 1 or more."""
    return math.exp(abs(math.log(one / other)))


def fitted(model: Model, models: list[Model]) -> Fitted:
    """The device whose fitted figures meet the model's, which is one of `models`."""
    kind = class_of(model.name)
    share = stalled(spread(model, models))
    device = device_of(model.name, model.gb)
    keys: dict[str, int] = {}
    kept = []
    for figure, name in zip(FITTED, (kind.read_key, PROGRAM_KEY, WRITE_KEY), strict=True):
        key = next(key for key in FLASH if key.name == name)
        value, shown = _met(model, device, figure, key, share)
        device = _stalling(with_values(device, {key.name: value}), share)
        keys[name] = value
        kept += [] if shown else [name]
    return Fitted(model, kind, device, keys, tuple(kept), simulated(model, device))


def with_keys(model: Model, models: list[Model], keys: dict[str, int]) -> dict[str, Any]:
    """The device that a fit with these values came to."""
    return _stalling(with_values(device_of(model.name, model.gb), keys), stalled(spread(model, models)))


def simulated(model: Model, device: dict[str, Any]) -> dict[str, float]:
    """The eight figures of the device, asked as the model was."""
    cells = iocost.cells(model.figures)
    answers = dict(zip([cell.name for cell in cells], _bench().ask(device, cells), strict=True))
    rates = {name: iocost.in_its_unit(name, answer.iops) for name, answer in answers.items()}
    tails = {name: answers[cell].latency_ns(iocost.LATENCY_SHARE) for name, cell in LATENCIES.items()}
    return rates | {name: iocost.LATENCY_FACTOR * (tail or math.nan) / 1000 for name, tail in tails.items()}


def of_class(model: Model, models: list[Model], figure: str) -> float:
    """The null predictor: the geometric mean of the class's other models."""
    kind = class_of(model.name)
    return geometric_mean(
        [other.figures[figure] for other in models if other is not model and class_of(other.name) is kind]
    )


def spread(model: Model, models: list[Model]) -> float:
    """How much longer than the mean, by Little's law, the longest random writes of the class's other models take."""
    kind = class_of(model.name)
    others = [other for other in models if other is not model and class_of(other.name) is kind]
    return geometric_mean([other.figures["wlat_us"] / by_little(other, "wlat_us") for other in others])


def stalled(longest: float) -> float:
    """The share of the firmware's time for writes that stalls take.

    N writes in flight wait for N others and, if there is a stall meanwhile, for that: (1 - share) N + share *
    STALL_WRITES times the mean time of a write. More than 5 % of them have one, so that this is the 95th percentile.
    """
    return (longest - 1) / (STALL_WRITES / (iocost.JOBS * iocost.DEPTH) - 1)


def by_little(model: Model, figure: str) -> float:
    """The null predictor of a latency, in us: its own measured rate and Little's law."""
    return iocost.littles_latency_ns(model.figures[LATENCIES[figure]]) / 1000


def _bench() -> DeviceUnderTest:
    return DeviceUnderTest(tomllib.loads(MACHINE), OPERATIONS)  # type: ignore[arg-type]


def _stalling(device: dict[str, Any], share: float) -> dict[str, Any]:
    """The device, its stalls that share of its time for writes."""
    stall_ns = device["firmware"]["write_ns"] * STALL_WRITES * share / (1 - share)
    return with_values(device, {"firmware.stall.writes": STALL_WRITES, "firmware.stall.ns": round(stall_ns)})


def _met(model: Model, device: dict[str, Any], figure: str, key: Key, share: float) -> tuple[int, bool]:
    """The key's value with which the figure is met, and whether the figure shows it: each rate falls as its key
    grows."""
    (cell,) = iocost.cells({figure: model.figures[figure]})
    start = value = key.of(device)
    rates: dict[int, float] = {}
    for _ in range(STEPS_MAX):
        (answer,) = _bench().ask(_stalling(with_values(device, {key.name: value}), share), [cell])
        rates[value] = answer.iops
        missing = math.log(answer.iops / cell.iops)
        if abs(missing) < CLOSE:
            return value, True
        value = _between(rates, cell.iops, key.clipped(value * math.exp(missing)))
        if value in rates:
            break
    best = min(rates, key=lambda one: abs(math.log(rates[one] / cell.iops)))
    shows = max(rates.values()) / min(rates.values()) > 1 + CLOSE
    return (best, True) if shows else (start, False)


def _between(rates: dict[int, float], target: float, proposed: int) -> int:
    """The proposed value, or the middle of those known to be too quick and too slow if it lies outside."""
    quick = max((value for value, rate in rates.items() if rate > target), default=0)
    slow = min((value for value, rate in rates.items() if rate < target), default=0)
    if quick and slow and not quick < proposed < slow:
        return round(math.sqrt(quick * slow))
    return proposed
