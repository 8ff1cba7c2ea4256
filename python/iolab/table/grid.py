"""The plain table as text cells, for the formats that draw it."""

from __future__ import annotations

from dataclasses import dataclass

from iolab.table.label import label
from iolab.table.quantity import scale_for
from iolab.table.summary import Row, Summary
from iolab.table.words import change_with_interval, verdict_with_rounds


@dataclass(frozen=True)
class GridCell:
    value: str
    """`183.4 ± 2.1`, or `-` where absent."""
    change: str | None
    """`+3.1 % [+1.0 %, +5.2 %]`, against the baseline."""
    verdict: str | None
    """`faster`, ..., or `undecided (12 more)`."""
    reason: str | None
    """Why the value is absent."""

    @property
    def verdict_word(self) -> str | None:
        return self.verdict.split()[0] if self.verdict else None


@dataclass(frozen=True)
class GridRow:
    metric: str
    label: str
    unit: str
    cells: list[GridCell]
    """One per setting, in the summary's order."""


def grid(summary: Summary) -> dict[str, list[GridRow]]:
    """By workload."""
    blocks: dict[str, list[GridRow]] = {}
    for row in summary.rows:
        blocks.setdefault(row.workload, []).append(_row(row, summary.settings))
    return blocks


def _row(row: Row, settings: list[str]) -> GridRow:
    scale = scale_for(row.unit, (cell.typical for cell in row.cells.values()))
    cells = []
    for setting in settings:
        cell, comparison = row.cells.get(setting), row.comparisons.get(setting)
        cells.append(
            GridCell(
                value=scale.with_spread(cell.typical, cell.spread) if cell else scale.number(None),
                change=change_with_interval(comparison.judgement) if comparison else None,
                verdict=verdict_with_rounds(comparison.judgement) if comparison else None,
                reason=cell.reason if cell and cell.typical is None else None,
            )
        )
    return GridRow(row.metric, label(row.metric), scale.suffix, cells)
