"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable


def markdown_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table; bars in cells are escaped."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
