"""Comparisons as a list, one line each: what `iolab compare` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab.table.plain import STYLES
from iolab.table.quantity import ABSENT, scale_for
from iolab.table.words import change_with_interval, tally, unit_of, verdict_with_rounds

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.compare import Comparison


def verdicts(comparisons: Sequence[Comparison]) -> RenderableType:
    """A table for people: who against whom, both typical values, the change, how sure, the verdict."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    with_workload = any(comparison.workload for comparison in comparisons)
    for heading in (*(["workload"] if with_workload else []), "metric", "setting", "against"):
        table.add_column(heading, overflow="fold")
    for heading in ("value", "baseline", "n", "change [95 % interval]", "p", "q"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for comparison in comparisons:
        table.add_row(*([comparison.workload or ""] if with_workload else []), *_cells(comparison))
    notes = [
        Text(f"! {comparison.metric}, {comparison.setting}: {note}", style="yellow")
        for comparison in comparisons
        for note in comparison.notes
    ]
    return Group(table, *notes, Text(f"{tally(comparisons).capitalize()}."))


def _cells(comparison: Comparison) -> list[RenderableType]:
    from rich.text import Text

    judgement = comparison.judgement
    scale = scale_for(unit_of(comparison.metric), (judgement.baseline, judgement.candidate))
    return [
        comparison.metric,
        comparison.setting,
        comparison.against,
        scale.with_unit(judgement.candidate),
        scale.with_unit(judgement.baseline),
        str(judgement.n),
        change_with_interval(judgement) or ABSENT,
        _probability(judgement.p_value),
        _probability(judgement.q_value),
        Text(verdict_with_rounds(judgement), style=STYLES[judgement.verdict]),
    ]


def _probability(value: float | None) -> str:
    if value is None:
        return ABSENT
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"
