"""What is wrong with a job file: every problem at once, a line each."""

from __future__ import annotations

from iolab.base.errors import InputError


class Problems:
    """Collects; `raise_any` raises them in file order as one InputError."""

    def __init__(self, name: str) -> None:
        self.name = name
        """What errors call the file."""
        self._found: dict[tuple[int | None, str], None] = {}

    def add(self, line: int | None, what: str) -> None:
        """`line` is None for what does not stand in the file. The same problem of several jobs is one problem."""
        self._found[line, what] = None

    def where(self, line: int | None) -> str:
        return self.name if line is None else f"{self.name}:{line}"

    def lines(self) -> list[str]:
        in_file_order = sorted(self._found, key=lambda problem: problem[0] or 0)
        return [f"{self.where(line)}: {what}" for line, what in in_file_order]

    def raise_any(self) -> None:
        if self._found:
            raise InputError(self.lines())
