"""Predictors without a model, beside which a calibrated device has to show its worth."""

from __future__ import annotations

import math
from collections.abc import Sequence

from iolab.domain.calibration.cell import Cell


def mean_of_operation(cell: Cell, fitted: Sequence[Cell]) -> float:
    """The geometric mean of the fitted cells of the same operation, in operations per second; of all if there is
    none."""
    alike = [one for one in fitted if one.operation == cell.operation] or fitted
    return math.exp(sum(math.log(one.iops) for one in alike) / len(alike))


def nearest(cell: Cell, fitted: Sequence[Cell]) -> float:
    """The rate of the fitted cell that is most like it: the same operation, then the same pattern, then the fewest
    doublings of size and depth between them."""
    return min(fitted, key=lambda one: _distance(cell, one)).iops


def _distance(cell: Cell, other: Cell) -> tuple[bool, bool, float]:
    size = abs(math.log2(cell.block_bytes / other.block_bytes))
    depth = abs(math.log2(cell.depth / other.depth))
    return cell.operation != other.operation, cell.options.pattern != other.options.pattern, size + depth
