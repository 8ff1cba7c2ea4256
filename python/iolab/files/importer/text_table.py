"""A table of a text: names of columns, and cells below them.

Columns are known by their names, as in a CSV file; without a column of settings the first that has text is one. If rows
are called as metrics, or the figures of each row are of one kind, and no column is called as a metric, the columns are
the settings, or rounds if they are numbered; a row's name states its workload and metric."""

from __future__ import annotations

import re
from functools import partial
from itertools import islice

from iolab.base.plain_text import counted
from iolab.domain import parameter
from iolab.domain.definition import NAMELESS
from iolab.domain.metric import ALL
from iolab.files.importer import table_axes, table_cells, table_rest, table_units
from iolab.files.importer.columns import (
    OF_TEST,
    Grid,
    Problem,
    by_case,
    by_count,
    in_english,
    in_thousands,
    is_amount,
    settings_by_metric,
    settings_of,
    unit_in,
    with_amounts,
    without_changes,
)
from iolab.files.importer.csv_layout import ROUND, SETTING
from iolab.files.importer.listed import OF_NO_NAME as OF_ALL
from iolab.files.importer.listed import Entry, elapsed, named
from iolab.files.importer.metric_names import metric_of
from iolab.files.importer.quantity_cell import (
    Quantity,
    quantities,
    quantities_below,
    ways_in,
    with_thousands,
    without_spread_name,
    without_unit,
)
from iolab.files.importer.results import Results, Row, Table
from iolab.files.importer.source import Source
from iolab.files.importer.text import QUOTED_MAX

OF_NO_NAME = "table"
TITLE_LINES = 2
"""Those above a table that may say what it is. Chosen."""
_OPS = {"read": "read", "reads": "read", "write": "write", "writes": "write", "total": ALL, "both": ALL, "mixed": ALL}
"""What rows of operations are called, beside columns of sizes."""
TIME = "time_ns"
_IOPS = re.compile(r"\bIOPS\b")


def add(table: Table, header: list[str], rows: list[list[str]], source: Source, results: Results) -> None:
    """Adds a table of text: names of columns, and cells below them."""
    problem = partial(results.problem, line=table.line)
    above = _above(table.line, source)
    if table_rest.describes_machine(header, rows) or table_rest.is_of_link(rows, problem):
        return
    if table_rest.is_specified(header, rows, above, problem) or table_rest.are_changes(rows, above, problem):
        return
    header, rows = _of_results(table, header, rows, source, problem)
    whole = len(header)
    header, rows = without_changes(header, rows)
    if has_changes := len(header) < whole:
        problem("columns of changes are left out: they are computed anew")
    header, rows = table_units.with_shared_units(header, rows)
    header, rows = table_rest.without_text(header, rows, problem)
    whole_header = header
    are_settings = header[0].lower() in ("", *SETTING)
    header, rows = by_count(header, rows, OF_NO_NAME, are_settings=are_settings, above=above)
    names, named_rows = by_case(*with_amounts(header, rows))
    if is_amount(names[0], (amounts := [row[0] for row in named_rows])) and all(map(str.isdecimal, amounts)):
        named_rows = [[_case(names[0], row[0]), *row[1:]] for row in named_rows]
    if split := settings_of(names):
        called, metric = split
        are_settings = header[0].lower() in SETTING or table_axes.name_changes(row[0] for row in named_rows)
        if are_settings and not table_axes.name_changes(called):
            # Rows are what was changed, and columns are what was done.
            cells = zip(*(row[1:] for row in named_rows), strict=True)
            changed = [row[0] for row in named_rows]
            named_rows = [[name, *of_name] for name, of_name in zip(called, cells, strict=True)]
            called = changed
        left_out = _add_settings(table, called, metric, named_rows, source)
    elif by_metric := settings_by_metric(names):
        left_out = []
        for metric, places in by_metric.items():
            part = [[row[0], *(row[place] for place in places)] for row in named_rows]
            left_out += _add_settings(table, list(places.values()), metric, part, source)
    elif header != whole_header or len(named_rows) > len(rows):
        left_out = _add_settings(table, names[1:], NAMELESS, named_rows, source)
    elif parted := table_axes.without_conditions(header, rows):
        left_out = _add_columns(table, *parted, source)
    elif table_axes.rows_are_metrics(header, rows):
        left_out = _add_columns(table, *table_rest.of_mean(header, rows, problem), source)
    elif table_axes.columns_are_settings(*(bare := table_units.with_unit_of_names(header, rows))):
        left_out = _add_columns(table, *bare, source)
    elif table_axes.columns_are_settings(header, rows):
        left_out = _add_columns(table, header, rows, source)
    elif has_changes and (sides := table_axes.sides_of(header, rows)):
        called, metric, named_rows = sides
        if metric:
            left_out = _add_settings(table, called, metric, named_rows, source)
        else:
            left_out = _add_columns(table, [header[0], *called], named_rows, source)
    else:
        left_out = _add_rows(table, header, rows, source)
    if left_out:
        first = next((cell for cell in left_out if cell.lstrip("'\"~<>+-")[:1].isdecimal()), left_out[0])
        results.problem(
            f"{counted(len(left_out), 'cell')} without a single figure, such as {first}: left out", table.line
        )


