"""A table of a text: names of columns, and cells below them.

Columns are known by their names, as in a CSV file; without a column of settings the first that has text is one. If rows
are called as metrics, or the figures of each row are of one kind, and no column is called as a metric, the columns are
the settings, or rounds if they are numbered; a row's name states its workload and metric."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable

from iolab.base.plain_text import counted
from iolab.domain import parameter
from iolab.domain.definition import NAMELESS
from iolab.domain.metric import ALL
from iolab.files.importer.columns import (
    CHANGES,
    OF_RESULT,
    OF_TEST,
    SETTINGS,
    by_case,
    by_count,
    in_english,
    in_names,
    in_thousands,
    is_amount,
    is_change,
    settings_by_metric,
    settings_of,
    stated_in,
    unit_in,
    with_amounts,
    without_changes,
)
from iolab.files.importer.csv_file import metric_of
from iolab.files.importer.csv_layout import METRIC_COLUMN, ROUND, SETTING, WORKLOAD
from iolab.files.importer.durations import STATED, seconds
from iolab.files.importer.listed import OF_NO_NAME as OF_ALL
from iolab.files.importer.listed import Entry, elapsed, named
from iolab.files.importer.quantity_cell import (
    LATENCY,
    NAME_OF_SPREAD,
    WAY,
    Quantity,
    quantities,
    quantities_below,
    quantity,
    several,
    statistics_in,
    units_in,
    ways_in,
    with_thousands,
    with_unit,
    with_unit_of_last,
    without_spread_name,
    without_unit,
)
from iolab.files.importer.results import Results, Row, Table
from iolab.files.importer.source import Source
from iolab.files.importer.text import ABSENT, QUOTED_MAX
from iolab.files.importer.titles import NUMBERED_ROUND

OF_NO_NAME = "table"
SENTENCE_LINES_MAX = 12
"""The lines above a table, or below its heading, in which a sentence may state its unit. Chosen."""
_STATES_LATENCY = re.compile(
    r"\b(?:latenc(?:y|ies)|percentiles?|response times?)\b[^.;|]{0,30}?"
    r"\bin (?:[mnu\u00b5]s(?:ec)?|(?:milli|micro|nano)seconds)\b",
    re.IGNORECASE,
)
_OF_PERCENTILE = re.compile(r"\d")
_OF_LINK = re.compile(r"\d ?[kKMG]?i?bits?/s", re.IGNORECASE)
_OF_RATE = re.compile(r"\d ?[kKMG]?i?(?:bits?|b|B)(?:/s|ps)\b")
_OF_WAY = re.compile(rf"{WAY}s?", re.IGNORECASE)
_WORDS_OF_METRIC = re.compile(r"\b(?:c?lat(?:ency)?|avg|mean|IOPS|bandwidth|bw)\b\.?", re.IGNORECASE)
_CHANGE_OR_NONE = re.compile(r"[-+\u2212~\u00b1]?[\d.,]{1,12} ?%|[-\u2013]?")
_VERSION = re.compile(r"v?\d+\.\d+\.\d")
_OF_VERSION = re.compile(r"\bversions?\b", re.IGNORECASE)
_OPS = {"read": "read", "reads": "read", "write": "write", "writes": "write", "total": ALL, "both": ALL, "mixed": ALL}
"""What rows of operations are called, beside columns of sizes."""
TIME = "time_ns"
_NUMBERED = re.compile(rf"{NUMBERED_ROUND}|(?i:test|result|sample)[ _.#-]?\d+")
_SUMMARY = r"(?:average|avg|mean|median|min|max|minimum|maximum)"
_OVER_ROUNDS = re.compile(rf"(?:{_SUMMARY}|std ?dev|total|sum)\.?", re.IGNORECASE)
"""The name of a row below rounds that is computed from them."""
STATISTIC = re.compile(rf"p ?\d\d(?:\.\d{{1,4}})?|\d\d(?:\.\d{{1,4}})?th|{_SUMMARY}", re.IGNORECASE)
"""The name of a row, or of a column, that is one figure of a distribution."""
_OF_METRIC = re.compile(
    rf"iops|bandwidth|\bbw\b|throughput|rate|[kmg]i?b/s|{WAY}|time|cpu|(?<!\d)%|\bp\d\d|stdev|\b(?:[nmu]s|sec)\b",
    re.IGNORECASE,
)
_OF_VALUES = re.compile(r"values?|results?|scores?|measured|figures?", re.IGNORECASE)
"""How the only column of figures is called, where it has no name of its own."""
_BOTH_WAYS = re.compile(r"\s*\(?\b(?:read|r) ?/ ?(?:write|w)\b\)?", re.IGNORECASE)
_OF_BOTH = re.compile(
    r"(?:r|reads?)\s*[:=]?\s*(?P<read>[~\d][^;|:=]{0,30}?)\s*[/,;|&]\s*(?:w|writes?)\s*[:=]?\s*(?P<write>[~\d][^;|:=]{0,30})",
    re.IGNORECASE,
)
"""`R: 693 / W: 300 MiB/s`."""
_WAY = re.compile(r"(?P<what>\S.{0,40}?)\s*[(\[](?P<way>[RWrw])[)\]]")
_OF_CHANGE = re.compile(rf"\b(?:{CHANGES})\b", re.IGNORECASE)
"""Rows that name what was changed, and not only what was done."""
_KNOWN = re.compile(rf"{CHANGES}|{SETTINGS}", re.IGNORECASE)
_FIGURES = re.compile(r"[-+]?\d[\d.,]*+%?(?:(?:\s++| ?/ ?)[-+]?\d[\d.,]*+%?)++(?: ?(?:[mnuµ]?s|[kKMG]?i?B/s|IOPS))?")
"""`612.3   88.1`, `50.6 / 33.4 ms`: the cells of several columns, and no name."""
_OF_PARAMETER = re.compile(r"\d++(?: ?[*x\u00d7/:+] ?\d++)*+")
"""`64`, `16*20`, `70/30`: how much was done, and no name."""
_DURATION = re.compile(r"(?:\d+h ?)?\d+m|\d+(?::\d\d){1,2}")
"""`1h51m`, `7m` and `07:19`, which may be minutes or hours, and no name."""
_FIGURE = re.compile(r"[-+~<>≈]?\d")
_OF_BYTES = re.compile(r"\d[\d.,]*+ ?[kKMGTP]i?B|\d[\d.,]*+ ?\S*/s(?:ec)?")
"""`9,522 MiB`, `12 widgets/s`: how much was done, or a rate of something unknown, and no name."""
_IOPS = re.compile(r"\bIOPS\b")
_BETWEEN_UNITS = re.compile(r"\s+/\s+")
_CPU_SHARE = re.compile(r"%? ?CPU? ?%?", re.IGNORECASE)
_KIB_PER_S = re.compile(r"\bK/s(?:ec)?\b", re.IGNORECASE)
_SIZE = re.compile(r"\d{1,5} ?(?:[KMG]i?B?|B)", re.IGNORECASE)


def add(table: Table, header: list[str], rows: list[list[str]], source: Source, results: Results) -> None:
    """Adds a table of text: names of columns, and cells below them."""
    if _describes(header, rows):
        return
    if all(map(_OF_LINK.search, filter(_OF_RATE.search, (cell for row in rows for cell in row[1:])))) and any(
        _OF_LINK.search(cell) for row in rows for cell in row[1:]
    ):
        results.problem("rates of a network in bits: left out", table.line)
        return
    rows = _without_changed(rows, results, table.line)
    header, rows = _of_latencies(header, rows, source, results, table.line)
    header, rows = _of_percentiles(list(map(in_english, header)), [[in_english(row[0]), *row[1:]] for row in rows])
    table.columns = [without_unit(name).strip() for name in header]
    header, rows = list(map(in_thousands, header)), with_thousands(rows)
    kept = [place for place, name in enumerate(header) if not place or name or any(row[place] for row in rows)]
    header, rows = [header[place] for place in kept], [[row[place] for place in kept] for row in rows]
    if header[0].lower() in ROUND:
        rows = [[f"#{row[0]}" if row[0].isdecimal() else row[0], *row[1:]] for row in rows]
    rows = _with_durations(header, _without_numbers(rows, results, table.line))
    header, rows = _with_unit_of_corner(*_with_row_of_units(header, rows))
    header = list(map(without_spread_name, header))
    header, rows = _of_rounds(header, _with_units_behind(header, rows), results, table.line)
    header, rows = _with_unit_of_all(_without_prefix(header), rows)
    header, rows = _with_units(*_by_way(*_of_both(_spelled_out(header), rows)))
    header, rows = _by_statistic(header, rows, results, table.line)
    header, rows = _without_repeated(_of_cpu(header), rows, results, table.line)
    header, rows = _without_remarks(*_without_spreads(header, rows, results, table.line))
    whole = len(header)
    header, rows = without_changes(header, rows)
    if len(header) < whole:
        results.problem("columns of changes are left out: they are computed anew", table.line)
    nameless = [place for place, name in enumerate(header) if place and not name]
    if any(quantities(row[place]) for row in rows for place in nameless):
        results.problem(f"{counted(len(nameless), 'column')} of figures without a name: left out", table.line)
    header, rows = _without_text(header, rows, results, table.line)
    whole_header = header
    are_settings = header[0].lower() in ("", *SETTING)
    header, rows = by_count(header, rows, OF_NO_NAME, are_settings=are_settings)
    names, named_rows = by_case(*with_amounts(header, rows))
    if is_amount(names[0], (amounts := [row[0] for row in named_rows])) and all(map(str.isdecimal, amounts)):
        named_rows = [[_case(names[0], row[0]), *row[1:]] for row in named_rows]
    if split := settings_of(names):
        called, metric = split
        are_settings = header[0].lower() in SETTING or _name_changes(row[0] for row in named_rows)
        if are_settings and not _name_changes(called):
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
    elif parted := _without_conditions(header, rows):
        left_out = _add_columns(table, *parted, source)
    elif _rows_are_metrics(header, rows) or _columns_are_settings(header, rows):
        left_out = _add_columns(table, header, rows, source)
    else:
        left_out = _add_rows(table, header, rows, source)
    if left_out:
        results.problem(
            f"{counted(len(left_out), 'cell')} without a single figure, such as {left_out[0]}: left out", table.line
        )


def _describes(header: list[str], rows: list[list[str]]) -> bool:
    """Whether the table says what the machine was: two columns, most of whose figures are versions and names."""
    cells = [row[1] for row in rows if row[1]] if len(header) == 2 else []
    known = [one for cell in cells for one in quantities(cell)]
    are_results = any(map(_is_result, (*header, *(row[0] for row in rows)))) or any(one.metric for one in known)
    texts = sum(not _FIGURE.match(cell) or bool(_VERSION.match(cell)) for cell in cells)
    return not are_results and (2 * texts > len(cells) or bool(cells and _OF_VERSION.search(header[1])))


def _without_changed(rows: list[list[str]], results: Results, line: int) -> list[list[str]]:
    """The rows less those of changes between the others: `delta | +34% | -25%`."""
    changed = [row for row in rows if any(row[1:]) and all(map(_CHANGE_OR_NONE.fullmatch, row[1:]))]
    if (
        not changed
        or len(rows) - len(changed) < 2
        or not all(is_change(row[0]) or row[1][:1] in "+-" for row in changed)
    ):
        return rows
    results.problem("rows of changes are left out: they are computed anew", line)
    return [row for row in rows if row not in changed]


def _of_percentiles(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The table with `latency` in the names of rows that are percentiles of times, whose unit the columns may state."""
    names = [row[0] for row in rows]
    are_theirs = len(names) > 1 and all(map(STATISTIC.fullmatch, names)) and any(map(_OF_PERCENTILE.search, names))
    cells = [[with_unit(cell, name) for cell, name in zip(row[1:], header[1:], strict=False)] for row in rows]
    known = [one for row in cells for cell in row for one in quantities(cell)]
    if not are_theirs or not known or any(one.metric != "ns" for one in known) or any(map(_is_result, header[1:])):
        return header, rows
    bare = [without_unit(name).strip() or name for name in header[1:]]
    ways = {tuple(ways_in(name)) for name in bare}
    way = next(iter(ways))[:1] if len(ways) == 1 and len(bare) > 1 else ()
    if way:
        # Of one operation, the columns are settings.
        bare = [re.sub(rf"\s*[(\[]?\b{way[0]}s?\b[)\]]?", "", name, flags=re.IGNORECASE) for name in bare]
    what = " ".join((*way, "latency"))
    return ["metric", *bare], [[f"{what} {name}", *row] for name, row in zip(names, cells, strict=True)]


