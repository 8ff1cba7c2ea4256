"""Tables that are made with spaces, as in mails: a line of names above lines that begin with a name, or with how much
was done, and go on with figures alone. What is measured stands in the names, or in the text just above."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from iolab.domain import parameter
from iolab.files.importer.columns import (
    CHANGES,
    MEASURED,
    OF_RESULT,
    RATIO,
    are_counts,
    are_sizes,
    is_amount,
    is_change,
    stated_in,
    unit_in,
)
from iolab.files.importer.csv_layout import ROUND, SETTING
from iolab.files.importer.durations import seconds
from iolab.files.importer.format import Format
from iolab.files.importer.headings import of_lines
from iolab.files.importer.quantity_cell import (
    NAME_OF_SPREAD,
    SPACED,
    left_out_behind,
    quantities,
    quantity,
    several,
    unit_of,
    without_spread,
)
from iolab.files.importer.results import Results
from iolab.files.importer.source import Line, Source
from iolab.files.importer.stated_units import StatedUnits
from iolab.files.importer.text import ABSENT, QUOTED_MAX
from iolab.files.importer.text_table import add

CONTEXT_LINES = 3
HEADING_LINES_MAX = 2
"""From the first line of a heading to the second, with a rule between."""
ROWS_MIN = 2
COLUMNS_MIN = 2
_GAP = re.compile(r"\s{2,}+|\t+|(?<=B/s) (?=~?\d)|(?<=IOPS) (?=~?\d)")
"""A figure with its unit ends a cell, too."""
_RULE = re.compile(r"[-=+\s]+$")
_DASHES = re.compile(r" {0,8}-{2,}+(?>(?: ++-{2,}+)+)\s*+")
_CHANGE = re.compile(r"(?<=\S)\s++(?:[(\[]\s{0,3})?[-+~]?\d[\d.]*+ ?[%x\u00d7][)\]]?$")
"""Behind a row's figures, below no name: computed anew."""
_CHANGED = re.compile(CHANGES, re.IGNORECASE)
_MARKED = re.compile(r"(?<=[\d%])\s+\*{1,3}$")
"""A row's last figure, marked as significant."""
_SPREAD = re.compile(r"(?<=[\d%]) \([\d.]++ ?%?\)(?=\s|$)")
"""`1021.3 (12.1)`, where the text says what stands in brackets."""
_CLOCK = ("min:sec", "h:m:s", "mm:ss", "m:s")
"""How durations such as `6:29` are said to be written, behind a row."""
_BEGINS_AS_FIGURE = re.compile(r"~?\d[\d.,]*+ ?[A-Za-z/]{1,8}$")
_ENTRY = re.compile(r"\s*[-*\u2022] ")
"""Of a list: no line of names."""
_GOES_ON = re.compile(r"(?:and|or|of|to|with|the) \S")
"""A sentence that has two spaces somewhere."""
_KERNEL = re.compile(r"[2-7]\.\d{1,2}(?:\.\d{1,3})?(?:-\w+)?")
"""A version that is called like a figure, in a line of nothing else."""
_ABOVE_TESTS = re.compile(r"tests?|benchmarks?|workloads?|kernels?|versions?|cases?|jobs?", re.IGNORECASE)
_SHARE = re.compile(r"\d{1,3}(?:\.\d+)? ?%")
"""Of the load, as the name of a row."""
_PERCENTILE = re.compile(r"p?\d\d(?:\.\d{1,4})?(?:%|th)?|min|avg|mean|max|median", re.IGNORECASE)
_WORD = re.compile(r"(?<!\S)[-+~]?\d[\d.,]*+ (?:[kKMGT]?i?B/s(?:ec)?|[nmuµ]?s|[kM]?IOPS|ops/s(?:ec)?)(?!\S)|\S+")
"""A figure with its unit is one."""
_NAMED_ROW = re.compile(r"(?P<name>\S[^:]{0,100}):\s+(?P<figures>\d\S*(?:\s+\d\S*)*)$")
"""`patched, 128 KiB: 3.1 2.4 47.3%`, whatever spaces are in the name."""


