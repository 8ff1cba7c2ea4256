"""What is wrong with an experiment: every problem of the file at once, a line each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path as Folder
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from iolab.base import matrix
from iolab.base.errors import InputError
from iolab.base.option import explain, shown
from iolab.base.plain_text import counted
from iolab.base.toml import Document, TomlTable

M = TypeVar("M", bound=BaseModel)
Path = tuple[str | int, ...]


class Problems:
    """Collects; `raise_any` raises them in file order as one InputError."""

    def __init__(self, document: Document, copies: Folder | None = None) -> None:
        self._document = document
        self.copies = copies
        """Where a run keeps the files that its experiment names; None: the experiment is no run's."""
        # A problem in a matrix is met once per member; the reader needs it once.
        self._found: dict[tuple[Path, str], None] = {}

    def add(self, path: Sequence[str | int], what: str) -> None:
        """Notes what is wrong with the key at `path`. The same problem noted twice is one problem."""
        self._found[tuple(path), what] = None

    def aside(self) -> Problems:
        """An empty collection about the same file, to be looked through with `found` before anything is added here."""
        return Problems(self._document, self.copies)

    def found(self) -> list[tuple[Path, str]]:
        """The problems in the order in which they were noted: path of the key, and what is wrong with it."""
        return list(self._found)

    @property
    def file(self) -> str:
        """The file's name as errors give it."""
        return self._document.name

    def has(self, path: Sequence[str | int]) -> bool:
        """Whether the file has a key at `path`."""
        return tuple(map(str, path)) in self._document.lines

    def where(self, path: Sequence[str | int]) -> str:
        """The place of a key for an error line: `file.toml:12`."""
        return f"{self._document.name}:{self._document.line(path)}"

    def raise_any(self) -> None:
        """Raises InputError with a line per problem, in the order of the file's lines; nothing if there is none."""
        if self._found:
            in_file_order = sorted(self._found, key=lambda problem: self._document.line(problem[0]))
            raise InputError([self._line(path, what) for path, what in in_file_order])

    def validated(
        self,
        model: type[M],
        table: TomlTable,
        path: Sequence[str],
        subject: str,
        *,
        listed_by: str | None = None,
    ) -> M | None:
        """`table` as a `model`, or None with its problems noted. `subject` is who takes the options and `listed_by` the
        command that lists them, for messages."""
        try:
            return model.model_validate(table, context={"experiment": self._document.name, "copies": self.copies})
        except ValidationError as error:
            for detail in error.errors():
                key, what = explain(detail, model, subject, listed_by)
                self.add((*path, *key), what)
            return None

    def members(
        self,
        table: TomlTable,
        natural_lists: frozenset[str],
        path: Sequence[str],
        axis_label: matrix.AxisLabel = lambda _path, _value: None,
    ) -> list[matrix.Member]:
        """The tables that a matrix stands for; none, with the problem noted, when it is empty or too large."""
        axes = matrix.axes(table, natural_lists.__contains__)
        for axis in axes:
            if not axis.values:
                self.add((*path, *axis.path), "an empty list; a matrix needs at least one value")
        if matrix.size(axes) > matrix.MEMBERS_MAX:
            self.add(path, f"{counted(matrix.size(axes), 'member')}; expected at most {matrix.MEMBERS_MAX}")
            return []
        return matrix.expand(table, axes, axis_label)

    def check_name(self, name: str, path: Sequence[str]) -> None:
        """Notes a problem if the user's name at `path` has characters that files, keys or tables could not show."""
        if not re.fullmatch(r"[\w.+:-]([\w.+: -]*[\w.+:-])?", name):
            self.add(path, f'{shown(name)}: a name has letters, digits, spaces and "_", "-", ".", "+", ":" only')

    def check_label(self, name: str, path: Sequence[str]) -> None:
        """Notes a problem if a name that never becomes a file's, such as a setting's, could not be shown in a line, or
        be told from the labels of a matrix."""
        if not re.fullmatch(r"\S(.*\S)?", name) or not name.isprintable() or "[" in name or "]" in name:
            self.add(path, f"{shown(name)}: a name has printable characters, no [ or ], and no blank around it")

    def _line(self, path: Path, what: str) -> str:
        key = dotted(path)
        return f"{self.where(path)}: {key}: {what}" if key else f"{self.where(path)}: {what}"


def dotted(path: Path) -> str:
    """`("drives", 0, "queue")` -> `drives.0.queue`."""
    return ".".join(map(str, path))