def _above(line: int, source: Source) -> str:
    """The nearest lines of text above a table."""
    above = (text for text in reversed(source.text_lines[: line - 1]) if text.strip() and "|" not in text)
    return " ".join(islice(above, TITLE_LINES))


def _of_results(table: Table, header: list[str], rows: list[list[str]], source: Source, problem: Problem) -> Grid:
    """The table less what is no result, with a column for each figure, and units in names or cells."""
    header = _over_figures(header, rows)
    header, rows = table_units.of_changes(*table_cells.of_lines(header, rows), problem)
    header, rows = table_cells.by_side(header, rows)
    header, rows = table_rest.without_numbering(header, table_rest.without_changed(rows, problem))
    header, rows = table_cells.with_groups(header, rows)
    header, rows = table_rest.without_specified(header, rows, problem)
    rows = table_units.with_middles(header, table_cells.with_sizes_alike(rows), problem)
    rows = table_units.without_doubtful_points(header, table_units.with_bytes(rows, problem), problem)
    header, rows = table_units.with_stated_latencies(header, rows, source, table.line, problem)
    header, rows = list(map(in_english, header)), [[in_english(row[0]), *row[1:]] for row in rows]
    header, rows = table_units.with_latency_of_percentiles(header, rows)
    table.columns = [without_unit(name).strip() for name in header]
    header, rows = list(map(in_thousands, header)), with_thousands(rows)
    kept = [place for place, name in enumerate(header) if not place or name or any(row[place] for row in rows)]
    header, rows = [header[place] for place in kept], [[row[place] for place in kept] for row in rows]
    if header[0].lower() in ROUND:
        rows = [[f"#{row[0]}" if row[0].isdecimal() else row[0], *row[1:]] for row in rows]
    rows = table_units.with_durations(header, table_rest.without_numbers(rows, problem))
    header, rows = table_units.with_unit_of_corner(*table_units.with_row_of_units(header, rows))
    header = list(map(without_spread_name, header))
    header, rows = table_rest.of_rounds(header, table_units.with_units_behind(header, rows), problem)
    header, rows = table_units.with_unit_of_all(table_rest.without_prefix(header), rows)
    header, rows = table_cells.of_both(table_cells.spelled_out(header), rows, _above(table.line, source))
    header, rows = table_units.with_units(*table_cells.by_way(header, rows))
    header, rows = table_cells.by_statistic(header, rows, problem)
    header, rows = table_rest.without_same(header, rows, problem)
    header, rows = table_rest.without_repeated(table_cells.of_cpu(header), rows, problem)
    header, rows = table_rest.without_remarks(*table_rest.without_spreads(header, rows, problem))
    header, rows = table_rest.without_descriptions(header, rows, problem)
    nameless = [place for place, name in enumerate(header) if place and not name]
    if any(quantities(row[place]) for row in rows for place in nameless):
        problem(f"{counted(len(nameless), 'column')} of figures without a name: left out")
    return header, rows


