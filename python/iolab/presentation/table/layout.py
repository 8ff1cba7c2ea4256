"""How a table is laid out: drawn in one of several ways, as the console has room, with long texts told below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult


_UNBOUNDED = 100_000
"""Columns: beyond what anything takes, so that a measure says what it would like to have."""


class FirstThatFits:
    """The first of the alternatives that fits without a break; the last where none does."""

    def __init__(self, *alternatives: RenderableType) -> None:
        self._alternatives = alternatives

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.measure import Measurement

        unbounded = options.update_width(_UNBOUNDED)
        fitting = (
            drawn
            for drawn in self._alternatives
            if Measurement.get(console, unbounded, drawn).maximum <= options.max_width
        )
        yield next(fitting, self._alternatives[-1])


class WideFrom:
    """For what can always be broken: `wide` in a console of that many columns or more, else `narrow`."""

    def __init__(self, columns: int, wide: RenderableType, narrow: RenderableType) -> None:
        self._columns = columns
        self._wide, self._narrow = wide, narrow

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._wide if options.max_width >= self._columns else self._narrow


IN_CELL_MAX = 40
"""Characters: what is no longer stands in the cell itself."""


class Footnotes:
    """Why values are absent, told once below a table: a trial that failed has no value in any line.

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
