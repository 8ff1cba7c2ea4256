"""What a terminal would show, for a notebook."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from iolab.presentation.terminal import console

if TYPE_CHECKING:
    from rich.console import RenderableType

HTML_COLUMNS = 110


def html(*parts: RenderableType) -> str:
    """Names in it are escaped, colours are the notebook's or readable on white and on black."""
    drawing = console(StringIO(), width=HTML_COLUMNS, record=True, force_terminal=True, color_system="truecolor")
    for part in parts:
        drawing.print(part)
    return drawing.export_html(
        inline_styles=True,
        code_format='<pre style="line-height:1.25;overflow-x:auto;white-space:pre">{code}</pre>',
    )
