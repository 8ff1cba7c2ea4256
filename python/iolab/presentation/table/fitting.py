"""One thing drawn in several ways, as the console has room."""

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
