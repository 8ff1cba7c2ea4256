"""Any CSV: a column for the setting, one for the round if there is one, and numbers.

Columns are known by their names (`csv_layout.py`); without a setting's column the first column of text is taken,
without any the file is one setting, of the workload `csv`. Columns that state what was measured, such as queue depths
and operations, distinguish workloads. Other columns of numbers are metrics, under their own names.
Rows of one round are averaged. Without a column of rounds each row is one; where that would be more than 2,000, rows
that follow each other are averaged in about 100 batches.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.domain.comparison import in_turns
from iolab.domain.metric import Key
from iolab.files.importer import pieces, text_table
from iolab.files.importer.columns import Grid, without_changes
from iolab.files.importer.csv_entries import PLAIN, number
from iolab.files.importer.csv_layout import Layout, is_table, layout_of
from iolab.files.importer.csv_rows import BATCHES, Group, batched, groups, with_unit
from iolab.files.importer.format import Format
from iolab.files.importer.iostat import COLUMNS as IOSTAT
from iolab.files.importer.metric_names import metric_of, plain_name
from iolab.files.importer.quantity_cell import Quantity, quantity, unit_of, ways_in
from iolab.files.importer.results import MAIN, Results, Row
from iolab.files.importer.source import Source
from iolab.files.importer.table_units import with_unit_of_names

if TYPE_CHECKING:
    import polars as pl

WORKLOAD = "csv"
"""The workload of a table that names none, if the file's name is its setting's."""
SECOND_NS = 1e9
ENDLESS_NAMED_MAX = 4
_ENDS = re.compile(r"(?P<bare>.+)[ _](?P<unit>us|usec|ms|msec)")
TYPED_ROWS_MAX = 100
"""Of a table that a person typed. Chosen."""


def _parse(source: Source, results: Results) -> None:
    layout = layout_of(source)
    if settings := _settings_in_columns(layout, source):
        text_table.add(results.table(source.first_line), *settings, source, results)
        return
    if layout.left_out:
        results.problem(f"columns of text are left out: {', '.join(layout.left_out)}")
    if layout.notation.decimal == ",":
        results.problem("commas in numbers are taken as decimal signs")
    if layout.notation.grouping:
        name = {".": "points", ",": "commas", " ": "spaces"}.get(layout.notation.grouping, layout.notation.grouping)
        results.problem(f"{name} in numbers are taken as separators of thousands")
    content = source.content
    end = pieces.end_of_whole_lines(content.path, len(layout.columns), layout.separator, results)
    found, endless = groups(content.path, layout, end)
    for one in endless[:ENDLESS_NAMED_MAX]:
        results.problem(f"column {one.column}: '{one.entry}' is no finite number, left out", one.line)
    if (more := len(endless) - ENDLESS_NAMED_MAX) > 0:
        results.problem(f"{counted(more, 'more entry', 'more entries')} left out that are no finite numbers")
    most = max((group.rows for group in found), default=0)
    if batched(layout):
        results.problem(f"many rows and no column of rounds: they are averaged in {BATCHES} batches, as rounds")
    elif most > 1:
        results.problem(f"up to {counted(most, 'row')} share their setting and round; they are averaged, as one round")
    if not _take_turns(found, layout):
        results.problem(
            "no column numbers rounds, and the settings do not take turns in the rows: rows are not paired; a column "
            "called round pairs those of one round"
        )
    if any("\ufffd" in entry for group in found for entry in group.key):
        results.problem("names are not UTF-8: what could not be read in them stands as \ufffd")
    _add(found, layout, source, results)


def _settings_in_columns(layout: Layout, source: Source) -> Grid | None:
    """The names and the rows of a short table whose columns are settings: one unit in all of their names."""
    have_units = any(one.metric for one in layout.units.values())
    if layout.setting or layout.round or layout.cases or have_units or layout.rows_about > TYPED_ROWS_MAX:
        return None
    kept = [layout.columns.index(name) for name in (layout.workload, *layout.metrics) if name]
    lines = csv.reader(source.head_lines, delimiter=layout.separator)
    written = [[row[place].strip() for place in kept] for row in lines if len(row) == len(layout.columns)]
    names, rows = without_changes(written[0], written[1:])
    if layout.notation.decimal == ",":
        rows = [[row[0], *(cell.replace(".", "").replace(",", ".") for cell in row[1:])] for row in rows]
    return (names, rows) if layout.workload and with_unit_of_names(names, rows) != (names, rows) else None


@dataclass(frozen=True)
class PlainTable:
    """A table whose columns are named by hand, as `iolab.base.csv_table` reads it."""

    text: pl.DataFrame | None
    """Its entries, if the file's are not written as programs write numbers, or not in UTF-8; None: the file's are."""
    renamed: Mapping[str, str]
    """What columns are called in it whose entries have units, by their names in the file."""
    left_out: Sequence[str]
    """Columns of text that distinguish nothing."""


def plain_table(path: Path) -> PlainTable:
    """The file's entries with decimal points, without separators of thousands, and in the units of metrics."""
    source = Source(path)
    try:
        layout = layout_of(source)
    except InputError:
        return PlainTable(None, {}, ())
    if layout.notation == PLAIN and not layout.units and _is_utf_8(path):
        return PlainTable(None, {}, layout.left_out)
    import polars as pl

    with source.content.path.open("rb") as file:
        file.seek(layout.begin)
        lines = io.StringIO(file.read().decode(errors="replace"))
    rows = [list(map(str.strip, row)) for row in csv.reader(lines, delimiter=layout.separator) if row]
    whole = [row for row in rows if len(row) == len(layout.columns)]
    if len(whole) < len(rows):
        return PlainTable(None, {}, layout.left_out)
    text = pl.DataFrame(whole, schema=dict.fromkeys(layout.columns, pl.String), orient="row")
    renamed = {}
    for column, (phase, op, metric, _) in zip(layout.metrics, _meanings(layout), strict=True):
        written = [_plainly(entry, layout, column) for entry in text[column]]
        text = text.with_columns(pl.Series(column, written))
        if column in layout.units:
            renamed[column] = str(Key(None if phase == MAIN else phase, op, metric))
    text.columns = [renamed.get(name, name) for name in text.columns]
    return PlainTable(text, renamed, layout.left_out)


