"""Why values are absent, told once below a table: a trial that failed has no value in any line."""

from __future__ import annotations

IN_CELL_MAX = 40
"""Characters: what is no longer stands in the cell itself."""


class Footnotes:
    """Collects long texts in the order in which cells ask for them."""

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
