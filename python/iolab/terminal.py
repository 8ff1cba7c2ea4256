"""What is printed for people: tables and text, coloured on a terminal, plain elsewhere."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

_WIDTH_WITHOUT_TERMINAL = 120
"""Columns for a pipe or a file: what a mail, a log or a page shows without breaking lines."""


def text_of(*parts: RenderableType) -> str:
    """The parts as text for stdout, one below the other; no colour where NO_COLOR is set or stdout is no terminal."""
    from rich.console import Console

    is_terminal = sys.stdout.isatty()
    width = None if is_terminal or "COLUMNS" in os.environ else _WIDTH_WITHOUT_TERMINAL
    console = Console(width=width, highlight=False, markup=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    if is_terminal:
        return captured.get()
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def show(*parts: RenderableType) -> None:
    """Prints the parts, one below the other."""
    sys.stdout.write(text_of(*parts))