def _plainly(entry: str, layout: Layout, column: str) -> str:
    """The entry as a number that needs no explanation, or as it is if it is none."""
    read = with_unit(entry) if column in layout.units else number(entry, layout.notation)
    return entry if read is None else "" if math.isnan(read) else repr(read)


def _is_utf_8(path: Path) -> bool:
    with path.open(encoding="utf-8") as file:
        try:
            return all(True for _ in iter(lambda: file.read(1 << 20), ""))
        except UnicodeDecodeError:
            return False


def _add(found: Sequence[Group], layout: Layout, source: Source, results: Results) -> None:
    table = results.table(source.first_line)
    names = _meanings(layout)
    keys = layout.keys
    # A file that is one setting among several measured the same as the others, whatever it is called.
    unnamed = WORKLOAD if source.label or layout.setting is None else source.stem_without_round
    number_of = _rounds_shared(found, layout)
    table.numbers_rounds = bool(number_of)
    for group in _by_round(found, layout) if layout.round else found:
        entries = dict(zip(keys, group.key, strict=False))
        setting = entries.get(layout.setting or "") or source.stem_without_round
        workload = entries.get(layout.workload or "") or unnamed
        if layout.cases:
            workload += f"[{','.join(f'{name}={entries[name]}' for name in layout.cases)}]"
        phases: dict[str, Row] = {}
        for place, (phase, op, metric, scale) in enumerate(names):
            row = phases.get(phase) or phases.setdefault(phase, table.row(setting, workload, phase))
            row.round = number_of.get(entries.get(layout.round or "", ""), 0)
            mean = group.mean(place)
            row.add(metric, None if mean is None else mean * scale, op=op, absent="empty in the file")


def _take_turns(found: Sequence[Group], layout: Layout) -> bool:
    """Whether the rows pair: by a column of rounds, or as each workload's settings take turns."""
    if not layout.setting or _rounds_shared(found, layout):
        return True
    of_setting = layout.keys.index(layout.setting)
    others = [place for place, name in enumerate(layout.keys) if name not in (layout.setting, layout.round)]
    places: dict[tuple[str, ...], dict[str, list[int]]] = {}
    for place, group in enumerate(_by_round(found, layout) if layout.round else found):
        by_setting = places.setdefault(tuple(group.key[one] for one in others), {})
        by_setting.setdefault(group.key[of_setting], []).append(place)
    return all(in_turns(*by_setting.values()) for by_setting in places.values() if _repeats(by_setting.values()))


