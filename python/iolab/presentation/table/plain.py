"""`show --as plain`: the table for people, drawn with rich."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iolab.base.plain_text import counted
from iolab.domain.definition import DIFFERENCES, GAINS, LOSSES, Verdict
from iolab.domain.matrix_axis import sweeps
from iolab.domain.summary import FORBIDDEN, Jobs, Summary, summarise
from iolab.presentation.table import axis
from iolab.presentation.table.alone import alone
from iolab.presentation.table.conclusions import conclusions
from iolab.presentation.table.grid import Block, GridCell, blocks
from iolab.presentation.table.layout import Alternatives, Footnotes
from iolab.presentation.table.words import beside_typical, left_out_in_words, rounds_of_both, tally
from iolab.presentation.terminal import text_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from iolab.domain.comparison import Comparison
    from iolab.files.store import RunData

SENTENCE_WIDTH_MAX = 110
INDENT = "  "
NEVER_FOLDED = 20
"""Characters of a name for which any console has room."""
CHANGE_HEADING = "change within rounds [95 %]"
CHANGE_HEADING_UNPAIRED = "change [95 %]"
SPREAD = "Typical value ± half the interquartile range."
LEGEND = (
    f"{SPREAD} Change: the typical ratio within rounds with its 95 % interval: Hodges and Lehmann's, the median over "
    "all pairs of rounds, or the geometric mean of fewer than 7. Drift cancels in it, so it is not exactly the "
    "quotient of the two values. So far: further rounds may overturn it (--until-decided)."
)
LEGEND_UNPAIRED = (
    f"{SPREAD} Change: the ratio of the typical values with its 95 % interval; rounds are not paired: drift is in it."
)
IN_SEARCH = (
    "this run is a search (iolab bisect), which measures one version after another: rounds have nothing in common, and "
    "are not paired"
)
STYLES: dict[Verdict, str] = {
    **dict.fromkeys(GAINS, "green"),
    **dict.fromkeys(LOSSES, "red"),
    **dict.fromkeys(DIFFERENCES["neutral"], "magenta"),
    "same": "blue",
    "undecided": "yellow",
}


def render(run: RunData, metrics: Sequence[str] = (), jobs: Jobs | None = None) -> str:
    """The table and the verdicts as text, coloured on a terminal."""
    return text_of(tables(summarise(run, metrics=metrics, jobs=jobs)))


def tables(summary: Summary) -> RenderableType:
    """What it comes to, what to be careful about, and a table per workload."""
    from rich.console import Group
    from rich.constrain import Constrain
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = [Text(summary.title, style="bold")]
    against = f"; baseline {summary.baseline}; {tally(summary.comparisons)}" if summary.comparisons else ""
    parts.append(Text(f"{counted(summary.rounds, 'round')} on {summary.machine_in_words}{against}", style="dim"))
    in_sweeps = sweeps(summary)
    parts += stated(summary.failed)
    parts += stated(axis.sentences(summary) or alone(summary))
    cut = left_out_in_words(summary.left_out, summary.comparisons, "--as csv")
    warned = [Text(f"! {problem}", style="yellow") for problem in (*summary.problems, *summary.doubts, *cut)]
    # What forbids a verdict stands above what would be one.
    forbidden = any(one.judgement.reason in FORBIDDEN for one in summary.comparisons)
    answer = [*in_words(summary.comparisons), *stated(summary.rules)]
    parts += [*warned, *answer] if forbidden else [*answer, *warned]
    parts += (Text(f"! {line}", style="yellow") for line in beside_typical(summary.comparisons))
    parts += (Text(f"! {line}", style="yellow") for line in rounds_of_both(summary.comparisons))
    if summary.is_search and summary.comparisons:
        parts.append(Text(f"! {IN_SEARCH}", style="yellow"))
    paired = all(one.pairing != "none" for one in summary.comparisons)
    footnotes = Footnotes()
    swept: list[RenderableType] = []
    in_tables = blocks(summary)
    for one in in_sweeps:
        if len(one.lines) <= axis.LINES_MAX:
            for workload in {point.workload for line in one.lines for point in line.points}:
                in_tables.pop(workload, None)
            heading = Padding(Text(axis.title(one), style="bold cyan"), (1, 0, 0, 0), expand=False)
            by_metric, by_line = (
                draw(one, summary, footnotes) for draw in (axis.tables_by_metric, axis.tables_by_line)
            )
            swept.append(heading)
            if axis.has_values(one, summary):
                swept.append(Alternatives(axis.table(one, summary, footnotes), Group(*by_metric), Group(*by_line)))
            swept += (Constrain(Text(f"No value of {line}"), SENTENCE_WIDTH_MAX) for line in axis.absent(one, summary))
    parts += swept
    for workload, block in in_tables.items():
        # Not as the table's own title, which is broken if the table is narrower.
        parts.append(Padding(Text(workload, style="bold cyan"), (1, 0, 0, 0), expand=False))
        if block.rows:
            wide, tall = _wide(block, footnotes), _tall(block, footnotes, paired=paired)
            parts.append(Alternatives(wide, tall, _tall(block, footnotes, paired=paired, verdict_below=True)))
        parts += (Constrain(Text(f"No value of {line}"), SENTENCE_WIDTH_MAX) for line in block.absent)
    if not summary.rows:
        parts.append(Text("\nNo trial has a value of what is compared.\n"))
    if lines := footnotes.lines():
        parts.append(Padding(Constrain(Text("\n".join(lines)), SENTENCE_WIDTH_MAX), (1, 0, 0, 0), expand=False))
    legend = (LEGEND if paired else LEGEND_UNPAIRED) if summary.comparisons else SPREAD
    parts.append(Padding(Constrain(Text(legend, style="dim"), SENTENCE_WIDTH_MAX), (1, 0, 0, 0), expand=False))
    return Group(*parts)


def _wide(block: Block, footnotes: Footnotes) -> Table:
    """A row per metric, a column per setting: for as many settings as there is room for."""
    from rich.text import Text

    table = empty_table()
    table.add_column("metric")
    table.add_column("unit", style="dim")
    for setting in block.settings:
        table.add_column(setting, justify="right")
    for row in block.rows:
        cells = ([Text(cell.value), *_below(cell, footnotes)] for cell in row.cells)
        table.add_row(row.label, row.unit, *(Text("\n").join(lines) for lines in cells))
    return table


def _tall(block: Block, footnotes: Footnotes, *, paired: bool, verdict_below: bool = False) -> Table:
    """A row per setting below each metric's name, for any number of settings. With the verdict below the change it fits
    a narrow console."""
    from rich.text import Text

    compared = any(cell.change or cell.verdict for row in block.rows for cell in row.cells)
    table = empty_table()
    table.add_column("metric, setting", overflow="fold")
    change = CHANGE_HEADING if paired else CHANGE_HEADING_UNPAIRED
    for heading in ("value", change if compared else ""):
        table.add_column(heading, justify="right", no_wrap=True)
    if compared and not verdict_below:
        table.add_column("verdict", no_wrap=True)
    for row in block.rows:
        table.add_row(Text(row.label, style="bold"), Text(row.unit, style="dim"))
        for cell in row.cells:
            below = [*_below(cell, footnotes)]
            verdict = [] if verdict_below or not cell.verdict else [below.pop()]
            table.add_row(indented(cell.setting), cell.value, Text("\n").join(below), *verdict)
        table.add_section()
    return table


def empty_table() -> Table:
    """A table of rich in the style of all tables, without columns."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)


