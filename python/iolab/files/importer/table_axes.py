"""What the rows and the columns of a table of a text are: settings, rounds, tests, metrics, or how much was done."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable
from typing import NamedTuple

from iolab.domain import parameter
from iolab.files.importer.columns import CHANGES, OF_RESULT, OF_TEST, SETTINGS, Grid, in_names, is_amount, unit_in
from iolab.files.importer.csv_layout import METRIC_COLUMN, ROUND, SETTING, WORKLOAD
from iolab.files.importer.listed import elapsed
from iolab.files.importer.quantity_cell import LATENCY, WAY, quantities, quantities_below, ways_in, without_unit
from iolab.files.importer.text import ABSENT
from iolab.files.importer.titles import NUMBERED_ROUND

_OF_WAY = re.compile(rf"{WAY}s?", re.IGNORECASE)
_WORDS_OF_METRIC = re.compile(r"\b(?:c?lat(?:ency)?|avg|mean|IOPS|bandwidth|bw)\b\.?", re.IGNORECASE)
NUMBERED = re.compile(rf"{NUMBERED_ROUND}|(?i:test|result|sample)[ _.#-]?\d+")
SUMMARY = r"(?:average|avg|mean|median|min|max|minimum|maximum)"
STATISTIC = re.compile(rf"p ?\d\d(?:\.\d{{1,4}})?|\d\d(?:\.\d{{1,4}})?th|{SUMMARY}", re.IGNORECASE)
"""The name of a row, or of a column, that is one figure of a distribution."""
_OF_METRIC = re.compile(
    rf"iops|bandwidth|\bbw\b|throughput|rate|[kmg]i?b/s|{WAY}|time|cpu|(?<!\d)%|\bp\d\d|stdev|\b(?:[nmu]s|sec)\b",
    re.IGNORECASE,
)
OF_VALUES = re.compile(r"values?|results?|scores?|measured|figures?", re.IGNORECASE)
"""How the only column of figures is called, where it has no name of its own."""
_OF_CHANGE = re.compile(rf"\b(?:{CHANGES})\b", re.IGNORECASE)
"""Rows that name what was changed, and not only what was done."""
_KNOWN = re.compile(rf"{CHANGES}|{SETTINGS}", re.IGNORECASE)
_FIGURES = re.compile(r"[-+]?\d[\d.,]*+%?(?>(?:(?:\s++| ?/ ?)[-+]?\d[\d.,]*+%?)+)(?: ?(?:[mnuµ]?s|[kKMG]?i?B/s|IOPS))?")
"""`612.3   88.1`, `50.6 / 33.4 ms`: the cells of several columns, and no name."""
_OF_PARAMETER = re.compile(r"\d++(?>(?: ?[*x\u00d7/:+] ?\d++)*)")
"""`64`, `16*20`, `70/30`: how much was done, and no name."""
DURATION = re.compile(r"(?:\d+h ?)?\d+m|\d+(?::\d\d){1,2}")
"""`1h51m`, `7m` and `07:19`, which may be minutes or hours, and no name."""
_OF_BYTES = re.compile(r"\d[\d.,]*+ ?[kKMGTP]i?B|\d[\d.,]*+ ?\S*/s(?:ec)?")
"""`9,522 MiB`, `12 widgets/s`: how much was done, or a rate of something unknown, and no name."""
_BEGINS_AS_FIGURE = re.compile(r"[-+~<>\u2248]?\d")
_SIZE = re.compile(r"\d{1,5} ?(?:[KMG]i?B?|B)", re.IGNORECASE)


def is_of_metric(name: str) -> bool:
    """Whether a column is called by a metric, or as what a metric has."""
    return bool(_OF_METRIC.search(name) or LATENCY.search(name))


def name_changes(names: Iterable[str]) -> bool:
    """Whether one of the names is that of what was changed."""
    return any(map(_OF_CHANGE.search, names))


def rows_are_metrics(header: list[str], rows: list[list[str]]) -> bool:
    """Whether the first column says so, or the names in it; no other column is called as a metric."""
    of_values = len(header) == 2 and bool(OF_VALUES.fullmatch(header[1]))
    if header[0].lower() in METRIC_COLUMN:
        return of_values or not any(map(is_result, header[1:]))
    if len(header) < 3 and not of_values:
        return False
    results = sum(is_result(row[0].replace("_", " ")) or bool(unit_in(row[0])) for row in rows)
    if all("latency " in row[0] and STATISTIC.fullmatch(row[0].rpartition(" ")[2]) for row in rows):
        return True
    is_most = 2 * results > len(rows) or (results > 0 and name_changes(header[1:]))
    return is_most and not any(map(_OF_METRIC.search, header[1:]))


def is_result(name: str) -> bool:
    """Whether the name says that a metric of I/O was measured."""
    return bool(OF_RESULT.search(name) or LATENCY.search(name))


def columns_are_settings(header: list[str], rows: list[list[str]]) -> bool:
    """Whether each cell of a row has figures of the same kinds, in columns whose names are none of metrics."""
    names = header[1:]
    if len(names) < 2 or any(map(is_of_metric, names)):
        return False
    kinds = [
        {frozenset(found.metric for found in known) for cell in row[1:] if (known := quantities(cell))} for row in rows
    ]
    has_unit = any(kind - {frozenset((None,))} for kind in kinds)
    are_numbered = any(map(NUMBERED.fullmatch, names))
    are_tests = all(OF_TEST.search(row[0]) for row in rows) and not any(
        OF_TEST.search(name) or OF_VALUES.fullmatch(name) or is_amount(name, [row[place] for row in rows])
        for place, name in enumerate(names, 1)
    )
    of_figures = [any(map(quantities, column)) for column in list(zip(*rows, strict=True))[1:]]
    are_figures = all(of_figures) or (sum(of_figures) > 1 and name_changes(names))
    one_kind = all(len(kind) < 2 for kind in kinds) and are_figures
    are_known = sum(map(bool, map(_KNOWN.fullmatch, names))) > 1
    if header[0].lower() in SETTING and not (are_known or are_tests or are_numbered or name_changes(names)):
        return False
    # Rows of sizes are what was done, under settings of one metric.
    are_named = (
        are_numbered
        or all(is_text(row[0]) or parameter.SIZE.fullmatch(row[0]) for row in rows)
        or is_amount(header[0], [row[0] for row in rows])
        or are_known
    )
    return one_kind and (has_unit or are_numbered or are_tests or are_known) and are_named


def without_conditions(header: list[str], rows: list[list[str]]) -> Grid | None:
    """Columns of how much was done, and of names, behind the name of each row, if the other columns are settings."""
    columns = list(zip(*rows, strict=True))
    if len(columns) < len(header):
        return None
    amounts = {place for place, name in enumerate(header) if place and is_amount(name, columns[place])}
    names = {place for place, column in enumerate(columns) if place and not any(map(quantities, column))}
    is_apart = amounts or len(set(columns[0])) < len(rows)
    if not is_apart or not amounts | names or len(header) - 1 - len(amounts | names) < 2:
        return None
    if names - amounts and is_amount(header[0], columns[0]):
        order = [first := min(names - amounts), *(place for place in range(len(header)) if place != first)]
        return without_conditions([header[one] for one in order], [[row[one] for one in order] for row in rows])
    parted = in_names(header, rows, sorted(amounts | names))
    return parted if columns_are_settings(*parted) else None


def sides_of(header: list[str], rows: list[list[str]]) -> tuple[list[str], str, list[list[str]]] | None:
    """The settings and the metric of two columns of figures whose change stood beside them, and the rows, each by what
    the other columns say; None if there are more, or figures of different kinds."""
    columns = [[row[place] for row in rows] for place in range(len(header))]
    figures = [
        place
        for place, name in enumerate(header)
        if place and any(map(quantities, columns[place])) and not is_amount(name, columns[place])
    ]
    kinds = [{_kind(row[place], header[place]) for place in figures} for row in rows]
    if len(figures) != 2 or any(len(kind - {frozenset()}) > 1 for kind in kinds):
        return None
    others = [place for place in range(1, len(header)) if place not in figures]
    names, named_rows = in_names(header, rows, others) if others else (header, rows)
    words = [name.split() for name in names[1:]]
    metric = " ".join(word for word in words[0] if word in words[1])
    bare = [" ".join(word for word in each if word not in metric.split()) for each in words]
    is_metric = is_of_metric(metric) and all(bare)
    return (bare, metric, named_rows) if is_metric else (names[1:], "", named_rows)


def _kind(cell: str, name: str) -> frozenset[str | None]:
    """What the figures of a cell are, or that they are shares."""
    return frozenset("%" if cell.endswith("%") else one.metric for one in quantities_below(cell, name))


class Axes(NamedTuple):
    """The columns that are no results."""

    setting: int | None
    workload: int | None
    round: int | None
    cases: list[int]
    """What of the workload differs."""
    of_setting: list[int]
    """What differs with the setting."""


def axes_of(header: list[str], rows: list[list[str]]) -> Axes:
    """What the columns are where rows are settings, tests, or amounts."""
    lower = [name.lower() for name in header]
    columns = [[row[place] for row in rows] for place in range(len(header))]
    setting, workload, round = (
        next((lower.index(name) for name in known if name in lower), None) for known in (SETTING, WORKLOAD, ROUND)
    )
    amounts = [place for place, name in enumerate(header) if is_amount(name, columns[place])]
    if setting is None:
        text = [place for place in range(len(header)) if names_rows(columns[place], is_first=not place)]
        setting = next((place for place in text if place not in (*amounts, workload)), None)
        is_test = setting is not None and (all(map(OF_TEST.search, columns[setting])) or _are_of_kinds(header, rows))
        if setting is not None and workload is None and is_test and not name_changes(columns[setting]):
            setting, workload = None, setting
    special = {setting, workload, round}
    cases = [place for place in amounts if place not in special]
    if setting is not None and round is None and len(set(columns[setting])) < len(rows):
        # A name that comes again is of other tests, if the next columns name these.
        figures = (place for place, cell in enumerate(rows[0]) if quantities(cell) or is_result(header[place]))
        cases += [place for place in range(next(figures, 0)) if _may_name(columns[place], place, {*special, *cases})]
    known = [columns[place] for place in {*special, *cases} if place is not None]
    if round is None and known and len(set(zip(*known, strict=True))) < len(rows):
        left = range(_first_result(header, rows))
        cases += [place for place in left if _may_name(columns[place], place, {*special, *cases})]
    if special == {None} and not cases:
        cases = _parameters(header, rows)
    if round is None:
        cases += _conditions(header, rows, setting, {*special, *cases})
    if setting is not None and (workload, round) == (None, None) and _belong_to_settings(columns, setting, cases):
        return Axes(setting, workload, round, [], cases)
    return Axes(setting, workload, round, cases, [])


def _belong_to_settings(columns: list[list[str]], setting: int, cases: list[int]) -> bool:
    """Whether no two settings share what the columns of `cases` say, so that nothing would be comparable: each setting
    was measured in its own way, or needs the text behind its name, which names no test."""
    of_cases = list(zip(*(columns[place] for place in cases), strict=True))
    if not cases or setting in cases or len(set(of_cases)) < len(of_cases):
        return False
    are_names = all(is_text(cell) and not OF_TEST.search(cell) for of_row in of_cases for cell in of_row)
    return len(set(columns[setting])) == len(of_cases) or are_names


def _are_of_kinds(header: list[str], rows: list[list[str]]) -> bool:
    """Whether the only column of figures has rates, counts or times by row: the rows are no settings of one test."""
    columns = [[row[place] for row in rows] for place in range(1, len(header))]
    figures = [column for column in columns if any(map(quantities, column))] or [[]]
    if len(figures) > 1 or len({row[0] for row in rows}) < len(rows):
        return False
    return len({one.metric for cell in figures[0] for one in quantities(cell)[:1]}) > 1


def _may_name(column: list[str], place: int, known: Container[int | None]) -> bool:
    """Whether a column of text tells rows apart: most of its cells begin with no figure."""
    return place not in known and 2 * sum(map(bool, map(_BEGINS_AS_FIGURE.match, column))) <= len(column)


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
            and (is_result(name) or any(one.metric for row in rows for one in quantities_below(row[place], name)))
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
    return [0] if counts(header[0], [row[0] for row in rows]) else []


def counts(name: str, entries: list[str]) -> bool:
    """Whether the first column states how much was done: whole numbers that rise, or fall, from row to row."""
    entries = [entry.replace(",", "") for entry in entries]
    if is_result(name) or len(entries) < 2 or not all(map(str.isdecimal, entries)):
        return False
    numbers = [int(entry) for entry in entries]
    return numbers in (sorted(set(numbers)), sorted(set(numbers), reverse=True))


def sizes_in(header: list[str]) -> dict[int, str]:
    """Columns that are of a block size each, such as `4k (MB/s)` and `64k (IOPS)`: what they measured differs."""
    bare = {place: without_unit(name).strip() for place, name in enumerate(header)}
    found = {place: name for place, name in bare.items() if _SIZE.fullmatch(name)}
    return found if len(set(found.values())) > 1 else {}


def of_one_metric(header: list[str], rows: list[list[str]]) -> dict[int, str]:
    """Columns that are of one metric, such as `4K randread` and `64K randread` with rates below: by what they are
    called, if the operation and the metric do not tell them apart."""
    found: dict[tuple[str, str], list[int]] = {}
    tests: dict[int, str] = {}
    for place, name in enumerate(header):
        kinds = {known.metric for row in rows for known in quantities_below(row[place], name)}
        bare = " ".join(_WORDS_OF_METRIC.sub(" ", without_unit(name)).split())
        if place and (kinds - {None} or is_result(name)):
            tests[place] = bare if OF_TEST.search(_OF_WAY.sub(" ", bare)) else ""
        if not place or is_result(without_unit(name)):
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


def of_one_name(header: list[str], rows: list[list[str]], known: Container[int]) -> dict[int, str]:
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


def may_be_setting(name: str) -> bool:
    """Whether the corner of a table of tests names what was tested."""
    return bool(name) and name.lower() not in (*METRIC_COLUMN, *WORKLOAD, *SETTING) and not _OF_METRIC.search(name)


def is_text(cell: str) -> bool:
    """Whether the cell has words, and no figure."""
    return bool(cell) and cell.lower() not in ABSENT and not quantities(cell)


def names_rows(cells: list[str], *, is_first: bool) -> bool:
    """Whether a column may name what its rows are: a number among names is one, a remark among figures is none."""
    written = [cell for cell in cells if cell and cell.lower() not in ABSENT]
    none = (_FIGURES, _OF_PARAMETER, DURATION, *(() if is_first else (_OF_BYTES,)))
    names = sum(is_text(cell) and not any(one.fullmatch(cell) for one in none) for cell in written)
    return names > 0 if is_first else 2 * names > len(written)
