"""`show --as markdown`: the plain table for a document or a mail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab.table.grid import GridCell, grid
from iolab.table.summary import summarise
from iolab.table.words import tally

if TYPE_CHECKING:
    from iolab.store import RunData


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    summary = summarise(run, metrics=metrics)
    lines = [f"# {summary.title}", ""]
    for workload, rows in grid(summary).items():
        lines += [f"## {workload}", ""]
        lines.append(_line(["metric", "unit", *summary.settings]))
        lines.append(_line(["---", "---", *("---:" for _ in summary.settings)]))
        lines += (_line([row.label, row.unit, *map(_cell, row.cells)]) for row in rows)
        lines.append("")
    lines.append(f"{summary.rounds} rounds; baseline {_escaped(summary.baseline)}; {tally(summary.comparisons)}.")
    return "\n".join(lines) + "\n"


def _cell(cell: GridCell) -> str:
    return "; ".join(part for part in (cell.value, cell.change, cell.verdict) if part)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
