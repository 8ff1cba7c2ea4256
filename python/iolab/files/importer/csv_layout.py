"""What the columns of a CSV file are, as its first lines show."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.domain import parameter
from iolab.files.importer import csv_entries
from iolab.files.importer.quantity_cell import Quantity, quantity
from iolab.files.importer.separated_rows import NAME_WORDS_MAX, SEPARATORS
from iolab.files.importer.source import Source
from iolab.files.importer.text import QUOTED_MAX
from iolab.files.importer.unread_figures import has_unit
from iolab.files.importer.written_number import is_number

SETTING = (
    *(
        "setting",
        "kernel",
        "variant",
        "setup",
        "config",
        "configuration",
        "scheduler",
        "identifier",
        "version",
        "label",
    ),
    *("command", "algorithm", "codec", "compressor", "filesystem", "file system", "fs"),
    *("method", "backend", "driver", "approach", "environment", "platform"),
)
WORKLOAD = (
    *("workload", "benchmark", "test", "job", "case", "stage", "item", "operation", "function", "query"),
    *("pattern", "access pattern"),
)
ROUND = (
    *("round", "run", "iteration", "iter", "repeat", "rep", "trial", "attempt", "pass", "loop"),
    *("lauf", "durchlauf", "durchgang", "messung", "essai"),
)
IGNORED = ("trial", "status", "seed", "position", "attempt")
"""The columns of iolab's own `show --as csv` beside a column of rounds."""

NO_SETTING = ("status", "detailed status", "state", "result", "error", "comment", "note", "notes", "remark")
"""Columns of text that state how it went, not what was set."""

METRIC_COLUMN = ("metric", "metrics", "measure", "measurement", "quantity", "statistic", "counter")
UNNAMED = "\0"
"""How columns without a name are called here; they are passed over."""

COLUMNS_MAX = 10_000
ROWS_LOOKED_AT = 1000

_PREFACE = re.compile(r"\s*+(?:#.*|sep=.)?$")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
"""Separators of thousands, in a line with words."""
_LETTER = re.compile(r"[A-Za-z]")
_LABELLED = re.compile(r"\s*+[A-Za-z][^:]{0,60}:\s*+~?\d[\d.]*+ ?[kKMG]?\b")
"""`with the patch: 54k`."""
_REMARK = re.compile(r"^\s*+#+\s*+")


@dataclass
class Layout:
    """Which column of a CSV file is what, and how its rows are separated."""

    separator: str
    columns: list[str]
    begin: int
    """Where the first row starts in the file, in bytes."""
    rows_about: int
    """From the file's size and the length of its first lines."""
    name: str
    """What errors call the file."""
    notation: csv_entries.Notation = csv_entries.PLAIN
    cases: list[str] = field(default_factory=list)
    """Columns that distinguish what was measured: queue depths, operations, devices."""
    setting: str | None = None
    workload: str | None = None
    round: str | None = None
    metrics: list[str] = field(default_factory=list)
    units: dict[str, Quantity] = field(default_factory=dict)
    """Columns whose entries have their units: what kind of quantity they are."""
    left_out: list[str] = field(default_factory=list)

    @property
    def keys(self) -> list[str]:
        """The columns that distinguish rows (setting, workload, cases, round), in the file's order."""
        keys = {self.setting, self.workload, self.round, *self.cases}
        return [column for column in self.columns if column in keys]


def _is_figure(name: str) -> bool:
    """Whether it is a rate: `45000 IOPS`, but not `4k IOPS`, which is of blocks, nor `10 ms`, which is a bucket."""
    found = None if parameter.SIZE.fullmatch(name.partition(" ")[0]) else quantity(name)
    return found is not None and found.metric not in (None, "ns")


