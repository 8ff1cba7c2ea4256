"""The search for the values of a device's keys: one key after the other, then along the slopes of all of them.

Inferred, not from a paper: the rates of a queueing system are minima of what its parts allow, so that a key has no
slope until its part is the bottleneck; a search with steps from a factor of 4 down finds that part, where a method of
slopes would stand still. But one key alone can't go along a valley in which two make up for one another: Gauss and
Newton's steps do (with Levenberg's damping).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from iolab.domain.calibration.key import Key

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Vector = NDArray[float64]

STEPS = (4.0, 2.0, 1.3, 1.08)
PLATEAU_MAX = 5
"""Steps without any effect, each the square of the last, after which the search looks no further."""
EDGE_STEPS = 5
MOVES_MAX = 8
"""In one direction, by one step."""
ROUNDS_MAX = 2
HUBER = 0.2
"""Deviations in logarithms beyond which they count linearly: a cell that no key can meet doesn't bend the others."""
SLOPE_STEP = 1.1
NO_SLOPE = 0.001
NEWTON_STEPS = 5
DAMPING = (0.0, 0.01, 0.1, 1.0)
"""Of the slopes' own squares; the first that helps is taken."""
GAIN, NOTHING = 1e-3, 1e-7
"""A loss that is smaller by this share, and by this at least, is smaller."""

Values = dict[str, int]
Rates = Callable[[Values, Sequence[int]], Sequence[float]]
"""From values of the keys, and the numbers of cells, to their simulated rates."""
IsOver = Callable[[], bool]
AT_ONCE = 4
"""Cells that are asked together; none is asked any more once those before it are met too badly."""


class TimeOver(Exception):
    """The search may ask nothing more; its values are the best so far."""


