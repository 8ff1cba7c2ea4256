"""What an importer is: a format, and for formats that are tables the walk through a text, header, rows and all."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from iolab.files.importer.results import Results, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.text import Captions, is_rest_of_row, is_rule


@dataclass(frozen=True)
class Format:
    """A format of other programs' results, as the registry `formats.FORMATS` has it."""

    name: str
    help: str
    recognises: Callable[[Source], bool]
    parse: Callable[[Source, Results], None]
    """Adds what it finds; problems that leave something to be read are added to the results. InputError otherwise."""
    words: tuple[str, ...]
    """Typical of such files: they find an unrecognised file's nearest formats."""
    among_text: bool = True
    """A text table that may stand in a mail with others; False: the whole file is of this format or not at all."""
    titled: bool = False
    """Whether its tables may stand under titles that name their settings: it prints no line that looks like one."""
    times_commands: bool = False
    """Whether it states how long commands took, which may print figures of their own."""
    is_written: bool = False
    """Whether people write it themselves: then a row of bare figures that is not read is stated, too."""
    own: re.Pattern[str] | None = None
    """Lines that it prints and that are not read: progress, and what other lines of its report state too."""
    resembles: Callable[[Source], bool] = lambda source: False
    """Whether a file that no format recognises is meant to be one of this: then `parse` states what is wrong with
    it."""


class TableReader(ABC):
    """Reads every table of its kind. `table` is the one that the lines belong to, None between tables."""

    def __init__(self, source: Source, results: Results) -> None:
        self.source = source
        self.results = results
        self.captions = Captions()
        self.columns: list[str] = []
        self.table: Table | None = None

    @abstractmethod
    def header(self, line: Line) -> bool:
        """Whether the line is a table's header; if so, opens `table` and sets `columns`."""

    @abstractmethod
    def row(self, line: Line, table: Table) -> bool:
        """Whether the line is a row of the table; if so, it is added."""

    def between(self, line: Line) -> None:  # noqa: B027
        """Any other line: settings that hold for the tables after it may be remembered. Most tables need none."""

    def end(self) -> None:  # noqa: B027
        """All lines are read: what was left out may be noted. Most tables need none."""

    def read(self) -> None:
        """Reads the whole source into the results. A table cut off in its last line is a problem noted there."""
        cut: Line | None = None
        for line in self.source.lines(self.results.problem):
            if not line.text.strip():
                continue
            cut = None
            if self.header(line):
                self.results.lines_read.add(line.number)
                self.captions.read(line, in_table=True)
                continue
            if self.table is not None:
                if is_rule(line) or self.row(line, self.table):
                    self.results.lines_read.add(line.number)
                    self.captions.read(line, in_table=True)
                    continue
                if is_rest_of_row(line, len(self.columns)):
                    cut = line
                self.table = None
            self.captions.read(line)
            self.between(line)
        if cut is not None:
            self.results.problem("the table is cut off in this line, which is left out", cut.number)
        self.end()


def parser(reader: Callable[[Source, Results], TableReader]) -> Callable[[Source, Results], None]:
    """A format's `parse` that is done by such a reader."""

    def parse(source: Source, results: Results) -> None:
        reader(source, results).read()

    return parse
