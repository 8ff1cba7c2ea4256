"""The units of a table of a text, wherever it has them: in a cell, row, column or corner, or a sentence near it."""

from __future__ import annotations

import re

from iolab.base.plain_text import counted
from iolab.files.importer.columns import Grid, Problem, is_amount, stated_in, unit_in
from iolab.files.importer.durations import STATED, seconds
from iolab.files.importer.quantity_cell import (
    ALIKE,
    LATENCY,
    quantities,
    quantity,
    unit_of,
    ways_in,
    with_unit,
    with_unit_of_last,
    without_unit,
)
from iolab.files.importer.source import Source
from iolab.files.importer.table_axes import STATISTIC, is_of_metric, is_result
from iolab.files.importer.text import ABSENT

SENTENCE_LINES_MAX = 12
"""The lines above a table, or below its heading, in which a sentence may state its unit. Chosen."""
_STATES_LATENCY = re.compile(
    r"\b(?:latenc(?:y|ies)|percentiles?|response times?)\b[^.;|]{0,30}?"
    r"\bin (?:[mnu\u00b5]s(?:ec)?|(?:milli|micro|nano)seconds)\b",
    re.IGNORECASE,
)
_CHANGE_TO = re.compile(r"(?P<side>\S.{0,60}?) [-\u2212] (?P<base>\S.{0,60}?) ?[(\[] ?(?:%|percent) ?[)\]]")
"""`new - old (%)`."""
_OF_PERCENTILE = re.compile(r"\d")
_MAY_BE_BITS = re.compile(r"\d[\d.,]*+ ?[kKMG]i?b/s")
_POINTED = re.compile(r"\d{1,3}\.\d{3}")
_RANGE = re.compile(
    r"~?(?P<low>\d{1,9}(?:\.\d{1,9})?) ?(?:-|\u2013|to) ?(?P<high>\d{1,9}(?:\.\d{1,9})?)"
    r"(?P<unit> ?[a-zA-Z\u00b5/]{0,8})"
)
_OF_COUNT = re.compile(r"\b(?:k?IOPS|[TQR]PS|ops/s)\b", re.IGNORECASE)


def of_changes(header: list[str], rows: list[list[str]], problem: Problem) -> Grid:
    """The table with the figures of one side in place of its changes in percent to another, whose column it has:
    `new (ms)` in place of `new - old (%)` beside `old (ms)`."""
    header, rows = list(header), [list(row) for row in rows]
    places = {without_unit(name).strip().lower(): place for place, name in enumerate(header) if place}
    computed = []
    for place, name in enumerate(header):
        found = _CHANGE_TO.fullmatch(name) if place else None
        base = places.get(found["base"].strip().lower()) if found else None
        if found is None or base is None or base == place or found["side"].strip().lower() in places:
            continue
        pairs = [(quantity(row[base]), quantity(row[place].rstrip(" %"))) for row in rows]
        if any(one is None or change is None or one.metric or change.metric for one, change in pairs):
            continue
        unit = header[base][len(without_unit(header[base])) :]
        header[place] = f"{found['side'].strip()}{unit}"
        computed.append(f"{found['side'].strip()!r}")
        for row, (one, change) in zip(rows, pairs, strict=True):
            row[place] = f"{one.value * (1 + change.value / 100):.6g}" if one and change else row[place]
    if computed:
        problem(f"figures of {', '.join(computed)} are computed from the changes in percent that stand in their place")
    return header, rows


def with_latency_of_percentiles(header: list[str], rows: list[list[str]]) -> Grid:
    """The table with `latency` in the names of rows that are percentiles of times, whose unit the columns may state."""
    names = [row[0] for row in rows]
    are_theirs = len(names) > 1 and all(map(STATISTIC.fullmatch, names)) and any(map(_OF_PERCENTILE.search, names))
    cells = [[with_unit(cell, name) for cell, name in zip(row[1:], header[1:], strict=False)] for row in rows]
    known = [one for row in cells for cell in row for one in quantities(cell)]
    if not are_theirs or not known or any(one.metric != "ns" for one in known) or any(map(is_result, header[1:])):
        return header, rows
    bare = [without_unit(name).strip() or name for name in header[1:]]
    ways = {tuple(ways_in(name)) for name in bare}
    way = next(iter(ways))[:1] if len(ways) == 1 and len(bare) > 1 else ()
    if way:
        # Of one operation, the columns are settings.
        bare = [re.sub(rf"\s*[(\[]?\b{way[0]}s?\b[)\]]?", "", name, flags=re.IGNORECASE) for name in bare]
    what = " ".join((*way, "latency"))
    return ["metric", *bare], [[f"{what} {name}", *row] for name, row in zip(names, cells, strict=True)]