def _of_latencies(
    header: list[str], rows: list[list[str]], source: Source, results: Results, line: int
) -> tuple[list[str], list[list[str]]]:
    """The table with `latency` and the unit that a sentence of the text states in the names of columns that are called
    as percentiles, and as means beside them, where nothing else says what they are."""
    named = [place for place, name in enumerate(header) if place and STATISTIC.fullmatch(name)]
    bare = [place for place in named if all(one.metric is None for row in rows for one in quantities(row[place]))]
    of_metrics = any(map(_is_result, header)) and not all(map(STATISTIC.fullmatch, header[1:]))
    if not of_metrics or not any(_OF_PERCENTILE.search(header[place]) for place in bare):
        return header, rows
    text = " ".join(source.text_lines[max(0, line - SENTENCE_LINES_MAX) : line + SENTENCE_LINES_MAX])
    units = {stated_in(found[0]).rpartition(" ")[2] for found in _STATES_LATENCY.finditer(text)}
    if len(units) != 1:
        results.problem(f"nothing states the unit of {', '.join(header[place] for place in bare)}", line)
        return header, rows
    unit = units.pop()
    return [f"latency {name} {unit}" if place in bare else name for place, name in enumerate(header)], rows


def _with_durations(header: list[str], rows: list[list[str]]) -> list[list[str]]:
    """The rows with durations in seconds: `7m` is one where its column's or row's name says so, and in a table of
    nothing else beside `1h2m`."""
    cells = [cell for row in rows for cell in row[1:] if cell.lower() not in ABSENT]
    are_all = any(map(seconds, cells)) and None not in [seconds(cell, is_duration=True) for cell in cells]
    of_column = [are_all or bool(STATED.search(name)) for name in header]
    of_row = [bool(STATED.search(row[0])) for row in rows]
    return [
        [row[0], *(_in_seconds(cell, of_column[place] or is_stated) for place, cell in enumerate(row[1:], 1))]
        for row, is_stated in zip(rows, of_row, strict=True)
    ]


