"""The answer of a calibration: fitted keys, and each cell beside the simulated device and predictors without one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from iolab.base.quantity import plain
from iolab.base.strict_json import JsonObject
from iolab.base.toml import TomlTable
from iolab.domain.calibration.cell import Cell, factor
from iolab.domain.calibration.fit import FittedKey

WITHIN = 1.25


@dataclass(frozen=True)
class Answer:
    """A cell, and what was said of it. Rates in operations per second."""

    cell: Cell
    fitted: bool
    """Whether the keys were fitted to it."""
    iops: float
    p99_ns: float | None
    mean: float
    """The mean of the fitted cells of its operation (`null.mean_of_operation`)."""
    nearest: float
    """The fitted cell that is most like it (`null.nearest`)."""

    @property
    def factor(self) -> float:
        """By what factor the simulated rate and the measured one differ."""
        return factor(self.iops, self.cell.iops)

    @property
    def p99_factor(self) -> float | None:
        """The same of the 99th percentile of latency, to which nothing is fitted; None if one of them is unknown."""
        if self.p99_ns is None or self.cell.p99_ns is None:
            return None
        return factor(self.p99_ns, self.cell.p99_ns)

    def as_dict(self) -> JsonObject:
        """For `--json`."""
        return {
            "cell": self.cell.name,
            "operation": self.cell.operation,
            "role": "fit" if self.fitted else "held back",
            "iops": self.cell.iops,
            "simulated_iops": self.iops,
            "factor": self.factor,
            "mean_factor": factor(self.mean, self.cell.iops),
            "nearest_factor": factor(self.nearest, self.cell.iops),
            "latency_ns_p99": self.cell.p99_ns,
            "simulated_latency_ns_p99": self.p99_ns,
        }


@dataclass(frozen=True)
class Errors:
    """Of several cells: the typical factor (median), the worst, and the share within 25 %."""

    cells: int
    typical: float
    worst: float
    within: float

    def __str__(self) -> str:
        return f"typically x{plain(self.typical, 3)}, at worst x{plain(self.worst, 3)}, {self.within:.0%} within 25 %"


def errors(factors: Sequence[float]) -> Errors | None:
    """None of no cells."""
    if not factors:
        return None
    within = sum(one <= WITHIN for one in factors) / len(factors)
    return Errors(len(factors), median(factors), max(factors), within)


@dataclass(frozen=True)
class Calibration:
    """A calibrated device."""

    base: str
    """The device file that it began with."""
    device: TomlTable
    keys: tuple[FittedKey, ...]
    answers: tuple[Answer, ...]
    left_out: tuple[str, ...]
    """What was measured and is in no cell, a line each."""
    unfinished: str | None = None
    """Why the search was ended before it found nothing better, if it was: no key has an interval then."""

    def part(self, *, fitted: bool) -> list[Answer]:
        """The fitted cells, or those held back."""
        return [answer for answer in self.answers if answer.fitted is fitted]

    def summary(self) -> list[tuple[str, Errors]]:
        """Errors of the fit, of what was held back, and of each predictor without a model on the latter."""
        held = self.part(fitted=False)
        tails = [answer.p99_factor for answer in self.answers if answer.p99_factor is not None]
        again = [answer.cell.again for answer in self.answers if answer.cell.again is not None]
        parts = [
            ("fit", [answer.factor for answer in self.part(fitted=True)]),
            ("held back", [answer.factor for answer in held]),
            ("held back, the nearest fitted cell", [factor(one.nearest, one.cell.iops) for one in held]),
            ("held back, the mean of the operation", [factor(one.mean, one.cell.iops) for one in held]),
            ("another round of the same cell", again),
            ("p99 of latency, never fitted", [tail for tail in tails if not math.isinf(tail)]),
        ]
        return [(name, found) for name, factors in parts if (found := errors(factors)) is not None]