def layout_of(source: Source) -> Layout:
    """InputError if the file is no table of comma-separated values with a header and numbers."""
    begin, separator, (header, *body) = head_rows(source)
    names = [name.strip() for name in header]
    if all(_LABELLED.match(row[0]) for row in body if len(row) > 1) and any(len(row) > 1 for row in body):
        raise InputError(
            "its lines are labels with figures", where=source.name, remedy="expected a table with a header"
        )
    whole = [row for row in body if len(row) == len(names) and [entry.strip() for entry in row] != names]
    if any(len(name.split()) > NAME_WORDS_MAX and has_unit(name) for name in names):
        raise InputError("its first line is a sentence", where=source.name, remedy="expected a table with a header")
    names = _named(source, names, whole)
    if not whole or 2 * len(whole) < len(body):
        raise InputError(
            "most lines have not as many fields as the header" if body else "nothing below the header",
            where=source.name,
            remedy=f"expected {len(names)} fields in each line" if body else "expected a line per measurement",
        )
    values = dict(zip(names, zip(*whole, strict=True), strict=True))
    layout = Layout(separator, names, begin, source.lines_about, source.name)
    lower = {name.lower(): name for name in reversed(names)}
    layout.setting, layout.workload, layout.round = (
        next((lower[name] for name in known if name in lower), None) for known in (SETTING, WORKLOAD, ROUND)
    )
    special = {layout.setting, layout.workload, layout.round}
    layout.notation = csv_entries.notation(source, {name: values[name] for name in names if name not in special})
    numeric = [name for name in names if csv_entries.are_numbers(values[name], layout.notation)]
    are_numbers = frozenset(numeric)
    text = [name for name in names if name not in are_numbers]
    of_row = [name for name in names if _is_figure(name)] or (numeric if all(map(is_number, numeric)) else [])
    if of_row:
        raise InputError(
            f"the header names columns by numbers, {', '.join(of_row[:3])[:QUOTED_MAX]}: is it a line of the table?",
            where=f"{source.name}:1",
            remedy="add a line that names the columns",
        )
    others = [name for name in text if name not in special and not name.startswith(UNNAMED)]
    kinds = {name: csv_entries.kind_of(name, values[name]) for name in others}
    layout.units = {
        name: unit
        for name in others
        if not csv_entries.is_parameter(name)
        and (unit := csv_entries.unit_of_all(values[name])) is not None
        # `4k` and `64k`, again and again, may be sizes.
        and (unit.metric is not None or kinds[name] == "numbers with units")
    }
    others = [name for name in others if name not in layout.units]
    numeric = [name for name in names if name in are_numbers or name in layout.units]
    if layout.setting is None:
        operations = {name for name in others if csv_entries.are_operations(values[name])}
        kinds |= dict.fromkeys(operations, "names")
        layout.setting = next(
            (
                name
                for name in others
                if kinds[name] not in ("dates", "numbers with units")
                and name not in operations
                and name.lower() not in NO_SETTING
                and not csv_entries.is_access(name)
            ),
            None,
        )
    special = {layout.setting, layout.workload, layout.round}
    ignored = {lower[name] for name in IGNORED if layout.round and name in lower}
    parameters = {name for name in numeric if csv_entries.is_parameter(name) and csv_entries.are_whole(values[name])}
    parameters |= {name for name in numeric if csv_entries.is_id(name, values[name])}
    parameters |= {name for name in others if kinds[name] == "names"}
    layout.cases = [name for name in names if name in parameters - special - ignored]
    layout.metrics = [
        name for name in numeric if name not in special | ignored | parameters and not name.startswith(UNNAMED)
    ]
    layout.left_out = [
        name for name in others if name not in special | ignored | parameters and kinds[name] != "constant"
    ]
    _refuse_units(source, layout, kinds, values)
    if not layout.metrics:
        raise InputError("no column with numbers", where=source.name, remedy="expected a header and numbers below it")
    return layout


def is_table(source: Source) -> bool:
    """Whether the first lines look like one, whatever is wrong with them: two or more with as many separators, the
    first of which has no figure with its unit."""
    written = (line for line in source.head_lines[:ROWS_LOOKED_AT] if not _PREFACE.match(line))
    lines = [_THOUSANDS.sub("", line) if _LETTER.search(line) else line for line in islice(written, 3)]
    return (
        len(lines) > 1
        and not (len(lines) == 2 and lines[0].rstrip()[-1] in SEPARATORS)
        and not has_unit(lines[0])
        and not lines[0].rstrip().endswith(":")
        and not all(map(_LABELLED.match, lines))
        and any(
            separator in lines[0]
            and max(len(cell.split()) for cell in lines[0].split(separator)) <= NAME_WORDS_MAX
            and len({len(row) for row in csv.reader(lines, delimiter=separator)}) == 1
            for separator in SEPARATORS
        )
    )


