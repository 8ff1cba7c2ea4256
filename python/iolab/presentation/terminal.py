"""What is printed for people: tables and text, coloured on a terminal, plain elsewhere; and the streams it goes to.

Names and messages come from files of anybody's. Nothing of them reaches a stream that a terminal would obey: `guarded`
streams write it out, and what is drawn here has the same done to it before colours are added.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import IO, TYPE_CHECKING, Any, TextIO

from iolab.base.plain_text import visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_WIDTH_WITHOUT_TERMINAL = 120
"""Columns for a pipe or a file: what a mail, a log or a page shows without breaking lines."""


class StyledText(str):
    """Text whose control sequences are iolab's own: its colours."""

    __slots__ = ()


class GuardedStream:
    """A text stream that nothing but `StyledText` makes a terminal do anything."""

    def __init__(self, stream: TextIO) -> None:
        self.unguarded = stream

    def write(self, text: str) -> int:
        """Writes the text with what a terminal would obey made visible; what rich has drawn stays as it is."""
        self.unguarded.write(text if isinstance(text, StyledText) else visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes each text as `write` does; no ends of lines are added."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Standard output and error as `GuardedStream`; one that is closed takes what is written and drops it."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_guarded(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _guarded(stream: TextIO | None) -> Any:
    if stream is None:
        stream = open(os.devnull, "w")  # noqa: SIM115, PTH123 (as long as the process)
    if hasattr(stream, "reconfigure"):  # a character that the language's encoding lacks is no reason to end
        stream.reconfigure(errors="backslashreplace")
    return GuardedStream(stream)


def console(stream: IO[str] | None = None, **options: Any) -> Console:
    """A console that draws on a stream, by default what standard output is, and shows what it is given as it is: no
    markup, no emoji, and no control sequences but its own. In a notebook it shows nothing there by itself."""
    found: Console = _console_class()(
        file=getattr(stream, "unguarded", stream),
        force_jupyter=False,
        highlight=False,
        markup=False,
        emoji=False,
        **options,
    )
    return found


@cache
def _console_class() -> Any:
    from rich.console import Console, ConsoleOptions
    from rich.segment import Segment

    class PlainlyShown(Console):
        def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=visible(segment.text))

    return PlainlyShown


def text_of(*parts: RenderableType) -> StyledText:
    """The parts as text for stdout, one below the other; no colour if NO_COLOR is set or stdout is no terminal."""
    is_terminal = sys.stdout.isatty()
    width = None if is_terminal or "COLUMNS" in os.environ else _WIDTH_WITHOUT_TERMINAL
    drawing = console(sys.stdout, width=width)
    with drawing.capture() as captured:
        for part in parts:
            drawing.print(part)
    if is_terminal:
        return StyledText(captured.get())
    return StyledText("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def show(*parts: RenderableType) -> None:
    """Prints the parts, one below the other."""
    sys.stdout.write(text_of(*parts))
