"""How far a prediction is from what the guest answered: factors of independent cells, and orders."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from judge.answer import Cells
from judge.configuration import Configuration
from judge.question import names

QUARTER, DOUBLE = 1.25, 2.0
SAME = 1.1
"""A cell within this factor of one that implies it follows from that one."""
APART = 1.25
"""Two cells whose ratio is larger have an order."""
CALL_NS_MAX = 300_000
"""A time below this is the CPU's, which the drive has no part in: it is no cell of this comparison."""


@dataclass(frozen=True)
class Scored:
    """A cell of a configuration, and what was predicted of it."""

    asked: Configuration
    name: str
    real: float
    predicted: float | None
    """None: the model refused the configuration, or had too few operations for a time."""

    @property
    def factor(self) -> float:
        """How far off, at least 1; infinite if nothing was predicted."""
        if self.predicted == self.real:
            return 1.0
        if self.predicted is None or min(self.predicted, self.real) <= 0:
            return float("inf")
        return max(self.predicted / self.real, self.real / self.predicted)


def independent(asked: Configuration, real: Cells) -> Cells:
    """Without the cells that follow from others by arithmetic: a median that is what Little's law makes of the rate, a
    99th percentile near the median, writes of a mixed job whose reads are there, and times that are the CPU's."""
    found: Cells = {}
    for name, job in zip(names(asked), asked.jobs, strict=True):
        mixed = 0 < job.read_percent < 100
        for kind in ("read", "write"):
            rate, middle, late = (real.get(f"{name}/{kind}.{what}") for what in METRICS)
            if rate is not None and not (mixed and kind == "write"):
                found[f"{name}/{kind}.iops"] = rate
            if rate and middle and middle > CALL_NS_MAX:
                share = job.read_percent / 100 if kind == "read" else 1 - job.read_percent / 100
                implied = 1e9 * job.in_flight * share / rate
                closed = not job.think_ms and not job.fsync_every
                if not (closed and _near(middle, implied)):
                    found[f"{name}/{kind}.latency_ns_p50"] = middle
            if middle and late and late > CALL_NS_MAX and not _near(late, middle):
                found[f"{name}/{kind}.latency_ns_p99"] = late
        if (sync := real.get(f"{name}/sync.latency_ns_p50")) is not None and sync > CALL_NS_MAX:
            found[f"{name}/sync.latency_ns_p50"] = sync
    return found


METRICS = ("iops", "latency_ns_p50", "latency_ns_p99")


def _near(one: float, other: float) -> bool:
    return max(one / other, other / one) <= SAME


def scored(asked: Configuration, real: Cells, predicted: Cells) -> list[Scored]:
    """The independent cells."""
    return [Scored(asked, name, value, predicted.get(name)) for name, value in independent(asked, real).items()]


def orders(real: Cells, predicted: Cells) -> list[bool]:
    """For each two jobs of a configuration whose rates, or medians, are apart: whether they are predicted in the same
    order."""
    found = []
    for metric in METRICS[:2]:
        cells = sorted(name for name in real if name.endswith(metric) and "sync" not in name)
        found += [_in_order(real[a], real[b], predicted.get(a), predicted.get(b)) for a, b in combinations(cells, 2)]
    return [one for one in found if one is not None]


def orders_of_two(real: tuple[Cells, Cells], predicted: tuple[Cells, Cells]) -> list[bool]:
    """For each cell of one load under two queues, if they are apart: whether they are predicted in the same order."""
    cells = sorted(real[0].keys() & real[1].keys())
    found = [_in_order(real[0][one], real[1][one], predicted[0].get(one), predicted[1].get(one)) for one in cells]
    return [one for one in found if one is not None]


def _in_order(a: float, b: float, predicted_a: float | None, predicted_b: float | None) -> bool | None:
    """None: they have no order."""
    if min(a, b) <= 0 or max(a / b, b / a) <= APART:
        return None
    if predicted_a is None or predicted_b is None:
        return False
    return (a < b) == (predicted_a < predicted_b) and predicted_a != predicted_b


@dataclass(frozen=True)
class Score:
    cells: int
    within_quarter: float
    """Share of the cells."""
    within_double: float
    typical: float
    """The median factor."""
    orders: int
    orders_right: float

    @property
    def of_cells(self) -> str:
        return (
            f"{self.cells} cells: {self.within_quarter:.1%} within 25 %, {self.within_double:.1%} within 2x, "
            f"median {self.typical:.3f}x"
        )

    @property
    def words(self) -> str:
        return f"{self.of_cells}; {self.orders} orders: {self.orders_right:.1%} right"


def score(cells: Sequence[Scored], in_order: Iterable[bool]) -> Score:
    """Args:
    cells: at least one.
    """
    factors = [one.factor for one in cells]
    right = list(in_order)
    return Score(
        cells=len(factors),
        within_quarter=sum(one <= QUARTER for one in factors) / len(factors),
        within_double=sum(one <= DOUBLE for one in factors) / len(factors),
        typical=statistics.median(factors),
        orders=len(right),
        orders_right=sum(right) / len(right) if right else 1.0,
    )