class Search:
    """The best values so far, and every device that has been asked."""

    def __init__(
        self, keys: Sequence[Key], start: Values, measured: Sequence[float], rates: Rates, is_over: IsOver
    ) -> None:
        self.keys = keys
        self.start = dict(start)
        self.values = dict(start)
        self.measured = measured
        self._rates = rates
        self._is_over = is_over
        self._known: dict[tuple[tuple[str, int], ...], dict[int, float]] = {}
        self._cells: Sequence[int] = range(len(measured))
        self.loss = math.inf

    def run(self, cells: Sequence[int]) -> None:
        """Searches with these cells alone."""
        self._cells = cells
        self.loss = self._loss(self.values)
        for step in STEPS:
            for _ in range(ROUNDS_MAX):
                # Each key is tried, whatever the one before it did.
                moved = [self._moved(key, step) for key in self.keys]
                if not any(moved):
                    break

    def run_whole(self, values: Values, keys: Sequence[Key]) -> tuple[float, Values]:
        """Searches with all cells from these values on, the keys in this order; the loss and values at the end."""
        self.values, self.keys = values, keys
        self.run(range(len(self.measured)))
        self.run_along_slopes()
        return self.loss, self.values

    def run_along_slopes(self) -> None:
        """Goes on with all keys at once."""
        for _ in range(NEWTON_STEPS):
            if not self._along_slopes():
                break

    def slopes(self, least: float) -> dict[str, Vector]:
        """How much each residual changes as a key's logarithm does, by key that moves any by more than `least`."""
        import numpy as np

        found = {}
        for key in self.keys:
            value = self.values[key.name]
            ends = [_stepped(key, value, way) for way in (SLOPE_STEP, 1 / SLOPE_STEP)]
            if ends[0] == ends[1]:
                continue
            up, down = (np.array(self.residuals({**self.values, key.name: end})) for end in ends)
            slope = (up - down) / math.log(ends[0] / ends[1])
            if np.abs(slope).max() > least:
                found[key.name] = slope
        return found

    def _along_slopes(self) -> bool:
        """A step of all keys that the cells show; whether it helped."""
        import numpy as np

        slopes = self.slopes(NO_SLOPE)
        if not slopes:
            return False
        matrix = np.array(list(slopes.values())).T
        here = np.clip(np.array(self.residuals(self.values)), -HUBER, HUBER)
        square = matrix.T @ matrix
        by_name = {key.name: key for key in self.keys}
        for damping in DAMPING:
            step = -np.linalg.pinv(square + damping * np.diag(np.diag(square))) @ matrix.T @ here
            factors = np.exp(np.clip(step, -1, 1))
            tried = {
                name: by_name[name].clipped(self.values[name] * by)
                for name, by in zip(slopes, map(float, factors), strict=True)
            }
            if self._takes_all({**self.values, **tried}):
                return True
        return False

    def residuals(self, values: Values, cells: Sequence[int] | None = None) -> list[float]:
        """Logarithms of simulated over measured, of these cells, by default of all. TimeOver if it may ask no more."""
        wanted = range(len(self.measured)) if cells is None else cells
        known = self._known.setdefault(tuple(sorted(values.items())), {})
        if missing := [number for number in wanted if number not in known]:
            if self._is_over():
                raise TimeOver
            for number, rate in zip(missing, self._rates(values, missing), strict=True):
                known[number] = math.log(max(rate, 1e-9) / self.measured[number])
        return [known[number] for number in wanted]

    def _moved(self, key: Key, step: float) -> bool:
        """Goes up or down by the step as long as that helps."""
        moved = False
        for way in (step, 1 / step):
            for _ in range(MOVES_MAX):
                if not self._goes(key, way):
                    break
                moved = True
        return moved

    def _goes(self, key: Key, way: float) -> bool:
        """A step, or over a plateau with steps that grow: a part that is no bottleneck here may be one further on."""
        value = here = self.values[key.name]
        for _ in range(PLATEAU_MAX):
            before, value = value, _stepped(key, value, way)
            if value == before:
                return False
            if self._takes_all({**self.values, key.name: value}):
                return True
            if not self.is_as_good({key.name: value}):
                return before != here and self._takes_edge(key, before, value)
            way *= way
        return False

    def _takes_edge(self, key: Key, good: int, worse: int) -> bool:
        """Looks between the end of a plateau and what is worse beyond."""
        for _ in range(EDGE_STEPS):
            middle = key.clipped(math.sqrt(good * worse))
            if middle in (good, worse):
                return False
            if self._takes_all({**self.values, key.name: middle}):
                return True
            good, worse = (middle, worse) if self.is_as_good({key.name: middle}) else (good, middle)
        return False

    def is_as_good(self, changed: Values) -> bool:
        """Whether the cells are met no worse with these values."""
        return self._loss({**self.values, **changed}, self._as_good) <= self._as_good

    @property
    def _as_good(self) -> float:
        return self.loss * (1 + GAIN) + NOTHING

    def _takes_all(self, tried: Values) -> bool:
        loss = self._loss(tried, self._as_good)
        # What changes nothing is not taken: a key that no cell shows keeps its start.
        if loss < self.loss * (1 - GAIN) - NOTHING:
            self.values, self.loss = tried, loss
            return True
        return False

    def _loss(self, values: Values, most: float = math.inf) -> float:
        """Infinite if it is above `most`."""
        loss = 0.0
        for first in range(0, len(self._cells), AT_ONCE):
            loss += sum(map(huber, self.residuals(values, self._cells[first : first + AT_ONCE])))
            if loss > most:
                return math.inf
        return loss


def _stepped(key: Key, value: int, way: float) -> int:
    """By the factor, and by one at least: a count is a whole number."""
    stepped = value * way
    return key.clipped(max(stepped, value + 1) if way > 1 else min(stepped, value - 1))


def huber(residual: float) -> float:
    """The loss of one cell: half the square, beyond `HUBER` linear."""
    size = abs(residual)
    return size * size / 2 if size <= HUBER else HUBER * (size - HUBER / 2)
