"""How a table is laid out: drawn in one of several ways, as the console has room, with long texts below it."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Table


_UNBOUNDED = 100_000
"""Columns: beyond what anything takes, so that a measure states what it would like to have."""


class Alternatives:
    """The first of the alternatives that fits without a break; the last if none does."""

    def __init__(self, *alternatives: RenderableType) -> None:
        self._alternatives = alternatives

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.cells import cell_len
        from rich.segment import Segment

        unbounded = options.update_width(_UNBOUNDED)
        for drawn in self._alternatives:
            if is_large(drawn) and console.color_system is None:
                texts = text_lines(drawn)
                if drawn is self._alternatives[-1] or max(map(cell_len, texts)) <= options.max_width:
                    yield from (Segment(f"{text}\n") for text in texts)
                    return
            elif drawn is not self._alternatives[-1]:
                # To measure a table takes as long as to draw it.
                lines = console.render_lines(drawn, unbounded, pad=False)
                if all(Segment.get_line_length(line) <= options.max_width for line in lines):
                    for line in lines:
                        yield from line
                        yield Segment.line()
                    return
        yield self._alternatives[-1]


LARGE_ROWS = 300


def is_large(drawn: RenderableType) -> TypeGuard[Table]:
    """Whether the table has so many rows that rich takes seconds for it."""
    from rich.table import Table

    return isinstance(drawn, Table) and drawn.row_count > LARGE_ROWS


def text_lines(table: Table) -> list[str]:
    """A table of `plain.empty_table` as rich draws it, without colours and unbroken, in a tenth of the time."""
    from rich.cells import cell_len

    columns = [[_cell_lines(cell) for cell in (column.header, *column.cells)] for column in table.columns]
    widths = [max(cell_len(line) for cell in column for line in cell) for column in columns]
    right = [column.justify == "right" for column in table.columns]
    ends = {0, *(number for number, row in enumerate(table.rows, start=1) if row.end_section)}
    lines = []
    for number, cells in enumerate(zip(*columns, strict=True)):
        for texts in zip_longest(*cells, fillvalue=""):
            padded = (
                f"{' ' * (width - cell_len(text))}{text}" if to_right else f"{text}{' ' * (width - cell_len(text))}"
                for text, width, to_right in zip(texts, widths, right, strict=True)
            )
            lines.append("   ".join(padded).rstrip())
        if number in ends and number < table.row_count:
            lines.append("" if number else "─" * (sum(widths) + 3 * len(widths) - 3))
    return lines


def _cell_lines(cell: RenderableType) -> list[str]:
    from rich.padding import Padding

    indent = ""
    while isinstance(cell, Padding):
        indent, cell = " " * cell.left, cell.renderable
    return [f"{indent}{line}" for line in str(cell).split("\n")]


class WidthAlternatives:
    """For what can always be broken: `wide` in a console of that many columns or more, else `narrow`."""

    def __init__(self, columns: int, wide: RenderableType, narrow: RenderableType) -> None:
        self._columns = columns
        self._wide, self._narrow = wide, narrow

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._wide if options.max_width >= self._columns else self._narrow


IN_CELL_MAX = 40
"""Characters: what is no longer stands in the cell itself."""


class Footnotes:
    """Why values are absent, stated once below a table: a trial that failed has no value in any line.

    Collects long texts in the order in which cells ask for them.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []

    def mark(self, text: str) -> str:
        """What stands in the cell: the text, or `[1]` for a long one."""
        if len(text) <= IN_CELL_MAX:
            return text
        if text not in self._texts:
            self._texts.append(text)
        return f"[{self._texts.index(text) + 1}]"

    def lines(self) -> list[str]:
        """`[1] why`, one each."""
        return [f"[{number}] {text}" for number, text in enumerate(self._texts, start=1)]