def _repeats(places: Collection[Sequence[int]]) -> bool:
    return sum(len(one) > 1 for one in places) > 1


def _rounds_shared(found: Sequence[Group], layout: Layout) -> dict[str, int]:
    """The number of each entry in the column of rounds, so that a round that one setting lacks moves no other. None of
    them if no two settings have the same entry: then it counts runs, and the rounds of each setting are its own."""
    if not layout.round or not layout.setting:
        return {}
    of_round, of_setting = layout.keys.index(layout.round), layout.keys.index(layout.setting)
    settings: dict[tuple[str, ...], set[str]] = {}
    for group in found:
        others = tuple(entry for place, entry in enumerate(group.key) if place != of_setting)
        settings.setdefault(others, set()).add(group.key[of_setting])
    if all(len(having) == 1 for having in settings.values()):
        return {}
    return {name: place for place, name in enumerate(dict.fromkeys(g.key[of_round] for g in _by_round(found, layout)))}


def _by_round(found: Sequence[Group], layout: Layout) -> list[Group]:
    """Rounds in their own order, so that those of two settings pair up; those that are no number at the end."""
    place = layout.keys.index(layout.round or "")

    def order(group: Group) -> tuple[float, int]:
        try:
            return float(group.key[place]), group.place
        except ValueError:
            return float("inf"), group.place

    return sorted(found, key=order)


IOSTAT_MIN = 3
"""So many columns that are called as iostat's are such. Chosen."""


def _meanings(layout: Layout) -> list[tuple[str, str, str, float]]:
    """Phase, operation, metric of each column, and what its figures are multiplied by: units of time and thousands in
    parentheses are applied, as are those of the entries. Of two columns that mean the same metric, the second keeps
    its name."""
    found: list[tuple[str, str, str, float]] = []
    taken: set[tuple[str, str, str]] = set()
    are_of_iostat = len(IOSTAT.keys() & set(layout.metrics)) >= IOSTAT_MIN
    for column in layout.metrics:
        if are_of_iostat and column in IOSTAT:
            metric, op, scale = IOSTAT[column]
            found.append(("main", op, metric, scale))
            taken.add(found[-1][:3])
            continue
        of_entries = layout.units.get(column)
        meaning = _with_unit(column) if of_entries is None else (*_measured(column, of_entries), 1.0)
        if meaning is None or meaning[:3] in taken:
            meaning = (*metric_of(column), 1.0)
        if meaning[:3] in taken:
            meaning = ("main", "all", plain_name(column), 1.0)
        found.append(meaning)
        taken.add(meaning[:3])
    return found


def _with_unit(column: str) -> tuple[str, str, str, float] | None:
    """`Read lat (µs)` -> `read.latency_ns_mean`, `IOPS [k]` -> `iops`; None without such a unit."""
    found = unit_of(column)
    if found is None:
        # `p99_us`, as programs write it.
        ends = _ENDS.fullmatch(column)
        one_of = quantity(f"1 {ends['unit']}") if ends else None
        meant = _measured(ends["bare"], one_of) if ends and one_of else None
        is_latency = meant is not None and meant[2].startswith("latency_ns_")
        return (*meant, one_of.value) if is_latency and meant and one_of else None
    bare, one = found
    if one.metric == "ns" and one.value < SECOND_NS:
        return *_measured(bare, one), one.value
    if one.metric == "iops":
        return *_measured(bare, one), one.value
    return None


def _measured(name: str, one: Quantity) -> tuple[str, str, str]:
    """Phase, operation and metric of a column that is called so, and has such quantities."""
    phase, op, plain = metric_of(name.strip())
    op = next(iter(ways_in(name)), op)
    return phase, op, one.metric_called(name) or (f"{plain}_ns" if one.metric == "ns" else plain)


OF_TRACE = frozenset(("COMM", "PID", "DISK", "SECTOR", "BYTES"))
"""Columns of biosnoop: a row is an I/O, and the file a trace."""


def _recognises(source: Source) -> bool:
    try:
        return not OF_TRACE.issubset(layout_of(source).columns)
    except InputError:
        return False


FORMAT = Format(
    name="csv",
    help="any table of values separated by commas, semicolons or tabs, with a header",
    recognises=_recognises,
    parse=_parse,
    words=("setting,", "round,", "kernel,", "workload,"),
    among_text=False,
    resembles=is_table,
)
