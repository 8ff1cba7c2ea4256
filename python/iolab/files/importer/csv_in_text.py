"""CSV tables among sentences, as in a mail: a line of names, and rows below it with as many entries. Each is read as a
file of its own would be, if a name states what figures are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from iolab.files.importer.csv_file import FORMAT as CSV_FILE
from iolab.files.importer.csv_metrics import FORMAT as CSV_METRICS
from iolab.files.importer.csv_rounds import FORMAT as CSV_ROUNDS
from iolab.files.importer.format import Format
from iolab.files.importer.quantity_cell import quantity
from iolab.files.importer.results import Results
from iolab.files.importer.separated_rows import NAME_WORDS_MAX, ROWS_MIN, SEPARATORS, states_metric
from iolab.files.importer.source import Line, Source
from iolab.files.importer.written_number import is_number


def tables(source: Source) -> Iterator[list[Line]]:
    """The lines of each header with two or more rows that have as many commas, semicolons or tabs; none of a text that
    is longer than mails are."""
    lines = list(source.lines(lambda what, line: None)) if source.is_short else []
    place = 0
    while place < len(lines):
        found = max((_table(lines, place, separator) for separator in SEPARATORS), key=len)
        if len(found) > ROWS_MIN:
            yield found
        place += max(len(found), 1)


def ends_in_text(source: Source) -> bool:
    """Whether the first table has a blank line below it, and then text that is no row of it."""
    rows = next(tables(source), None)
    below = source.text_lines[rows[-1].number :] if rows else []
    if rows is None or not any(map(str.strip, below)) or below[0].strip():
        return False
    separator = max(SEPARATORS, key=rows[0].text.count)
    return not any(line.count(separator) == rows[0].text.count(separator) for line in below)


def _table(lines: Sequence[Line], place: int, separator: str) -> list[Line]:
    """The lines of the table that begins there, if one does."""
    names = _entries(lines[place].text, separator)
    are_names = not any(_is_figure(name) or len(name.split()) > NAME_WORDS_MAX for name in names)
    if len(names) < 2 or not all(names) or not are_names:
        return []
    below = (lines[at] for at in range(place + 1, len(lines)))
    rows = takewhile(lambda line: _is_row(_entries(line.text, separator), len(names)), below)
    return [lines[place], *rows]


def _is_row(entries: list[str], columns: int) -> bool:
    return len(entries) == columns and any(map(_is_figure, entries))


def _entries(text: str, separator: str) -> list[str]:
    return [entry.strip() for entry in text.strip().split(separator)]


def _is_figure(entry: str) -> bool:
    return quantity(entry) is not None or is_number(entry.replace(",", "."))


def _read(source: Source) -> Iterator[tuple[list[Line], Source, Format]]:
    """The tables that can be read, each as the source that it would be alone, and its format."""
    for found in tables(source):
        names = max((found[0].text.split(separator) for separator in SEPARATORS), key=len)
        part = Source(
            source.path,
            label=source.label,
            part="\n".join(line.text for line in found) + "\n",
            first_line=found[0].number,
        )
        known = (one for one in (CSV_ROUNDS, CSV_METRICS, CSV_FILE) if one.recognises(part))
        if any(map(states_metric, names)) and (one := next(known, None)):
            yield found, part, one


def _parse(source: Source, results: Results) -> None:
    for lines, part, one in _read(source):
        results.lines_read |= {line.number for line in lines}
        one.parse(part, results)


FORMAT = Format(
    name="csv-in-text",
    help="CSV tables among sentences, as in a mail, whose columns state what figures are",
    recognises=lambda source: any(True for _ in _read(source)),
    parse=_parse,
    words=("setting,", "iops,", "kernel,"),
    titled=True,
    is_written=True,
)