def with_stated_latencies(
    header: list[str], rows: list[list[str]], source: Source, line: int, problem: Problem
) -> Grid:
    """The table with `latency` and the unit that a sentence of the text states in the names of columns that are called
    as percentiles, and as means beside them, where nothing else says what they are."""
    named = [place for place, name in enumerate(header) if place and STATISTIC.fullmatch(name)]
    bare = [place for place in named if all(one.metric is None for row in rows for one in quantities(row[place]))]
    of_metrics = any(map(is_result, header)) and not all(map(STATISTIC.fullmatch, header[1:]))
    if not of_metrics or not any(_OF_PERCENTILE.search(header[place]) for place in bare):
        return header, rows
    text = " ".join(source.text_lines[max(0, line - SENTENCE_LINES_MAX) : line + SENTENCE_LINES_MAX])
    units = {stated_in(found[0]).rpartition(" ")[2] for found in _STATES_LATENCY.finditer(text)}
    if len(units) != 1:
        problem(f"nothing states the unit of {', '.join(header[place] for place in bare)}")
        return header, rows
    unit = units.pop()
    return [f"latency {name} {unit}" if place in bare else name for place, name in enumerate(header)], rows


def with_bytes(rows: list[list[str]], problem: Problem) -> list[list[str]]:
    """The rows with `KB/s` in place of `Kb/s` beside it, where the figures are alike: as bits, one would be an eighth
    of the other."""
    made = [[row[0], *(_in_bytes(cell, row[1:]) for cell in row[1:])] for row in rows]
    if made != rows:
        problem("a rate in bits among those in bytes is taken as one in bytes: it is as large as they are")
    return made


def _in_bytes(cell: str, beside: list[str]) -> str:
    if quantity(cell) is not None or not _MAY_BE_BITS.fullmatch(cell):
        return cell
    written = cell.replace("b/s", "B/s")
    one, units = quantity(written), written.lstrip("0123456789., ")
    known = [quantity(other) for other in beside if other.lstrip("0123456789., ") == units]
    are_alike = known and all(other and one and 1 / ALIKE <= one.value / other.value <= ALIKE for other in known)
    return written if are_alike else cell


def without_doubtful_points(header: list[str], rows: list[list[str]], problem: Problem) -> list[list[str]]:
    """The rows less counts such as `1.000` beside `500`, which may be a thousand."""
    made = [list(row) for row in rows]
    for place, name in enumerate(header):
        cells = [row[place] for row in rows if row[place]]
        pointed = [cell for cell in cells if _POINTED.fullmatch(cell)]
        others = [cell for cell in cells if cell not in pointed]
        if not (pointed and others and _OF_COUNT.search(name) and all(map(str.isdecimal, others))):
            continue
        problem(f"{counted(len(pointed), 'figure')} such as {pointed[0]!r} may be thousands: left out; write 1000")
        for row in made:
            row[place] = "" if row[place] in pointed else row[place]
    return made


def with_middles(header: list[str], rows: list[list[str]], problem: Problem) -> list[list[str]]:
    """The rows with the middle of each range such as `32-35` in columns of results that are mostly ranges."""
    made = [list(row) for row in rows]
    for place, name in enumerate(header[1:], 1):
        ranges = {number: of for number, row in enumerate(rows) if (of := _RANGE.fullmatch(row[place].strip()))}
        is_known = is_result(name) or unit_in(name) or STATED.search(name) or all(of["unit"] for of in ranges.values())
        if not is_known or 2 * len(ranges) <= len(rows):
            continue
        problem(f"{counted(len(ranges), 'range')} of {name!r} are read as their middles")
        for number, of in ranges.items():
            made[number][place] = f"{(float(of['low']) + float(of['high'])) / 2:.9g}{of['unit']}"
    return made


def with_durations(header: list[str], rows: list[list[str]]) -> list[list[str]]:
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


def with_unit_of_corner(header: list[str], rows: list[list[str]]) -> Grid:
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


