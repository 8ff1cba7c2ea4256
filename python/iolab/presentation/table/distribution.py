"""Published distributions, for people: the rows as posted, then a line per pair and reading, with its verdict."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from iolab.base.plain_text import counted
from iolab.base.quantity import ABSENT, change
from iolab.presentation.table.layout import Alternatives
from iolab.presentation.table.plain import STYLES, empty_table, indented

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from iolab.studies.reproduction.distributions import ComparedRows, Distribution, Reading

COLUMNS = ("lowest", "mean", "highest", "std dev")


def drawn(found: Distribution) -> Iterator[RenderableType]:
    """What was published, and what each reading makes of it."""
    from rich.text import Text

    decimals = max(len(f"{row.mean:.10g}".partition(".")[2]) for row in found.rows.values())
    yield _rows(found, decimals)
    for reading in found.readings:
        yield Text(f"\nIndependent: {reading.unit}, {counted(reading.n, 'value')} of each row", style="bold")
        yield Alternatives(_compared(reading, decimals), _compared(reading, decimals, stacked=True))


def _rows(found: Distribution, decimals: int) -> Table:
    table = empty_table()
    table.add_column(counted(found.rounds, "round"), overflow="fold")
    for column in COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    for name, row in found.rows.items():
        table.add_row(name, *(f"{figure:.{decimals}f}" for figure in (row.low, row.mean, row.high, row.sd)))
    return table


def _compared(reading: Reading, decimals: int, *, stacked: bool = False) -> Table:
    """`stacked`: the verdict below the difference, for a narrow console."""
    from rich.text import Text

    table = empty_table()
    table.add_column("against, row", overflow="fold")
    table.add_column("difference [95 % interval]", justify="right", no_wrap=True)
    if not stacked:
        table.add_column("verdict", no_wrap=True)
    for heading in ("decide", "see it"):
        table.add_column(f"rounds to\n{heading}", justify="right", no_wrap=True)
    for baseline, found in groupby(reading.compared, key=lambda one: one.pair.baseline):
        table.add_row(Text(baseline, style="dim"))
        for one in found:
            table.add_row(indented(one.pair.candidate), *_cells(one, decimals, stacked=stacked))
    return table


def _cells(one: ComparedRows, decimals: int, *, stacked: bool) -> list[RenderableType]:
    from rich.text import Text

    contrast = one.contrast
    ends = (f"{end:+.{decimals}f}" for end in (contrast.difference_low, contrast.difference_high))
    difference = f"{change(contrast.ratio)}  {contrast.difference:+.{decimals}f} [{', '.join(ends)}]"
    verdict = Text(contrast.verdict, style=STYLES[contrast.verdict])
    cells = [Text("\n").join([Text(difference), verdict])] if stacked else [Text(difference), verdict]
    return [*cells, *(_rounds(number) for number in (one.rounds_to_decide, one.rounds_to_see))]


def _rounds(number: int | None) -> str:
    return ABSENT if number is None else f"{number:,}"