def indented(name: str) -> RenderableType:
    """A line's name below its heading, its further lines too if it is folded."""
    from rich.padding import Padding
    from rich.text import Text

    if len(name) <= NEVER_FOLDED and " " not in name:
        return Text(f"{INDENT}{name}", overflow="fold")  # many times as fast
    return Padding(Text(name, overflow="fold"), (0, 0, 0, len(INDENT)))


def _below(cell: GridCell, footnotes: Footnotes) -> Iterator[Text]:
    """What belongs to a value, a line each, the verdict last."""
    from rich.text import Text

    if cell.reason:
        yield Text(footnotes.mark(cell.reason), style="dim")
    if cell.change:
        yield Text(cell.change, style="dim")
    if cell.verdict and cell.verdict_word:
        yield Text(cell.verdict, style=STYLES[cell.verdict_word])


def stated(sentences: Sequence[str]) -> Iterator[RenderableType]:
    """What the numbers come to without a verdict, each with its bullet."""
    from rich.constrain import Constrain
    from rich.text import Text

    return (Constrain(Text.assemble(("● ", "cyan"), one), SENTENCE_WIDTH_MAX) for one in sentences)


def in_words(comparisons: Sequence[Comparison]) -> Iterator[RenderableType]:
    """What the comparisons come to, a sentence per setting."""
    from rich.constrain import Constrain
    from rich.text import Text

    for one in conclusions(comparisons):
        bullet = ("○ " if one.verdict == "undecided" else "● ", STYLES[one.verdict])
        yield Constrain(Text.assemble(bullet, one.text), SENTENCE_WIDTH_MAX)
