"""The rows of a CSV file, counted and summed by setting, workload and round."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from iolab import _native
from iolab.base.csv_table import ABSENT
from iolab.base.errors import InputError
from iolab.files.importer import pieces
from iolab.files.importer.csv_entries import number
from iolab.files.importer.csv_layout import Layout
from iolab.files.importer.quantity_cell import quantity
from iolab.files.importer.text import QUOTED_MAX

ROUNDS_MAX = 2000
"""Of a file; more rows are single operations rather than rounds. Chosen."""
BATCHES = 100


@dataclass
class Group:
    """Rows of the same setting, workload and round. Without a column of rounds, a row or a batch of them."""

    key: list[str]
    """Entries of the layout's `keys`; without a column of rounds, and the batch."""
    place: int
    """Where it first appears: rising through the file."""
    rows: int
    counts: list[int]
    """The count of the numbers that are there, by metric."""
    sums: list[float]

    def mean(self, metric: int) -> float | None:
        """The mean of the column of this number; None if no row has a value."""
        return self.sums[metric] / self.counts[metric] if self.counts[metric] else None


class Endless(NamedTuple):
    """An entry that is no finite number, such as `1e400`: left out."""

    line: int
    column: str
    entry: str


def groups(path: Path, layout: Layout, end: int) -> tuple[list[Group], list[Endless]]:
    """In the order in which they first appear; `end` is where the last row ends, in bytes. And what is left out.

    InputError for the first line that has more or fewer fields than the header, or text where numbers belong.
    """
    left_out: list[Endless] = []
    if layout.units or layout.notation.grouping or (layout.round is None and not batched(layout)):
        return list(_read_by_row(path, layout, end, left_out)), left_out
    try:
        found = _read_in_pieces(path, layout, end)
        if all(math.isfinite(value) for group in found for value in group.sums):
            return found, left_out
    except ValueError as error:
        # The line may be wrong, or part of a quoted text that spans lines.
        if error.args and isinstance(error.args[0], int):
            line, text = pieces.line_at(path, error.args[0])
            if '"' not in text:
                list(_numbered_rows([text], layout, line, []))
    return list(_read_by_row(path, layout, end, left_out)), left_out


def batched(layout: Layout) -> bool:
    """Whether rows are averaged in about `BATCHES` batches: there are many, and nothing states which round they are."""
    return layout.round is None and layout.rows_about > ROUNDS_MAX


def _read_in_pieces(path: Path, layout: Layout, end: int) -> list[Group]:
    """The fast way. ValueError(offset) for a line that is too unusual for it, ValueError for what is no UTF-8."""
    role = dict.fromkeys(layout.keys, "key") | dict.fromkeys(layout.metrics, "number")
    columns = [role.get(name, "ignored") for name in layout.columns]
    batch_bytes = -(-(end - layout.begin) // BATCHES) if batched(layout) else 0

    def new() -> _native.RowGroups:
        return _native.RowGroups(
            separator=layout.separator, decimal=layout.notation.decimal, columns=columns, batch_bytes=batch_bytes
        )

    return [Group(*group) for group in pieces.added_up(path, layout.begin, end, new).groups()]


def _read_by_row(path: Path, layout: Layout, end: int, left_out: list[Endless]) -> Iterable[Group]:
    """The slow way, which takes whatever csv does, and names the place of what is wrong and of what is `left_out`."""
    length = -(-layout.rows_about // BATCHES) if batched(layout) else 1
    places = {name: place for place, name in enumerate(layout.columns)}
    keys = [places[name] for name in layout.keys]
    found: dict[tuple[str, ...], Group] = {}
    with path.open("rb") as file:
        first_line = file.read(layout.begin).count(b"\n") + 1
        lines = _texts(file, end, layout.name)
        for row, (fields, numbers) in enumerate(_numbered_rows(lines, layout, first_line, left_out)):
            key = [fields[place].strip() for place in keys]
            if layout.round is None:
                key.append(str(row // length))
            group = found.get(tuple(key))
            if group is None:
                group = found[tuple(key)] = Group(key, row, 0, [0] * len(numbers), [0.0] * len(numbers))
            group.rows += 1
            for metric, value in enumerate(numbers):
                if not math.isnan(value):
                    group.counts[metric] += 1
                    group.sums[metric] += value
    return found.values()


def _texts(file: BinaryIO, end: int, name: str) -> Iterator[str]:
    """The lines from where the file stands to `end`. InputError for one that is longer than 16 MiB."""
    while file.tell() < end and (line := file.readline(pieces.LINE_BYTES_MAX + 1)):
        if len(line) > pieces.LINE_BYTES_MAX:
            raise pieces.line_too_long(name)
        yield line.decode(errors="replace")


def _numbered_rows(
    lines: Iterable[str], layout: Layout, first_line: int, left_out: list[Endless]
) -> Iterator[tuple[list[str], list[float]]]:
    """Fields and numbers of each row, NaN for one that is missing or `left_out`. InputError for a row that does not fit
    the header."""
    place_of = {name: place for place, name in enumerate(layout.columns)}
    places = [(name, place_of[name]) for name in layout.metrics]
    reader = csv.reader(lines, delimiter=layout.separator)
    line = first_line
    try:
        for fields in reader:
            line = first_line + reader.line_num - 1
            is_remark = len(fields) < len(layout.columns) and "".join(fields).lstrip().startswith("#")
            if not fields or is_remark or [field.strip() for field in fields] == layout.columns:
                # Files that were put into one have their header again.
                continue
            if len(fields) != len(layout.columns):
                raise InputError(
                    f"{len(fields)} fields, and the header names {len(layout.columns)}",
                    where=f"{layout.name}:{line}",
                    remedy="a field that holds the separator has to be in quotes",
                )
            numbers = [
                with_unit(fields[place]) if name in layout.units else number(fields[place], layout.notation)
                for name, place in places
            ]
            if None in numbers:
                name, place = places[numbers.index(None)]
                raise InputError(
                    f"'{fields[place].strip()[:QUOTED_MAX]}' is not a number",
                    where=f"{layout.name}:{line}, column {name[:QUOTED_MAX]}",
                    remedy="leave a missing value empty",
                )
            left_out += [
                Endless(line, name, fields[place].strip()[:QUOTED_MAX])
                for (name, place), value in zip(places, numbers, strict=True)
                if value is not None and math.isinf(value)
            ]
            yield fields, [math.nan if math.isinf(value) else value for value in numbers if value is not None]
    except csv.Error as error:
        raise InputError(f"not a table: {error}", where=f"{layout.name}:{line}") from None


def with_unit(entry: str) -> float | None:
    """The number of an entry with its unit; NaN if it is missing, None if it is neither."""
    if entry.strip().lower() in ABSENT:
        return float("nan")
    found = quantity(entry.strip())
    return found.value if found is not None else None