def _in_seconds(cell: str, is_duration: bool) -> str:
    value = seconds(cell, is_duration=is_duration)
    return cell if value is None else f"{value:.9g} s"


def _without_text(
    header: list[str], rows: list[list[str]], results: Results, line: int
) -> tuple[list[str], list[list[str]]]:
    """The table less columns of text right of the first, such as options of commands, where the others are settings of
    one metric and the first column tells the rows apart."""
    kept = [place for place in range(len(header)) if not place or any(quantities(row[place]) for row in rows)]
    bare = [header[place] for place in kept]
    if len(kept) in (len(header), 1) or len({row[0] for row in rows}) < len(rows) or settings_of(bare) is None:
        return header, rows
    left_out = ", ".join(name for place, name in enumerate(header) if place not in kept)
    results.problem(f"columns of text are left out: {left_out}", line)
    return bare, [[row[place] for place in kept] for row in rows]


def _with_unit_of_corner(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The table with the unit that its first name states in the names of the others: of a latency, `Latency (us)`, in
    those of percentiles; of a rate, `MiB/s`, above names of what was done."""
    unit = unit_in(header[0])
    if not unit or not all(header[1:]) or any(map(unit_in, header[1:])):
        return header, rows
    are_bare = all(one.metric is None for row in rows for cell in row[1:] for one in quantities(cell))
    of_unit = quantity(f"1 {unit[1:-1]}")
    is_rate = of_unit is not None and of_unit.metric != "ns"
    if is_rate and are_bare and len(header) > 2 and not any(quantities(row[0]) for row in rows):
        return ["", *(f"{name} {unit}" for name in header[1:])], rows
    if not LATENCY.search(header[0]):
        return header, rows
    if not all(STATISTIC.search(name) for name in header[1:]):
        return header, rows
    return ["", *(f"{name} latency {unit}" for name in header[1:])], rows


def _with_units_behind(header: list[str], rows: list[list[str]]) -> list[list[str]]:
    """The rows with the unit of the last cell in all, where columns are no metrics and no other cell has a unit."""
    known = [[quantity(cell) for cell in row[1:]] for row in rows]
    are_bare = all(one is not None and one.metric is None for row in known for one in row[:-1])
    have_units = all(row and row[-1] is not None and row[-1].metric for row in known)
    if len(header) < 3 or not are_bare or not have_units or any(map(_is_of_metric, header[1:])):
        return rows
    return [[row[0], *with_unit_of_last(row[1:])] for row in rows]


def _is_of_metric(name: str) -> bool:
    return bool(_OF_METRIC.search(name) or LATENCY.search(name))


def _of_rounds(
    header: list[str], rows: list[list[str]], results: Results, line: int
) -> tuple[list[str], list[list[str]]]:
    """The table less what is computed over rounds, with the unit of all in the cells, where columns are numbered
    rounds that share one."""
    bare = [name.replace(unit_in(name), "").strip() for name in header]
    units = {unit_in(name) for name in header[1:]}
    numbered = [place for place, name in enumerate(bare) if place and re.fullmatch(NUMBERED_ROUND, name)]
    over_all = [place for place, name in enumerate(bare) if place and _OVER_ROUNDS.fullmatch(name)]
    if len(numbered) < 2 or len(numbered) + len(over_all) < len(header) - 1 or len(units) > 1 or units == {""}:
        return header, rows
    if over_all:
        results.problem(f"columns over all rounds are left out: {', '.join(bare[one] for one in over_all)}", line)
    unit = units.pop()
    cells = [[row[0], *(with_unit(row[place], unit) for place in numbered)] for row in rows]
    return [bare[0], *(bare[place] for place in numbered)], cells


def _with_row_of_units(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The table with the units of a row that holds nothing else in the names of the columns."""
    units = rows[0][1:] if rows else []
    known = [None if any(map(str.isdigit, unit)) else quantity(f"1 {unit.strip('()[]')}") for unit in units]
    are_units = [bool(one and one.metric) or unit == "%" for one, unit in zip(known, units, strict=True)]
    if not any(are_units) or any(unit and not is_one for unit, is_one in zip(units, are_units, strict=True)):
        return header, rows
    named = [f"{name} ({unit.strip('()[]')})" if unit else name for name, unit in zip(header[1:], units, strict=True)]
    return [header[0], *named], rows[1:]


def _without_numbers(rows: list[list[str]], results: Results, line: int) -> list[list[str]]:
    """Rows that are rounds, without the numbers that they are called by, and without statistics over them."""
    numbered = [row for row in rows if re.fullmatch(NUMBERED_ROUND, row[0])]
    over_all = [row[0] for row in rows if _OVER_ROUNDS.fullmatch(row[0])]
    if len({row[0] for row in numbered}) < 2 or len(numbered) + len(over_all) < len(rows):
        return rows
    if over_all:
        results.problem(f"rows over all rounds are left out: {', '.join(over_all)[:QUOTED_MAX]}", line)
    return [["", *row[1:]] for row in numbered]


def _without_prefix(header: list[str]) -> list[str]:
    """`data.size | data.iops` -> `size | iops`."""
    prefixes = {name.rpartition(".")[0] for name in header}
    bare = [name.rpartition(".")[2] for name in header]
    return bare if len(prefixes) == 1 and re.fullmatch(r"[A-Za-z_]\w*", prefixes.pop()) and all(bare) else header


def _spelled_out(header: list[str]) -> list[str]:
    """The names of columns, with what `IOP/s (R)` beside `IOP/s (W)` stand for."""
    ways = [_WAY.fullmatch(name) for name in header]
    if len({found["way"] for found in ways if found}) < 2:
        return header
    full = {"r": "read", "w": "write"}
    return [
        f"{full[found['way'].lower()]} {re.sub(r'IOP/s', 'IOPS', found['what'])}" if found else name
        for found, name in zip(ways, header, strict=True)
    ]


def _of_both(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The table with ` (R/W)` in the names of columns whose cells say `R: 693 / W: 300 MiB/s`, or of all rows if
    columns are changes, and `693 MiB/s / 300 MiB/s` in these cells."""
    columns = list(map(list, zip(header, *rows, strict=True)))
    of_both = []
    for column in columns[1:]:
        found = [_OF_BOTH.fullmatch(cell) for cell in column[1:]]
        pairs = [several(f"{one['read']} / {one['write']}") if one else [] for one in found]
        if any(pairs) and all(pair or cell.lower() in ABSENT for pair, cell in zip(pairs, column[1:], strict=True)):
            column[1:] = [" / ".join(pair or "--") for pair in pairs]
            of_both.append(column)
    if of_both and of_both == columns[1:] and _name_changes(header[1:]):
        columns[0] = [header[0], *(f"{name} (R/W)" for name in columns[0][1:])]
    else:
        for column in of_both:
            column[0] = f"{column[0]} (R/W)"
    names, *cells = map(list, zip(*columns, strict=True))
    return names, cells


def _with_unit_of_all(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The table with a unit that stands alone behind the names, above no cells, in each name."""
    unit = header[-1]
    if len(header) < 3 or unit_in(unit) != unit or any(row[-1] for row in rows):
        return header, rows
    return [header[0], *(f"{name} {unit}" for name in header[1:-1])], [row[:-1] for row in rows]


def _by_statistic(
    header: list[str], rows: list[list[str]], results: Results, line: int
) -> tuple[list[str], list[list[str]]]:
    """The table with a column each for what `latency (min / mean / max)` names, and of rates the mean alone."""
    columns: list[tuple[str, ...]] = []
    for place, name in enumerate(header):
        named = statistics_in(name)
        if units := units_in(name):
            cells = [_BETWEEN_UNITS.split(row[place]) for row in rows]
            if all(len(one) in (1, len(units)) for one in cells):
                for part, unit in enumerate(units):
                    columns.append((unit, *(one[part] if len(one) > 1 else "" for one in cells)))
                continue
        parts = [several(row[place]) for row in rows]
        if named is None or any(len(one) != len(named[1]) and row[place] for one, row in zip(parts, rows, strict=True)):
            columns.append((name, *(row[place] for row in rows)))
            continue
        what, names = named
        is_rate = bool(OF_RESULT.search(what)) and not LATENCY.search(what)
        if is_rate:
            results.problem(f"of {what} the mean alone is read, of {len(names)} figures in a cell", line)
        for part, statistic in enumerate(names):
            if not is_rate or statistic.lower() in ("mean", "avg", "average"):
                unit = unit_in(what)
                bare = what.replace(unit, "").strip() if unit else what
                whole = " ".join(filter(None, (bare, "" if is_rate else statistic, unit)))
                columns.append((whole, *(one[part] if one else "" for one in parts)))
    first, *others = zip(*columns, strict=True)
    return list(first), [list(row) for row in others]


def _of_cpu(header: list[str]) -> list[str]:
    """The names of columns, with a share of the CPU called after what stands left of it: bonnie++'s `%CP`, whose
    `K/sec` are kibibytes."""
    are_cpu = list(map(_CPU_SHARE.fullmatch, header))
    if sum(map(bool, are_cpu)) < 2:
        return header
    bare = [_KIB_PER_S.sub("", name).strip() for name in header]
    named = [f"{name} KiB/s" if one != name else name for name, one in zip(header, bare, strict=True)]
    return [f"{bare[place - 1]} CPU %".strip() if place and one else named[place] for place, one in enumerate(are_cpu)]


def _without_spreads(
    header: list[str], rows: list[list[str]], results: Results, line: int
) -> tuple[list[str], list[list[str]]]:
    """The table less columns that are called by spreads alone, beside others of figures."""
    kept = [place for place, name in enumerate(header) if not place or not NAME_OF_SPREAD.fullmatch(name)]
    if not 1 < len(kept) < len(header):
        return header, rows
    results.problem("columns of spreads are left out: they are no rounds", line)
    return [header[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _without_remarks(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The table less text right of its last figures, where names or counts stand left of them."""
    end = 1 + max((place for row in rows for place, cell in enumerate(row) if _FIGURE.match(cell)), default=0)
    are_named = any(_is_text(row[0]) for row in rows) or _counts(header[0], [row[0] for row in rows])
    return (header[:end], [row[:end] for row in rows]) if end > 2 and are_named else (header, rows)


def _without_repeated(
    header: list[str], rows: list[list[str]], results: Results, line: int
) -> tuple[list[str], list[list[str]]]:
    """The table less columns of figures that share their name: what parts them is not stated."""
    again = [name for name, count in Counter(name for name in header[1:] if name).items() if count > 1]
    if not again:
        return header, rows
    results.problem(f"{header.count(again[0])} columns are called {again[0]}: left out; give each a name", line)
    kept = [place for place, name in enumerate(header) if not place or name not in again]
    return [header[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _by_way(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The table with rows and columns of their own for reads and writes, where `IOPS (Read/Write)` names both."""
    parted = [part for row in rows for part in _parted(row)]
    columns = list(zip(header, *parted, strict=True)) if all(len(row) == len(header) for row in parted) else []
    if not any(_BOTH_WAYS.search(name) for name in header[1:]) or not columns:
        return header, parted
    first, *others = (list(part) for column in columns for part in _parted(list(column)))
    names, *cells = zip(first, *others, strict=True)
    return list(names), [list(row) for row in cells]


def _parted(row: list[str]) -> list[list[str]]:
    pairs = [cell.split(" / ") if " / " in cell else cell.split("/") for cell in row[1:]]
    if not _BOTH_WAYS.search(row[0]) or any(len(pair) != 2 for pair in pairs):
        return [row]
    return [
        [f"{way} {_BOTH_WAYS.sub('', row[0]).strip()}", *(pair[place].strip() for pair in pairs)]
        for place, way in enumerate(("read", "write"))
    ]


def _with_units(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The table with the units behind bare figures that stand in a column of their own."""
    unit = next((place for place, name in enumerate(header) if place and name.lower() in ("unit", "units")), None)
    if unit is None:
        return header, rows
    kept = [place for place in range(len(header)) if place != unit]
    return [header[place] for place in kept], [
        [with_unit(row[place], f"({row[unit]})") if place else row[place] for place in kept] for row in rows
    ]


def _add_settings(table: Table, names: list[str], metric: str, rows: list[list[str]], source: Source) -> list[str]:
    """Columns that are settings of one metric; a row is a workload. Returns the cells without a single figure."""
    left_out: list[str] = []
    bare = without_unit(metric)
    _, op, plain = metric_of(bare.strip() or metric)
    op = next(iter(ways_in(metric)), op)
    for row in rows:
        of_row = f"{metric} {row[0]}" if STATISTIC.fullmatch(row[0]) else None
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
                made = table.row(name, (not is_statistic and row[0]) or source.stem_without_round)
                made.add(called or plain, None if found is None else found.value, op=op, absent="empty in the table")
    return left_out


def _name_changes(names: Iterable[str]) -> bool:
    """Whether one of the names is that of what was changed."""
    return any(map(_OF_CHANGE.search, names))


def _without_figure(cell: str, known: list[Quantity]) -> list[str]:
    return [] if known or not any(map(str.isdigit, cell)) else [repr(cell[:QUOTED_MAX])]


def _rows_are_metrics(header: list[str], rows: list[list[str]]) -> bool:
    """Whether the first column says so, or the names in it; no other column is called as a metric."""
    of_values = len(header) == 2 and bool(_OF_VALUES.fullmatch(header[1]))
    if header[0].lower() in METRIC_COLUMN:
        return of_values or not any(map(_is_result, header[1:]))
    if len(header) < 3 and not of_values:
        return False
    results = sum(_is_result(row[0].replace("_", " ")) for row in rows)
    if all("latency " in row[0] and STATISTIC.fullmatch(row[0].rpartition(" ")[2]) for row in rows):
        return True
    is_most = 2 * results > len(rows) or (results > 0 and _name_changes(header[1:]))
    return is_most and not any(map(_OF_METRIC.search, header[1:]))


def _is_result(name: str) -> bool:
    return bool(OF_RESULT.search(name) or LATENCY.search(name))


def _columns_are_settings(header: list[str], rows: list[list[str]]) -> bool:
    """Whether each cell of a row has figures of the same kinds, in columns whose names are none of metrics."""
    names = header[1:]
    if len(names) < 2 or any(map(_is_of_metric, names)):
        return False
    kinds = [
        {frozenset(found.metric for found in known) for cell in row[1:] if (known := quantities(cell))} for row in rows
    ]
    has_unit = any(kind - {frozenset((None,))} for kind in kinds)
    are_numbered = any(map(_NUMBERED.fullmatch, names))
    are_tests = all(OF_TEST.search(row[0]) for row in rows) and not any(
        OF_TEST.search(name) or _OF_VALUES.fullmatch(name) or is_amount(name, [row[place] for row in rows])
        for place, name in enumerate(names, 1)
    )
    of_figures = [any(map(quantities, column)) for column in list(zip(*rows, strict=True))[1:]]
    are_figures = all(of_figures) or (sum(of_figures) > 1 and _name_changes(names))
    one_kind = all(len(kind) < 2 for kind in kinds) and are_figures
    are_known = sum(map(bool, map(_KNOWN.fullmatch, names))) > 1
    if header[0].lower() in SETTING and not (are_known or are_tests or are_numbered or _name_changes(names)):
        return False
    # Rows of sizes are what was done, under settings of one metric.
    are_named = (
        are_numbered
        or all(_is_text(row[0]) or parameter.SIZE.fullmatch(row[0]) for row in rows)
        or is_amount(header[0], [row[0] for row in rows])
        or are_known
    )
    return one_kind and (has_unit or are_numbered or are_tests or are_known) and are_named


def _without_conditions(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]] | None:
    """Columns of how much was done, and of names, behind the name of each row, if the other columns are settings."""
    columns = list(zip(*rows, strict=True))
    if len(columns) < len(header):
        return None
    amounts = {place for place, name in enumerate(header) if place and is_amount(name, columns[place])}
    names = {place for place, column in enumerate(columns) if place and not any(map(quantities, column))}
    if not amounts or len(header) - 1 - len(amounts | names) < 2:
        return None
    parted = in_names(header, rows, sorted(amounts | names))
    return parted if _columns_are_settings(*parted) else None


def _add_columns(table: Table, header: list[str], rows: list[list[str]], source: Source) -> list[str]:
    """A row is a metric, a column a setting, a round, or an operation. Returns the cells without a single figure."""
    left_out: list[str] = []
    names = header[1:]
    are_rounds = any(map(_NUMBERED.fullmatch, names))
    are_tests = all(map(OF_TEST.search, names))
    alone = are_rounds or are_tests or all(map(_OF_VALUES.fullmatch, names))
    if are_rounds and not any(_is_result(row[0]) or OF_TEST.search(row[0]) for row in rows):
        return _add_rounds(table, names, rows)
    for place, name in enumerate(names, 1):
        if are_rounds and not _NUMBERED.fullmatch(name):
            continue
        made: dict[str, Row] = {}
        of_all = header[0] if are_tests and _may_be_setting(header[0]) else source.stem_without_round
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
        for row in rows if _NUMBERED.fullmatch(name) else ():
            known = quantities(row[place])
            left_out += _without_figure(row[place], known)
            for found in known:
                table.row(row[0], OF_NO_NAME).add(found.metric_called(row[0]) or _nameless(found), found.value)
    return left_out


def _add_rows(table: Table, header: list[str], rows: list[list[str]], source: Source) -> list[str]:
    """Returns the cells that are text in a column of figures, or hold no single figure."""
    left_out: list[str] = []
    apart = _sizes(header) or _of_one_metric(header, rows)
    apart |= _of_one_name(header, rows, apart)
    lower = [name.lower() for name in header]
    setting, workload, round = (
        next((lower.index(name) for name in known if name in lower), None) for known in (SETTING, WORKLOAD, ROUND)
    )
    if setting is None:
        columns = [[row[place] for row in rows] for place in range(len(header))]
        amounts = {place for place, name in enumerate(header) if is_amount(name, columns[place])}
        text = [place for place in range(len(header)) if _names_rows(columns[place], is_first=not place)]
        setting = next((place for place in text if place not in amounts | {workload}), None)
        is_test = setting is not None and all(map(OF_TEST.search, columns[setting]))
        if setting is not None and workload is None and is_test and not _name_changes(columns[setting]):
            setting, workload = None, setting
    special = {setting, workload, round}
    cases = [
        place
        for place, name in enumerate(header)
        if place not in special and is_amount(name, [row[place] for row in rows])
    ]
    if setting is not None and round is None and len({row[setting] for row in rows}) < len(rows):
        # A name that comes again is of other tests, if the next columns name these.
        names = next((place for place in range(len(header)) if quantities(rows[0][place])), 0)
        cases += [place for place in range(names) if place not in special and place not in cases]
    if special == {None} and not cases:
        cases = _parameters(header, rows)
    if round is None:
        cases += _conditions(header, rows, setting, {*special, *cases})
    if len(header) > 1 and all(_DURATION.fullmatch(cell) for row in rows for cell in row[1:]):
        return [repr(cell) for row in rows for cell in row[1:]]
    of_ways = bool(apart) and workload is not None and all(row[workload].lower() in _OPS for row in rows)
    for row in rows:
        name = source.stem_without_round if setting is None else row[setting]
        setting_name = name or source.stem_without_round
        called = OF_NO_NAME if workload is None or of_ways else row[workload]
        if cases:
            called += f"[{','.join(f'{without_unit(header[place]).strip()}={row[place]}' for place in cases)}]"
        for place, cell in enumerate(row):
            if place in special or place in cases or not header[place]:
                continue
            known = quantities_below(cell, header[place])
            if _is_text(cell) and not known:
                left_out += _without_figure(cell, known)
                continue
            made = table.row(setting_name, f"{called}[{apart[place]}]" if place in apart else called)
            for found in known or (None,):
                name = without_unit(header[place])
                _, op, metric = metric_of(name)
                if found is not None and found.metric is not None:
                    op = next(iter(ways_in(name)), op)
                    found = elapsed(name, found)
                    metric = found.metric_called(name) or (TIME if _OF_VALUES.fullmatch(name) else f"{metric}_ns")
                elif _IOPS.search(name) and "iops" not in metric:
                    op, metric = next(iter(ways_in(name)), op), "iops"
                op = _OPS[row[workload].lower()] if of_ways and workload is not None else op
                made.add(metric, None if found is None else found.value, op=op, absent="empty in the table")
    return left_out


def _conditions(header: list[str], rows: list[list[str]], setting: int | None, known: set[int | None]) -> list[int]:
    """More columns of whole numbers or sizes left of the first result, if rows that differ in nothing `known` differ in
    them, and each setting has the same in them: those rows are no rounds of each other."""
    found = [
        place
        for place in range(_first_result(header, rows))
        if place not in known and all(_is_amount(row[place]) for row in rows)
    ]
    rest = [tuple(row[place] for place in sorted(place for place in known if place is not None)) for row in rows]
    if not found or len(set(rest)) == len(rows):
        return []
    of_setting: dict[str, set[tuple[str, ...]]] = {}
    for row in rows:
        of_setting.setdefault("" if setting is None else row[setting], set()).add(tuple(row[one] for one in found))
    return found if len({frozenset(values) for values in of_setting.values()}) == 1 else []


def _first_result(header: list[str], rows: list[list[str]]) -> int:
    """The first column that is called as a result, or has figures with a unit; 0 if there is none."""
    return next(
        (
            place
            for place, name in enumerate(header)
            if not all(parameter.SIZE.fullmatch(row[place]) for row in rows)
            and (_is_result(name) or any(one.metric for row in rows for one in quantities_below(row[place], name)))
        ),
        0,
    )


def _is_amount(cell: str) -> bool:
    return bool(_OF_PARAMETER.fullmatch(cell) or parameter.SIZE.fullmatch(cell))


def _parameters(header: list[str], rows: list[list[str]]) -> list[int]:
    """The columns that state how much was done, where none is called so: whole numbers left of the first result, or
    in the first column, rising or falling."""
    first = _first_result(header, rows)
    left = range(first)
    if first and all(_is_amount(row[place]) for row in rows for place in left):
        return list(left)
    return [0] if _counts(header[0], [row[0] for row in rows]) else []


def _counts(name: str, entries: list[str]) -> bool:
    """Whether the first column states how much was done: whole numbers that rise, or fall, from row to row."""
    if _is_result(name) or len(entries) < 2 or not all(map(str.isdecimal, entries)):
        return False
    numbers = [int(entry) for entry in entries]
    return numbers in (sorted(set(numbers)), sorted(set(numbers), reverse=True))


def _sizes(header: list[str]) -> dict[int, str]:
    """Columns that are of a block size each, such as `4k (MB/s)` and `64k (IOPS)`: what they measured differs."""
    bare = {place: without_unit(name).strip() for place, name in enumerate(header)}
    found = {place: name for place, name in bare.items() if _SIZE.fullmatch(name)}
    return found if len(set(found.values())) > 1 else {}


def _of_one_metric(header: list[str], rows: list[list[str]]) -> dict[int, str]:
    """Columns that are of one metric, such as `4K randread` and `64K randread` with rates below: by what they are
    called, if the operation and the metric do not tell them apart."""
    found: dict[tuple[str, str], list[int]] = {}
    tests: dict[int, str] = {}
    for place, name in enumerate(header):
        kinds = {known.metric for row in rows for known in quantities_below(row[place], name)}
        bare = " ".join(_WORDS_OF_METRIC.sub(" ", without_unit(name)).split())
        if place and (kinds - {None} or _is_result(name)):
            tests[place] = bare if OF_TEST.search(_OF_WAY.sub(" ", bare)) else ""
        if not place or _is_result(without_unit(name)):
            continue
        ways = ways_in(name)
        for metric in kinds - {None}:
            # Times without a name of their own are called by their columns.
            if metric is not None and (OF_TEST.search(name) or metric != "ns"):
                found.setdefault((ways[0] if len(ways) == 1 else "all", metric), []).append(place)
    if not found:
        return {}
    if all(len(places) == 1 for places in found.values()):
        # `Seq. read` in GB/s beside `4k rand read` in IOPS are of two tests.
        cases = {place: " ".join(_OF_WAY.sub(" ", name).split()) for place, name in tests.items()}
        often = Counter(cases.values())
        named = {place: case if often[case] > 1 else tests[place] for place, case in cases.items() if case}
        return named if len(often) > 1 and len(set(named.values())) + ("" in often) > 1 else {}
    return {place: without_unit(header[place]).strip() for places in found.values() for place in places}


def _of_one_name(header: list[str], rows: list[list[str]], known: Container[int]) -> dict[int, str]:
    """Columns that are called by one metric, such as `user latency (s)` beside `system latency (s)`: they are no rounds
    of each other."""
    found: dict[tuple[str, str], list[int]] = {}
    for place, name in enumerate(header):
        metrics = {
            metric
            for row in rows
            for one in quantities_below(row[place], name)
            if one.metric and (metric := elapsed(name, one).metric_called(without_unit(name)))
        }
        ways = ways_in(name)
        is_result = place and place not in known and not is_amount(name, [row[place] for row in rows])
        for metric in metrics if is_result else ():
            found.setdefault((metric, ways[0] if ways else "all"), []).append(place)
    again = (place for places in found.values() if len(places) > 1 for place in places)
    return {place: without_unit(header[place]).strip() for place in again}


def _may_be_setting(name: str) -> bool:
    """Whether the corner of a table of tests names what was tested."""
    return bool(name) and name.lower() not in (*METRIC_COLUMN, *WORKLOAD, *SETTING) and not _OF_METRIC.search(name)


def _is_text(cell: str) -> bool:
    return bool(cell) and cell.lower() not in ABSENT and not quantities(cell)


def _names_rows(cells: list[str], *, is_first: bool) -> bool:
    """Whether a column may name what its rows are: a number among names is one, a remark among figures is none."""
    written = [cell for cell in cells if cell and cell.lower() not in ABSENT]
    none = (_FIGURES, _OF_PARAMETER, _DURATION, *(() if is_first else (_OF_BYTES,)))
    names = sum(_is_text(cell) and not any(one.fullmatch(cell) for one in none) for cell in written)
    return names > 0 if is_first else 2 * names > len(written)