@dataclass
class _Found:
    """A table, while it is read."""

    line: int
    text: str
    header: list[str]
    context: list[str]
    """The lines above, the nearest first."""
    names_joined: list[str] | None = None
    """The names that several lines state together, if they do."""
    are_words: bool = False
    """Whether single spaces part its columns."""
    names: int = 1
    """The columns of text before those of figures."""
    rows: list[list[str]] = field(default_factory=list)
    last: int = 0
    """The line of the last row."""
    left_out: dict[str, None] = field(default_factory=dict)
    """What stands in rows and is not read."""
    beside: list[Line] = field(default_factory=list)
    """Lines right below the rows that end in a figure, and are none."""

    @cached_property
    def has_spreads(self) -> bool:
        """Whether the heading, or the text above it, says that spreads stand in brackets."""
        return any(map(NAME_OF_SPREAD.search, (self.text, *self.context)))

    def may_go_on(self, line: Line) -> bool:
        """Whether the line may be the second of its heading."""
        is_near = line.number - self.line <= HEADING_LINES_MAX
        return not self.rows and is_near and len(_cells(self.text)) >= COLUMNS_MIN

    def is_whole(self, below: str) -> bool:
        """Whether there are rows enough: a single one with nothing `below`, in wide columns called by words."""
        are_words = len(self.header) > COLUMNS_MIN and not any(map(str.isdecimal, self.header))
        is_sure = are_words and not below and not self.are_words and self.names_joined is None
        return len(self.rows) >= (1 if is_sure else ROWS_MIN)

    def takes(self, line: Line) -> bool:
        """Whether the line is a row: as many columns as the heading has, parted by two spaces or more, or as many
        words. The first row decides."""
        text = _MARKED.sub("", line.text.strip())
        if len(set(self.header)) < len(self.header):
            return False
        if self.has_spreads and _SPREAD.search(text):
            self.left_out["spreads in brackets are left out: they are no rounds"] = None
            text = _SPREAD.sub("", text)
        begins_below = not self.rows and not self.header[0] and _end(line.text) > _indent(self.text)
        if (change := _CHANGE.search(text)) and len(_cells(text)) > len(self.header) - begins_below:
            self.left_out["changes behind rows are left out: they are computed anew"] = None
            text = text[: change.start()]
        cells, words, heading = _cells(text), _WORD.findall(text), self.text.split()
        if (named := _NAMED_ROW.match(text)) and len(figures := named["figures"].split()) == len(self.header) - 1:
            cells = [" ".join(named["name"].split()), *figures]
        if not self.rows and not self.header[0] and len(cells) == len(self.header) - 1:
            self.header = self.header[1:]
        if len(cells) == len(self.header) + 1 and _is_unit(unit := cells[-1].strip("()[]")):
            cells = [cells[0], *(f"{cell} {'min' if unit in _CLOCK else unit}" for cell in cells[1:-1])]
        more = len(cells) - len(self.header)
        if more > 0 and _figures(cells[more + 1 :]) and not any(_figures([cell]) for cell in cells[1 : more + 1]):
            cells = [" ".join(cells[: more + 1]), *cells[more + 1 :]]  # Spaces within a name.
        if len(cells) == len(self.header) - 1 > COLUMNS_MIN and is_change(self.header[-1]):
            cells.append("-")  # Of the row that the others are compared with.
        if not self.rows and not COLUMNS_MIN <= len(cells) == len(self.header):
            self.are_words = len(words) == len(heading) == len(set(heading)) > COLUMNS_MIN
            self.header = heading if self.are_words else self.header
        if not self.rows and not self.are_words and len(words) == len(heading) and SPACED.search(text):
            return False  # Thousands with a space, or figures of two columns.
        cells = words if self.are_words else cells
        names = next((place for place, cell in enumerate(cells) if _figures([cell])), 0)
        is_version = self.header[0].lower() in SETTING and bool(cells and _KERNEL.fullmatch(cells[0]))
        is_version |= self.header[0].lower() in ROUND and bool(cells) and cells[0].isdecimal()
        is_version |= (
            not self.header[0]
            and bool(cells)
            and bool(_SHARE.fullmatch(cells[0]) or parameter.SIZE.fullmatch(cells[0]))
        )
        if not names and cells and (is_version or is_amount(self.header[0], cells[:1]) or self._counts(cells[0])):
            names = 1 + next((place for place, cell in enumerate(cells[1:]) if _figures([cell])), 0)
        if not COLUMNS_MIN <= len(cells) == len(self.header) or not names:
            return False
        if not _figures(cells[names:]) and not (self.rows and not self.are_words and _is_almost(cells[names:])):
            return False
        self.names = self.names if self.rows or self.are_words else names
        if names != self.names:
            return False
        self.left_out |= dict.fromkeys(left_out_behind(cells[names:]))
        self.rows.append([*cells[:names], *map(without_spread, cells[names:])])
        return True

    def _counts(self, cell: str) -> bool:
        """Whether a whole number that begins a row is what was set, left of columns that are called by results, or by
        what was changed."""
        first, *others = self.header
        is_first = cell.isdecimal() and bool(first) and not (OF_RESULT.search(first) or _CHANGED.fullmatch(first))
        return is_first and (any(map(OF_RESULT.search, others)) or all(map(_CHANGED.fullmatch, others)))


