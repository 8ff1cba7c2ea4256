"""The plain table as text cells, for the formats that draw it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from iolab.base.quantity import ABSENT, scale_for
from iolab.domain.definition import Verdict
from iolab.domain.summary import Row, Summary
from iolab.presentation.table.words import change_with_interval, label, unit_of, verdict_with_rounds


@dataclass(frozen=True)
class GridCell:
    """A setting's value of a metric, all of it text."""

    setting: str
    value: str
    """`183.4 ± 2.1`, or `-` if absent."""
    change: str | None
    """`+3.1 % [+1.0 %, +5.2 %]`, against the baseline."""
    verdict: str | None
    """`faster`, `worse`, ..., or `undecided (12 more)`."""
    reason: str | None
    """Why the value is absent."""

    @property
    def verdict_word(self) -> Verdict | None:
        """The verdict without the rounds that would decide."""
        return cast(Verdict, self.verdict.split()[0]) if self.verdict else None


@dataclass(frozen=True)
class GridRow:
    """A metric's line of the table."""

    metric: str
    label: str
    unit: str
    cells: list[GridCell]
    """One per setting, in the summary's order: the baseline first."""

    @property
    def is_absent(self) -> bool:
        """No setting has a value."""
        return all(cell.value == ABSENT for cell in self.cells)


@dataclass(frozen=True)
class Block:
    """What a page has room for of a workload: no line or column that holds nothing."""

    rows: list[GridRow]
    """Those that have a value, all with the same settings."""
    absent: list[str]
    """Why the others have none, once each: `rate, read latency p99: the trial failed`."""

    @property
    def settings(self) -> list[str]:
        """The settings of the columns, the baseline first."""
        return [cell.setting for cell in self.rows[0].cells] if self.rows else []


def grid(summary: Summary) -> dict[str, list[GridRow]]:
    """By workload and job, a cell for every setting of the run."""
    blocks: dict[str, list[GridRow]] = {}
    for row in (one for one in summary.rows if one.metric not in summary.left_out):
        blocks.setdefault(row.place, []).append(_row(row, summary.settings))
    return blocks


def blocks(summary: Summary) -> dict[str, Block]:
    """By workload and job, without metrics that have no value and settings that the workload did not run under."""
    return {workload: _block(rows) for workload, rows in grid(summary).items()}


def _block(rows: list[GridRow]) -> Block:
    ran = {cell.setting for row in rows for cell in row.cells if cell.value != ABSENT or cell.reason}
    present = [
        replace(row, cells=[cell for cell in row.cells if cell.setting in ran]) for row in rows if not row.is_absent
    ]
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        if row.is_absent:
            why = "; ".join(dict.fromkeys(cell.reason for cell in row.cells if cell.reason))
            by_reason.setdefault(why or "no trial has a value", []).append(row.label)
    return Block(present, [f"{', '.join(labels)}: {why}" for why, labels in by_reason.items()])


def _row(row: Row, settings: list[str]) -> GridRow:
    scale = scale_for(unit_of(row.metric), (cell.typical for cell in row.cells.values()))
    cells = []
    for setting in settings:
        cell, comparison = row.cells.get(setting), row.comparisons.get(setting)
        cells.append(
            GridCell(
                setting=setting,
                value=scale.with_spread(cell.typical, cell.spread) if cell else scale.number(None),
                change=change_with_interval(comparison.judgement) if comparison else None,
                verdict=verdict_with_rounds(comparison.judgement) if comparison else None,
                reason=cell.reason if cell and cell.typical is None else None,
            )
        )
    return GridRow(row.metric, label(row.metric), scale.suffix, cells)