def _over_figures(header: list[str], rows: list[list[str]]) -> list[str]:
    """The names of the columns, moved to the right if the first stands over the names of rows and the last over
    nothing."""
    are_moved = len(header) > 2 and all(header[:-1]) and not header[-1]
    if are_moved and rows and all(quantities(row[-1]) and not quantities(row[0]) for row in rows):
        return ["", *header[:-1]]
    return header


def _add_settings(table: Table, names: list[str], metric: str, rows: list[list[str]], source: Source) -> list[str]:
    """Columns that are settings of one metric; a row is a workload. Returns the cells without a single figure."""
    left_out: list[str] = []
    bare = without_unit(metric)
    _, op, plain = metric_of(bare.strip() or metric)
    op = next(iter(ways_in(metric)), op)
    for row in rows:
        workload, _, last = row[0].rpartition(" ")
        of_row = f"{metric} {last}" if table_axes.STATISTIC.fullmatch(last) else None
        for name, cell in zip(names, row[1:], strict=True):
            known = quantities_below(cell, metric)
            left_out += _without_figure(cell, known)
            for found in known or (None,):
                # A percentile of a time is a metric; of anything else, the row is as good a name as any.
                is_statistic = of_row is not None and found is not None and found.metric == "ns"
                called = None
                if found is not None:
                    called = found.metric_called(of_row if of_row and is_statistic else metric)
                    called = called or (f"{plain}_ns" if found.metric else None)
                if called is None and "iops" in metric.lower():
                    called = "iops"
                made = table.row(name, (workload if is_statistic else row[0]) or source.stem_without_round)
                made.add(called or plain, None if found is None else found.value, op=op, absent="empty in the table")
    return left_out


def _without_figure(cell: str, known: list[Quantity]) -> list[str]:
    return [] if known or not any(map(str.isdigit, cell)) else [repr(cell[:QUOTED_MAX])]


def _add_columns(table: Table, header: list[str], rows: list[list[str]], source: Source) -> list[str]:
    """A row is a metric, a column a setting, a round, or an operation. Returns the cells without a single figure."""
    left_out: list[str] = []
    names = header[1:]
    are_rounds = any(map(table_axes.NUMBERED.fullmatch, names))
    are_tests = all(map(OF_TEST.search, names))
    alone = are_rounds or are_tests or all(map(table_axes.OF_VALUES.fullmatch, names))
    if are_rounds and not any(table_axes.is_result(row[0]) or OF_TEST.search(row[0]) for row in rows):
        return _add_rounds(table, names, rows)
    for place, name in enumerate(names, 1):
        if are_rounds and not table_axes.NUMBERED.fullmatch(name):
            continue
        made: dict[str, Row] = {}
        of_all = header[0] if are_tests and table_axes.may_be_setting(header[0]) else source.stem_without_round
        setting = of_all if alone else name
        for row in rows:
            label = f"{name} {row[0]}" if are_tests else row[0]
            known = quantities_below(row[place], f"{label} {unit_in(label)}")
            left_out += _without_figure(row[place], known)
            for found in known:
                bare = without_unit(label).strip() or label
                if bare.isdecimal() or parameter.SIZE.fullmatch(bare) or is_amount(header[0], [bare]):
                    metric = found.metric_called(label) or _nameless(found)
                    table.row(setting, _case(header[0], bare)).add(metric, found.value)
                    continue
                phase, op, plain = metric_of(bare)
                metric = found.metric_called(label) or (TIME if found.metric else plain)
                said = named(bare, found) or Entry(bare, op, metric, found.value)
                workload = OF_NO_NAME if said.name == OF_ALL else said.name
                one = made.get(workload) or made.setdefault(workload, table.row(setting, workload, phase))
                if (one.key(said.metric, said.op), "all") in one.reported:
                    one = table.row(setting, bare or workload, phase)
                one.add(said.metric, said.value, op=said.op)
    return left_out


