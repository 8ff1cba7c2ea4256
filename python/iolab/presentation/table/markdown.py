"""`show --as markdown`: the plain table for a document or a mail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iolab.base.plain_text import counted
from iolab.domain.summary import Jobs, summarise
from iolab.presentation.table import axis
from iolab.presentation.table.alone import alone
from iolab.presentation.table.conclusions import conclusions
from iolab.presentation.table.grid import Block, GridCell, blocks
from iolab.presentation.table.layout import Footnotes
from iolab.presentation.table.plain import LEGEND, SPREAD
from iolab.presentation.table.words import left_out_in_words, rounds_of_both, tally

if TYPE_CHECKING:
    from iolab.files.store import RunData

WIDTH_MAX = 120
"""Characters of a line with a column per setting, as text: beyond, each metric has a table with a line per setting."""


def render(run: RunData, metrics: Sequence[str] = (), jobs: Jobs | None = None) -> str:
    """The run's table in Markdown, workload by workload; with `metrics` only those keys."""
    summary = summarise(run, metrics=metrics, jobs=jobs)
    lines = [f"# {summary.title}", ""]
    heading = (
        f"{counted(summary.rounds, 'round')}; baseline {_escaped(summary.baseline)}; {tally(summary.comparisons)}."
    )
    items = axis.sentences(summary) or alone(summary)
    lines += [heading, "", *(f"- {_escaped(text)}" for text in items)]
    lines += [
        f"- {_escaped(text)}"
        for text in (*summary.failed, *(one.text for one in conclusions(summary.comparisons)), *summary.rules)
    ]
    cut = left_out_in_words(summary.left_out, summary.comparisons, "--as csv")
    partly = rounds_of_both(summary.comparisons)
    lines += [f"- **Careful:** {_escaped(doubt)}" for doubt in (*summary.doubts, *partly, *cut)]
    if items or summary.rules or summary.comparisons or summary.doubts:
        lines.append("")
    footnotes = Footnotes()
    for workload, block in blocks(summary).items():
        lines += [f"## {workload}", ""]
        if block.rows:
            wide = list(_wide(block, footnotes))
            lines += wide if len(wide[0]) <= WIDTH_MAX else _tall(block, footnotes)
            lines.append("")
        for why in block.absent:
            lines += [f"No value of {why}", ""]
    if not summary.rows:
        lines += ["No trial has a value of what is compared.", ""]
    for note in footnotes.lines():
        lines += [note, ""]
    lines.append(LEGEND if summary.comparisons else SPREAD)
    return "\n".join(lines) + "\n"


def _wide(block: Block, footnotes: Footnotes) -> Iterator[str]:
    rows = [[row.label, row.unit, *("; ".join(_parts(cell, footnotes)) for cell in row.cells)] for row in block.rows]
    return _table(["metric", "unit", *block.settings], rows, "ll" + "r" * len(block.settings))


def _tall(block: Block, footnotes: Footnotes) -> Iterator[str]:
    for number, row in enumerate(block.rows):
        if number:
            yield ""
        yield f"### {row.label}{f', {row.unit}' if row.unit else ''}"
        yield ""
        cells = [[*_parts(cell, footnotes), "", ""][:3] for cell in row.cells]
        rows = [[cell.setting, *texts] for cell, texts in zip(row.cells, cells, strict=True)]
        yield from _table(["setting", "value", "change", "verdict"], rows, "lrrl")


def _parts(cell: GridCell, footnotes: Footnotes) -> list[str]:
    """The value, the change or why there is none, and the verdict."""
    why = footnotes.mark(cell.reason) if cell.reason else cell.change
    return [part for part in (cell.value, why, cell.verdict) if part]


def _table(header: list[str], rows: list[list[str]], sides: str) -> Iterator[str]:
    """Readable as text too: padded columns, each flush left or right by its letter of `sides`."""
    cells = [[_escaped(text) for text in line] for line in (header, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*cells, strict=True)]
    rule = ["-" * width if side == "l" else "-" * (width - 1) + ":" for width, side in zip(widths, sides, strict=True)]
    for line in (cells[0], rule, *cells[1:]):
        places = zip(line, widths, sides, strict=True)
        padded = (text.ljust(width) if side == "l" else text.rjust(width) for text, width, side in places)
        yield f"| {' | '.join(padded)} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
