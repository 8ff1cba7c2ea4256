"""The scorecard for people: how well the models meet what was published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING

from iolab.presentation.table.layout import Alternatives
from iolab.presentation.table.plain import SENTENCE_WIDTH_MAX, empty_table
from iolab.studies.reproduction.part import Part
from iolab.studies.reproduction.scorecard import HEAD, overall, scores

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

LEFT_OUT_FIRST = ("cells", "fitted", "chosen", "within 25 %", "null")
"""For a narrow console."""


def scorecard(parts: Sequence[Part]) -> Iterator[RenderableType]:
    """A line for each, and what they come to together."""
    from rich.constrain import Constrain
    from rich.text import Text

    if any(part["kind"] == "table" for part in parts):
        yield Alternatives(_lines(parts, HEAD), _lines(parts, [head for head in HEAD if head not in LEFT_OUT_FIRST]))
    yield Constrain(Text("\n" + " ".join(overall(parts))), SENTENCE_WIDTH_MAX)


def _lines(parts: Sequence[Part], columns: Sequence[str]) -> Table:
    chosen = [head in columns for head in HEAD]
    drawn = empty_table()
    name, *numbers = columns
    drawn.add_column(name, overflow="fold")
    for number in numbers:
        drawn.add_column(number.replace(" ", "\n", 1), justify="left" if number == "null" else "right", no_wrap=True)
    for score in scores(parts):
        drawn.add_row(*compress(score.words(), chosen))
    return drawn
