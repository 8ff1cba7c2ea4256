"""Predictions that need no model: the null predictors beside a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from iolab.studies.reproduction.score import ComparedCell, factor, typical_factor
from iolab.studies.reproduction.tables import Cell, Table

CELLS_MIN = 3
"""With fewer a constant that is the best in hindsight meets them by itself."""


@dataclass(frozen=True)
class NullPredictor:
    """A null predictor beside the model, on the cells that it predicts."""

    words: str
    cells: int
    factor: float
    """How far off it typically is."""
    model_factor: float
    """How far off the model is on the same cells."""

    @property
    def as_good(self) -> bool:
        """Whether the model shows no skill beyond it."""
        return self.factor <= self.model_factor


def best(table: Table, cells: Sequence[ComparedCell]) -> NullPredictor | None:
    """The one that is closest beside the model, of those that speak of at least half of the cells. `cells`: the
    table's independent predictions. None: there are too few cells for any."""
    found = [one for one in _predictors(table, cells) if 2 * one.cells >= len(cells)]
    return min(found, key=lambda one: math.log(one.factor) - math.log(one.model_factor), default=None)


def _predictors(table: Table, cells: Sequence[ComparedCell]) -> Iterator[NullPredictor]:
    null = table.null
    published = {(cell.row, cell.column): cell.published for cell in table.cells}
    if (row := null.baseline_row) is not None:
        yield from _judged(
            f"as in row {row}",
            cells,
            [_other(one.cell, published.get((row, one.cell.column)), one.cell.row == row) for one in cells],
        )
    if (column := null.baseline_column) is not None:
        yield from _judged(
            f"as in column {column}",
            cells,
            [_other(one.cell, published.get((one.cell.row, column)), one.cell.column == column) for one in cells],
        )
    if null.value is not None:
        yield from _judged(f"{null.value:g} in each cell", cells, [null.value] * len(cells))
    if null.total is not None:
        parts = [
            published[one.cell.row, null.total] * null.weights[one.cell.column] / sum(null.weights.values())
            if one.cell.column in null.weights
            else None
            for one in cells
        ]
        yield from _judged(f"weight x {null.total}", cells, parts)
    yield from _judged(
        "one constant" if null.constant == "table" else f"a constant for each {null.constant}",
        cells,
        _constants(null.constant, cells),
    )


def _other(cell: Cell, figure: float | None, is_baseline: bool) -> float | None:
    return None if is_baseline else figure


def _constants(of: str, cells: Sequence[ComparedCell]) -> list[float | None]:
    groups: dict[str, list[float]] = {}
    keys = [{"row": one.cell.row, "column": one.cell.column}.get(of, "") for one in cells]
    for key, one in zip(keys, cells, strict=True):
        groups.setdefault(key, []).append(math.log(one.cell.published))
    return [math.exp(fmean(groups[key])) if len(groups[key]) >= CELLS_MIN else None for key in keys]


def _judged(words: str, cells: Sequence[ComparedCell], predicted: Sequence[float | None]) -> Iterator[NullPredictor]:
    spoken = [(one, value) for one, value in zip(cells, predicted, strict=True) if value is not None]
    own = typical_factor([factor(value, one.cell.published) for one, value in spoken])
    model = typical_factor([one.factor for one, _ in spoken])
    if own is not None and model is not None:
        yield NullPredictor(words, len(spoken), own, model)