def head_rows(source: Source) -> tuple[int, str, list[list[str]]]:
    """Where the rows begin in the file, what separates entries, and the first rows with the header. Lines before the
    header that are remarks (`# ...`) or name the separator (`sep=;`) are passed over; a header may be such a line
    itself."""
    lines = source.head_lines[: ROWS_LOOKED_AT + 1]
    first = next((place for place, line in enumerate(lines) if not _PREFACE.match(line)), len(lines) - 1)
    separator = max(SEPARATORS, key=lines[first].count)
    last_remark = _REMARK.sub("", lines[first - 1]) if first else ""
    if _begins_with_header(last_remark, lines[first], separator):
        first, lines = first - 1, [*lines[: first - 1], last_remark, *lines[first:]]
    rows = lines[first:]
    if separator not in rows[0] and not _is_one_column(rows):
        raise InputError("no table", where=source.name, remedy="expected commas, semicolons or tabs between columns")
    if source.is_quoted:
        raise InputError(
            "the table is quoted as in a mail", where=source.name, remedy="take the '> ' off: sed 's/^> //'"
        )
    if source.is_wrapped:
        raise InputError(
            "the table stands in a log or a mail", where=source.name, remedy="take off what is before each line"
        )
    try:
        found = [row for row in csv.reader(io.StringIO("\n".join(rows)), delimiter=separator) if row]
    except csv.Error as error:
        raise InputError(f"not a table: {error}", where=source.name) from None
    return source.after_line(first + 1), separator, found


def _begins_with_header(remark: str, line: str, separator: str) -> bool:
    """Whether the remark above the line names its columns: the line has as many entries, and numbers among them."""
    entries = line.split(separator)
    return (
        len(entries) > 1
        and remark.count(separator) == len(entries) - 1
        and any(map(is_number, map(str.strip, entries)))
        and not any(map(is_number, map(str.strip, remark.split(separator))))
    )


def _is_one_column(lines: Sequence[str]) -> bool:
    """Whether it is a word with nothing but numbers below it."""
    entries = [line.strip() for line in lines[1:] if line.strip()]
    return bool(lines[0].strip()) and bool(entries) and all(map(is_number, entries))


def _named(source: Source, names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The columns' names. One without is passed over if it is empty, or counts rows as pandas writes it. InputError if
    the first line does not name the columns."""
    where = f"{source.name}:1"
    if len(names) > COLUMNS_MAX:
        raise InputError(f"{counted(len(names), 'column')}, expected at most {COLUMNS_MAX:,}", where=where)
    if all(is_number(name) or not name for name in names):
        raise InputError("numbers where the header belongs", where=where, remedy="add a line that names the columns")
    named = list(names)
    for place, name in enumerate(names):
        entries = [row[place].strip() for row in rows]
        is_count = place == 0 and entries == [str(number) for number in range(len(entries))]
        if not name and any(entries) and not is_count:
            raise InputError(f"column {place + 1} has no name", where=where, remedy="name it in the header")
        named[place] = name or f"{UNNAMED}{place}"
    twice = next((name for name, count in Counter(named).items() if count > 1), None)
    if twice is not None:
        raise InputError(
            f"two columns are called '{twice[:QUOTED_MAX]}'", where=where, remedy="give each a name of its own"
        )
    return named


def _refuse_units(
    source: Source, layout: Layout, kinds: Mapping[str, str], values: Mapping[str, Sequence[str]]
) -> None:
    """InputError for a column of measurements that are written with their unit, or with commas in them."""
    for name in layout.left_out:
        if kinds[name] == "numbers with units":
            entry = next(filter(None, map(str.strip, values[name])))
            raise InputError(
                f"'{entry[:QUOTED_MAX]}' is a number with something around it",
                where=f"{source.name}, column {name[:QUOTED_MAX]}",
                remedy="write numbers alone, such as 1234.5, and the unit into the header",
            )