def _case(name: str, amount: str) -> str:
    """The workload of a row that begins with how much was done."""
    return f"{OF_NO_NAME}[{name}={amount}]"


def _nameless(found: Quantity) -> str:
    """The metric of a figure without a name, by its unit."""
    return TIME if found.metric == "ns" else NAMELESS


def _add_rounds(table: Table, names: list[str], rows: list[list[str]]) -> list[str]:
    """A row is a setting whose metric has no name, a numbered column a round. Returns the cells without a figure."""
    left_out: list[str] = []
    for place, name in enumerate(names, 1):
        for row in rows if table_axes.NUMBERED.fullmatch(name) else ():
            known = quantities(row[place])
            left_out += _without_figure(row[place], known)
            for found in known:
                table.row(row[0], OF_NO_NAME).add(found.metric_called(row[0]) or _nameless(found), found.value)
    return left_out


def _parameters(header: list[str], row: list[str], places: list[int]) -> str:
    """What these columns say of the row, behind a name."""
    said = [f"{without_unit(header[place]).strip()}={row[place]}" for place in places if row[place].strip()]
    return f"[{','.join(said)}]" if said else ""


def _add_rows(table: Table, header: list[str], rows: list[list[str]], source: Source) -> list[str]:
    """Returns the cells that are text in a column of figures, or hold no single figure."""
    left_out: list[str] = []
    apart = table_axes.sizes_in(header) or table_axes.of_one_metric(header, rows)
    apart |= table_axes.of_one_name(header, rows, apart)
    setting, workload, round, cases, of_setting = table_axes.axes_of(header, rows)
    special = {setting, workload, round}
    # A setting of several words, such as `NFS | kernel server`: the first comes again.
    before = [
        place
        for place in range(setting or 0)
        if place not in (*special, *cases, *of_setting) and all(table_axes.is_text(row[place]) for row in rows)
    ]
    if len(header) > 1 and all(table_axes.DURATION.fullmatch(cell) for row in rows for cell in row[1:]):
        return [repr(cell) for row in rows for cell in row[1:]]
    of_ways = bool(apart) and workload is not None and all(row[workload].lower() in _OPS for row in rows)
    for row in rows:
        name = source.stem_without_round if setting is None else " ".join(row[place] for place in (*before, setting))
        setting_name = (name or source.stem_without_round) + _parameters(header, row, of_setting)
        called = OF_NO_NAME if workload is None or of_ways else row[workload]
        called += _parameters(header, row, cases)
        for place, cell in enumerate(row):
            if place in (*special, *cases, *of_setting, *before) or not header[place]:
                continue
            known = quantities_below(cell, header[place])
            if table_axes.is_text(cell) and not known:
                left_out += _without_figure(cell, known)
                continue
            made = table.row(setting_name, f"{called}[{apart[place]}]" if place in apart else called)
            for found in known or (None,):
                name = without_unit(header[place])
                _, op, metric = metric_of(name)
                if found is not None and found.metric is not None:
                    op = next(iter(ways_in(name)), op)
                    found = elapsed(name, found)
                    metric = found.metric_called(name) or (
                        TIME if table_axes.OF_VALUES.fullmatch(name) else f"{metric}_ns"
                    )
                elif _IOPS.search(name) and "iops" not in metric:
                    op, metric = next(iter(ways_in(name)), op), "iops"
                op = _OPS[row[workload].lower()] if of_ways and workload is not None else op
                made.add(metric, None if found is None else found.value, op=op, absent="empty in the table")
    return left_out
