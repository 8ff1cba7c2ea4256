"""`show --as plain`: the table for people, drawn with rich."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab.table.footnote import Footnotes
from iolab.table.grid import GridCell, GridRow, grid
from iolab.table.summary import Summary, summarise
from iolab.table.words import sentences, tally
from iolab.terminal import text_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from iolab.store import RunData

SENTENCE_WIDTH_MAX = 110
STYLES = {"faster": "green", "slower": "red", "same": "blue", "undecided": "yellow"}


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """The table and the verdicts as text, coloured on a terminal."""
    return text_of(tables(summarise(run, metrics=metrics)))


def tables(summary: Summary) -> RenderableType:
    """A table per workload, the verdicts in words, and what to be careful about."""
    from rich.console import Group
    from rich.constrain import Constrain
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = [Text(summary.title, style="bold")]
    rounds = f"{summary.rounds} {'round' if summary.rounds == 1 else 'rounds'}"
    parts.append(Text(f"{rounds} on {summary.machine}; baseline {summary.baseline}", style="dim"))
    footnotes = Footnotes()
    for workload, rows in grid(summary).items():
        # Not as the table's own title, which is broken where the table is narrower.
        parts.append(Padding(Text(workload, style="bold cyan"), (1, 0, 0, 0), expand=False))
        parts.append(_table(rows, summary.settings, footnotes))
    if lines := footnotes.lines():
        parts.append(Padding(Constrain(Text("\n".join(lines)), SENTENCE_WIDTH_MAX), (1, 0, 0, 0), expand=False))
    legend = "Typical value ± half the interquartile range; change against the baseline [95 % interval]."
    parts.append(Padding(Text(legend, style="dim"), (1, 0, 1, 0), expand=False))
    if summary.comparisons:
        parts.append(Text(f"Verdicts: {tally(summary.comparisons)}", style="bold"))
    for comparison, sentence in sentences(summary):
        verdict = comparison.judgement.verdict
        parts.append(Constrain(Text.assemble(("● ", STYLES[verdict]), sentence), SENTENCE_WIDTH_MAX))
    parts += (Text(f"! {problem}", style="yellow") for problem in summary.problems)
    return Group(*parts)


def _table(rows: list[GridRow], settings: list[str], footnotes: Footnotes) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("metric")
    table.add_column("unit", style="dim")
    for setting in settings:
        table.add_column(setting, justify="right")
    for row in rows:
        table.add_row(row.label, row.unit, *(_cell(cell, footnotes) for cell in row.cells))
    return table


def _cell(cell: GridCell, footnotes: Footnotes) -> RenderableType:
    from rich.text import Text

    lines = [Text(cell.value)]
    if cell.reason:
        lines.append(Text(footnotes.mark(cell.reason), style="dim"))
    if cell.change:
        lines.append(Text(cell.change, style="dim"))
    if cell.verdict and cell.verdict_word:
        lines.append(Text(cell.verdict, style=STYLES[cell.verdict_word]))
    return Text("\n").join(lines)