def with_units_behind(header: list[str], rows: list[list[str]]) -> list[list[str]]:
    """The rows with the unit of the last cell in all, where columns are no metrics and no other cell has a unit."""
    known = [[quantity(cell) for cell in row[1:]] for row in rows]
    are_bare = all(one is not None and one.metric is None for row in known for one in row[:-1])
    have_units = all(row and row[-1] is not None and row[-1].metric for row in known)
    if len(header) < 3 or not are_bare or not have_units or any(map(is_of_metric, header[1:])):
        return rows
    return [[row[0], *with_unit_of_last(row[1:])] for row in rows]


def with_row_of_units(header: list[str], rows: list[list[str]]) -> Grid:
    """The table with the units of a row that holds nothing else in the names of the columns."""
    units = rows[0][1:] if rows else []
    known = [None if any(map(str.isdigit, unit)) else quantity(f"1 {unit.strip('()[]')}") for unit in units]
    are_units = [bool(one and one.metric) or unit == "%" for one, unit in zip(known, units, strict=True)]
    if not any(are_units) or any(unit and not is_one for unit, is_one in zip(units, are_units, strict=True)):
        return header, rows
    named = [f"{name} ({unit.strip('()[]')})" if unit else name for name, unit in zip(header[1:], units, strict=True)]
    return [header[0], *named], rows[1:]


_SIZE_OR_MULTIPLE = re.compile(
    r"~?(?P<figure>\d[\d.,]*+) ?(?:(?P<prefix>[kKMGTP]i?)(?:B|bytes)|(?P<multiple>[x\u00d7]))", re.IGNORECASE
)


def with_shared_units(header: list[str], rows: list[list[str]]) -> Grid:
    """The table with units of sizes and of multiples, which all figures of a column have, in its name:
    `physical | 23.4 GB` is `physical (GB) | 23.4`. What was measured has fractions; what was asked for is called an
    amount."""
    names, made = list(header), [list(row) for row in rows]
    for place, name in enumerate(header[1:], 1):
        cells = {row: found for row, of in enumerate(rows) if (found := _SIZE_OR_MULTIPLE.fullmatch(of[place].strip()))}
        of_text = [of[place] for row, of in enumerate(rows) if row not in cells and of[place].strip("-\u2013\u2014 ")]
        units = {found["prefix"] or found["multiple"] for found in cells.values()}
        have_fractions = any("." in found["figure"] for found in cells.values())
        if (
            is_result(name)
            or len(cells) < 2
            or of_text
            or len(units) > 1
            or not have_fractions
            or is_amount(name, [of[place] for of in rows])
        ):
            continue
        of_one = next(iter(cells.values()))
        unit = f"{of_one['prefix']}B" if of_one["prefix"] else "x"
        names[place] = f"{name} ({unit})"
        for row, of in enumerate(made):
            of[place] = cells[row]["figure"] if row in cells else ""
    return names, made


def with_unit_of_names(header: list[str], rows: list[list[str]]) -> Grid:
    """The table with the unit that all names state, `old (ms)` and `new (ms)`, in cells instead: what such a column is
    called by is no metric, but what was changed or done."""
    parted = [unit_of(name) for name in header[1:]]
    known = [one for one in parted if one is not None]
    bare = [name.strip() for name, _ in known]
    is_one = len({one.metric for _, one in known}) == 1
    if len(known) < max(len(parted), 2) or not is_one or len(set(bare)) < len(bare) or any(map(_is_of_metric, bare)):
        return header, rows
    cells = ([with_unit(cell, name) for cell, name in zip(row[1:], header[1:], strict=True)] for row in rows)
    return [header[0], *bare], [[row[0], *of_row] for row, of_row in zip(rows, cells, strict=True)]


def _is_of_metric(name: str) -> bool:
    return is_of_metric(name) or STATISTIC.fullmatch(name) is not None


def with_unit_of_all(header: list[str], rows: list[list[str]]) -> Grid:
    """The table with a unit that stands alone behind the names, above no cells, in each name."""
    unit = header[-1]
    if len(header) < 3 or unit_in(unit) != unit or any(row[-1] for row in rows):
        return header, rows
    return [header[0], *(f"{name} {unit}" for name in header[1:-1])], [row[:-1] for row in rows]


def with_units(header: list[str], rows: list[list[str]]) -> Grid:
    """The table with the units behind bare figures that stand in a column of their own."""
    unit = next((place for place, name in enumerate(header) if place and name.lower() in ("unit", "units")), None)
    if unit is None:
        return header, rows
    kept = [place for place in range(len(header)) if place != unit]
    return [header[place] for place in kept], [
        [with_unit(row[place], f"({row[unit]})") if place else row[place] for place in kept] for row in rows
    ]
