"""What the columns of a CSV file are, as its first lines show."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from iolab.base.csv_table import ABSENT
from iolab.base.errors import InputError
from iolab.files.importer.source import Source
from iolab.files.importer.text import QUOTED_MAX, is_number

SETTING = ("setting", "kernel", "variant", "config", "configuration", "scheduler", "identifier", "version", "label")
WORKLOAD = ("workload", "benchmark", "test", "job", "case")
ROUND = ("round", "run", "iteration", "iter", "repeat", "rep", "trial")
IGNORED = ("trial", "status", "seed", "position", "attempt")
"""The columns of iolab's own `show --as csv` beside a column of rounds."""

COLUMNS_MAX = 10_000
SEPARATORS = ",;\t"
ROWS_LOOKED_AT = 1000


@dataclass
class Layout:
    """Which column of a CSV file is what, and how its rows are separated."""

    separator: str
    columns: list[str]
    begin: int
    """Where the first row starts in the file, in bytes."""
    rows_about: int
    """From the file's size and the length of its first lines."""
    decimal: str = "."
    setting: str | None = None
    workload: str | None = None
    round: str | None = None
    metrics: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def keys(self) -> list[str]:
        """The columns that distinguish rows (setting, workload, round), in the file's order."""
        return [column for column in self.columns if column in (self.setting, self.workload, self.round)]


def layout_of(source: Source) -> Layout:
    """InputError if the file is no table of comma-separated values with a header and numbers."""
    separator, (header, *body) = _head_rows(source)
    names = [name.strip() for name in header]
    _check_header(source, names)
    whole = [row for row in body if len(row) == len(names)]
    if not whole or 2 * len(whole) < len(body):
        raise InputError(
            "most lines have not as many fields as the header" if body else "nothing below the header",
            where=source.name,
            remedy=f"expected {len(names)} fields in each line" if body else "expected a line per measurement",
        )
    values = dict(zip(names, zip(*whole, strict=True), strict=True))
    layout = Layout(separator, names, source.after_first_line, source.lines_about, _decimal(separator, whole))
    lower = {name.lower(): name for name in reversed(names)}
    layout.setting, layout.workload, layout.round = (
        next((lower[name] for name in known if name in lower), None) for known in (SETTING, WORKLOAD, ROUND)
    )
    numeric = [name for name in names if _is_numeric(values[name], layout.decimal)]
    are_numbers = frozenset(numeric)
    text = [name for name in names if name not in are_numbers]
    if numeric and all(map(is_number, numeric)):
        raise InputError(
            f"the header names columns by numbers, {', '.join(numeric[:3])[:QUOTED_MAX]}: is it a line of the table?",
            where=f"{source.name}:1",
            remedy="add a line that names the columns",
        )
    if layout.setting is None:
        layout.setting = next((name for name in text if name not in (layout.workload, layout.round)), None)
    special = {layout.setting, layout.workload, layout.round}
    ignored = {lower[name] for name in IGNORED if layout.round and name in lower}
    layout.metrics = [name for name in numeric if name not in special | ignored]
    layout.left_out = [name for name in text if name not in special | ignored]
    if not layout.metrics:
        raise InputError("no column with numbers", where=source.name, remedy="expected a header and numbers below it")
    return layout


def is_table(source: Source) -> bool:
    """Whether the first lines look like one, whatever is wrong with them: two or more with as many separators."""
    lines = [line for line in source.head_lines[:ROWS_LOOKED_AT] if line.strip()][:3]
    return len(lines) > 1 and any(
        lines[0].count(separator) and len({line.count(separator) for line in lines}) == 1 for separator in SEPARATORS
    )


def number(entry: str, decimal: str) -> float | None:
    """NaN if it is missing, None if it is neither that nor a number."""
    entry = entry.strip()
    if entry.lower() in ABSENT:
        return float("nan")
    try:
        if decimal == ".":
            return float(entry)
        return None if "." in entry else float(entry.replace(decimal, "."))
    except ValueError:
        return None


def _head_rows(source: Source) -> tuple[str, list[list[str]]]:
    lines = "\n".join(source.head_lines[: ROWS_LOOKED_AT + 1]).lstrip("\n").split("\n")
    separator = max(SEPARATORS, key=lines[0].count)
    if separator not in lines[0] and not _is_one_column(lines):
        raise InputError("no table", where=source.name, remedy="expected commas, semicolons or tabs between columns")
    if source.is_quoted:
        raise InputError(
            "the table is quoted as in a mail", where=source.name, remedy="take the '> ' off: sed 's/^> //'"
        )
    try:
        return separator, [row for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=separator) if row]
    except csv.Error as error:
        raise InputError(f"not a table: {error}", where=source.name) from None


def _is_one_column(lines: Sequence[str]) -> bool:
    """Whether it is a word with nothing but numbers below it."""
    entries = [line.strip() for line in lines[1:] if line.strip()]
    return bool(lines[0].strip()) and bool(entries) and all(map(is_number, entries))


def _check_header(source: Source, names: Sequence[str]) -> None:
    """InputError if the first line does not name the columns."""
    where = f"{source.name}:1"
    if len(names) > COLUMNS_MAX:
        raise InputError(f"{len(names):,} columns, expected at most {COLUMNS_MAX:,}", where=where)
    if all(is_number(name) or not name for name in names):
        raise InputError("numbers where the header belongs", where=where, remedy="add a line that names the columns")
    if not all(names):
        raise InputError(f"column {names.index('') + 1} has no name", where=where, remedy="name it in the header")
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(
            f"two columns are called '{twice[:QUOTED_MAX]}'", where=where, remedy="give each a name of its own"
        )


def _decimal(separator: str, rows: Sequence[Sequence[str]]) -> str:
    """The comma, if it separates nothing else and no number has a point."""
    entries = [entry.strip() for row in rows for entry in row]
    return "," if separator != "," and _some(_COMMA, entries) and not _some(_POINT, entries) else "."


_COMMA = re.compile(r"[-+]?\d++,\d++(?:[eE][-+]?\d++)?").fullmatch
_POINT = re.compile(r"[-+]?\d++\.\d++(?:[eE][-+]?\d++)?").fullmatch


def _some(test: Callable[[str], object], entries: Sequence[str]) -> bool:
    return any(test(entry) for entry in entries)


def _is_numeric(entries: Sequence[str], decimal: str) -> bool:
    """Mostly numbers, so that what else stands in the column is a mistake."""
    present = [entry for entry in entries if entry.strip().lower() not in ABSENT]
    return bool(present) and 2 * sum(number(entry, decimal) is not None for entry in present) > len(present)