def _cells(text: str) -> list[str]:
    return [cell for cell in _GAP.split(text.strip()) if cell]


def _indent(text: str) -> int:
    expanded = text.expandtabs()
    return len(expanded) - len(expanded.lstrip())


def _end(text: str) -> int:
    """Where the first cell of a line ends."""
    return _indent(text) + len(next(iter(_cells(text)), ""))


def _is_unit(cell: str) -> bool:
    one = None if cell[:1].isdigit() else quantity(f"1 {cell}")
    return cell in _CLOCK or (one is not None and one.metric is not None)


def _is_almost(cells: list[str]) -> bool:
    """Whether all begin as figures, of which one has a unit of its own."""
    others = [cell for cell in cells if not _figures([cell])]
    return len(others) == 1 < len(cells) and bool(_BEGINS_AS_FIGURE.match(others[0]))


def _figures(cells: list[str]) -> bool:
    return all(
        cell.lower() in ABSENT
        or RATIO.fullmatch(cell)
        or seconds(cell, is_duration=True)
        or quantities(bare := without_spread(cell))
        or SPACED.fullmatch(cell)
        or several(bare)
        for cell in cells
    )


def _by_dashes(lines: Sequence[Line]) -> Iterator[Line]:
    """The lines, with wide gaps between cells that single spaces part, where dashes below the names show how wide
    columns are."""
    columns: list[slice] = []
    for line, below in zip(lines, [*lines[1:], Line(0, "")], strict=True):
        if _DASHES.fullmatch(below.text):
            columns = [slice(*group.span()) for group in re.finditer("-+", below.text)]
            columns[-1] = slice(columns[-1].start, None)
        elif not line.text.strip():
            columns = []
        cells = [line.text[column].strip() for column in columns]
        is_whole = "".join(cells).replace(" ", "") == "".join(line.text.split())
        are_apart = not any(line.text[one.stop : other.start].strip() for one, other in pairwise(columns))
        is_row = all(cells) and is_whole and are_apart and not _RULE.fullmatch(line.text)
        yield Line(line.number, "   ".join(cells)) if is_row and _cells(line.text) != cells else line


def _tables(lines: Iterable[Line]) -> Iterator[_Found]:
    lines = list(_by_dashes(list(lines)))
    units = StatedUnits(lines)
    for found in _parted(lines):
        found.context.append(units.below(found.last))
        yield found


def _parted(lines: Iterable[Line]) -> Iterator[_Found]:
    above: list[str] = []
    last = 0
    found: _Found | None = None
    is_apart = False
    """Whether a line without text is below its rows."""
    for line in lines:
        text = line.text.strip()
        if text and _RULE.fullmatch(text):
            continue
        if found is not None and found.rows and not text:
            is_apart = True
            continue
        if found is not None and found.takes(line):
            found.last, is_apart = line.number, False
            continue
        if found is not None and found.rows and not is_apart and _figures(_MARKED.sub("", text).split()[-1:]):
            found.beside.append(line)
            continue
        if found is not None and found.is_whole("" if is_apart else text):
            yield found
        is_apart = False
        own = _header(line)
        joined = _joined(found, line, own)
        context = above[: -CONTEXT_LINES - 1 : -1]
        found = _Found(line.number, line.text, joined or own, context, joined) if own else None
        if text:
            goes_on = text[0].islower() and line.number == last + 1 and above and above[-1][-1] not in ".:;!?"
            above.append(f"{above[-1]} {text}" if goes_on else text)
            last = line.number
    if found is not None and found.is_whole(""):
        yield found


def _joined(above: _Found | None, line: Line, names: list[str]) -> list[str] | None:
    """The names of the line with those of the heading begun `above`; None if it does not go on here."""
    if above is None or not names or not above.may_go_on(line):
        return None
    joined = of_lines(above.text, line.text)
    if joined is None or above.names_joined is None:
        return joined
    # Of three lines, the last two have a name for each column.
    if len(names) != len(above.names_joined):
        return None
    return [" ".join(filter(None, pair)) for pair in zip(above.names_joined, names, strict=True)]


def _header(line: Line) -> list[str]:
    """The names in a line that may be a heading, or a part of one; none if it is no such line."""
    cells = _cells(line.text)
    columns = max(len(cells), len(line.text.split()) - 1)
    is_title = line.text.rstrip().endswith(":")
    has_figures = any(quantities(cell) or MEASURED.search(cell) for cell in cells)
    are_names = (
        are_counts(cells[1:])
        or are_sizes(cells[1:])
        or are_sizes(cells)
        or all(_PERCENTILE.fullmatch(cell) for cell in cells)
        or (line.text[:1].isspace() and all(map(_KERNEL.fullmatch, cells)))
        or (
            len(cells) > COLUMNS_MIN
            and bool(_ABOVE_TESTS.fullmatch(cells[0]) or parameter.plain(cells[0]) in parameter.AMOUNTS)
            and all(map(_KERNEL.fullmatch, cells[1:]))
        )
    )
    is_entry = bool(_ENTRY.match(line.text)) or any(cell.count("[") != cell.count("]") for cell in cells)
    goes_on = any(map(_GOES_ON.match, cells[1:]))
    is_labelled = 0 < len(cells) <= COLUMNS_MIN and (": " in cells[0] or cells[0].endswith(":"))
    if is_title or is_entry or is_labelled or goes_on or columns < COLUMNS_MIN or (has_figures and not are_names):
        return []
    return cells if line.text[:1].strip() else ["", *cells]


def _of_results(found: _Found) -> bool:
    cells = [cell for row in found.rows for cell in row[found.names :]]
    have_units = any(MEASURED.search(cell) or seconds(cell, is_duration=True) for cell in cells)
    have_units |= any(len(row) - found.names > 1 and all(map(_has_metric, row[found.names :])) for row in found.rows)
    is_stated = any(OF_RESULT.search(line) or stated_in(line) for line in found.context)
    are_metrics = any(OF_RESULT.search(row[0].replace("_", " ")) or unit_in(row[0]) for row in found.rows)
    have_units |= any(unit_in(name) or unit_of(name) for name in found.header)
    return bool(have_units or any(map(OF_RESULT.search, found.header)) or is_stated or are_metrics)


def _has_metric(cell: str) -> bool:
    return any(one.metric for one in quantities(cell))


def _parse(source: Source, results: Results) -> None:
    for found in filter(_of_results, _tables(source.lines(results.problem))):
        header = found.header
        if not any(map(OF_RESULT.search, header)) or all(map(_PERCENTILE.fullmatch, header[1:])):
            what = next(filter(None, map(stated_in, found.context)), "")
            shares = {place for row in found.rows for place, cell in enumerate(row) if cell.endswith("%")}
            header = [
                name if place in shares or not place else f"{name} {what}".strip() for place, name in enumerate(header)
            ]
        results.lines_read |= {*range(found.line, found.last + 1), *(line.number for line in found.beside)}
        for what in found.left_out:
            results.problem(what, found.line)
        for line in found.beside:
            results.problem(
                f"not as many figures as the heading has: left out, {line.text.strip()[:QUOTED_MAX]!r}", line.number
            )
        add(results.table(found.line, caption=header[0] or None), header, found.rows, source, results)


def _of_text(source: Source) -> Iterator[_Found]:
    return _tables(Line(number, text) for number, text in enumerate(source.text_lines, 1))


def _recognises(source: Source) -> bool:
    return any(map(_of_results, _of_text(source)))


def without_metric(source: Source) -> tuple[int, int, bool] | None:
    """The first and the last line of a table of the text that does not say what its figures are, and whether all are
    changes."""
    found = next((one for one in _of_text(source) if len(one.rows) >= ROWS_MIN and not _of_results(one)), None)
    if found is None:
        return None
    are_changes = all(RATIO.fullmatch(cell) for row in found.rows for cell in row[found.names :])
    return found.line, found.last, are_changes


FORMAT = Format(
    name="aligned",
    help="tables made with spaces in a text: names above figures, with what they are in a name or just above",
    recognises=_recognises,
    parse=_parse,
    words=("IOPS", "MB/s", "baseline", "patched"),
    titled=True,
    is_written=True,
)
