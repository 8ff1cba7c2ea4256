"""Cells of a table of a text that hold several figures, in columns of their own."""

from __future__ import annotations

import re
from itertools import accumulate

from iolab.domain.parameter import SIZE
from iolab.files.importer.columns import OF_RESULT, Grid, Problem, unit_in
from iolab.files.importer.csv_layout import METRIC_COLUMN
from iolab.files.importer.quantity_cell import LATENCY, quantities, quantity, several, statistics_in, units_in
from iolab.files.importer.table_axes import is_text, name_changes
from iolab.files.importer.text import ABSENT

_BOTH_WAYS = re.compile(r"\s*\(?\b(?:read|r) ?/ ?(?:write|w)\b\)?", re.IGNORECASE)
_OF_BOTH = re.compile(
    r"(?:r|reads?)\s*[:=]?\s*(?P<read>[~\d][^;|:=]{0,30}?)\s*[/,;|&]\s*(?:w|writes?)\s*[:=]?\s*(?P<write>[~\d][^;|:=]{0,30})",
    re.IGNORECASE,
)
"""`R: 693 / W: 300 MiB/s`."""
_PAIR = re.compile(r"~?\d[\d.,]*+[kM]? ?/ ?~?\d[\d.,]*+[kM]?(?: ?[A-Za-z/]{1,8})?")
_EITHER = re.compile(r"\biops ?/ ?(?:bandwidth|bw|throughput)\b", re.IGNORECASE)
"""Above figures of which those with a unit are the other."""
_WAY_AND_UNIT = re.compile(r"\((?P<way>read|write) (?P<unit>[^()\s]{1,12})\)", re.IGNORECASE)
_UNIT_FIRST = re.compile(r"[(\[]?(?P<unit>[kKMGT]?i?B/s(?:ec)?)[)\]]? (?P<rest>\w[^()\[\]]{0,60})")
"""`MB/s read`, where a name stands above several columns."""
_WAY = re.compile(r"(?P<what>\S.{0,40}?)\s*[(\[](?P<way>[RWrw])[)\]]")
_BETWEEN_UNITS = re.compile(r"\s+/\s+")
_CPU_SHARE = re.compile(r"%? ?CPU? ?%?", re.IGNORECASE)
_KIB_PER_S = re.compile(r"\bK/s(?:ec)?\b", re.IGNORECASE)


_FIGURE_OF_TOOL = r"~?\d[\d.,]*+ ?[A-Za-z\u00b5][\w\u00b5]*+(?:/\w{1,10}+)?"
_OF_TOOL = re.compile(
    rf"(?P<label>[A-Za-z]\S*(?: [\w-]+)?)\s*+:\s*+(?P<figures>{_FIGURE_OF_TOOL}(?:[,;]?\s++{_FIGURE_OF_TOOL}){{1,9}})"
)
_EACH_OF_TOOL = re.compile(_FIGURE_OF_TOOL)
_DASH = re.compile(r"\s+[-\u2013\u2014:|]\s+")
_IS_WAY = re.compile(r"(?:(?:seq(?:uential)?|rand(?:om)?) ?)?(?:read|write)s?", re.IGNORECASE)


def with_groups(header: list[str], rows: list[list[str]]) -> Grid:
    """The table with the name of a group in each of its rows, where it stands in the first alone, and with what a
    column called `Metric` says of the figures of each row in the name of the row, or in those of columns."""
    are_whole = len(header) > 1 and all(is_text(row[1]) and any(map(quantities, row)) for row in rows)
    if rows and rows[0][0] and not all(row[0] for row in rows) and are_whole:
        filled = accumulate(rows, lambda above, row: row if row[0] else [above[0], *row[1:]])
        rows = [list(row) for row in filled]
    place = next((one for one, name in enumerate(header) if one and name.lower() in METRIC_COLUMN), None)
    if place is None or len(header) < place + 2 or not all(is_text(cell) for row in rows for cell in row[: place + 1]):
        return header, rows
    figures = [cell for row in rows for cell in row[2:]]
    if place == 1 and (len(header) == 3 or all(quantities(cell) or cell.lower() in ("", *ABSENT) for cell in figures)):
        return header[1:], [[f"{row[0]} {row[1]}", *row[2:]] for row in rows]
    return _by_metric(header, rows, place) if len(header) == place + 2 else (header, rows)


def _by_metric(header: list[str], rows: list[list[str]], place: int) -> Grid:
    """The table with a column for each metric that a column names, and a row for what stands left of it."""
    metrics = list(dict.fromkeys(row[place] for row in rows))
    made: list[tuple[list[str], dict[str, str]]] = []
    for row in rows:
        *names, metric, figure = row
        cells = next((cells for of, cells in made if of == names and metric not in cells), None)
        if cells is None:
            made.append((names, cells := {}))
        cells[metric] = figure
    return [*header[:place], *metrics], [[*names, *(cells.get(one, "") for one in metrics)] for names, cells in made]


def of_lines(header: list[str], rows: list[list[str]]) -> Grid:
    """The table with a row for each figure of its cells, where these are lines that a tool printed, each a label and
    figures with units, as db_bench's: `fillrandom : 97.870 micros/op 10217 ops/sec; 20.1 MB/s`."""
    first = int(bool(rows) and not any(_OF_TOOL.fullmatch(row[0]) for row in rows))
    made = []
    for row in rows:
        lines = [_OF_TOOL.fullmatch(cell) for cell in row[first:]]
        labels = {" ".join(line["label"].split()) for line in lines if line}
        cells = [_EACH_OF_TOOL.findall(_of_db_bench(line["figures"])) for line in lines if line]
        known = [[quantity(figure) for figure in figures] for figures in cells]
        metrics = [[one and one.metric for one in of_cell] for of_cell in known]
        if len(cells) < len(lines) or not lines or len(labels) > 1 or metrics != metrics[:1] * len(metrics):
            return header, rows
        if None in metrics[0] or len(set(metrics[0])) < len(metrics[0]):
            return header, rows
        name = " ".join((*row[:first], *labels))
        for metric, *figures in zip(metrics[0], *cells, strict=True):
            made.append([f"{name} latency" if metric == "ns" else name, *figures])
    return ([*(header[:first] or [""]), *header[first:]], made) if made else (header, rows)


def _of_db_bench(figures: str) -> str:
    """What db_bench prints, in units that others write: its MB are 2^20 bytes."""
    is_of_it = "micros/op" in figures
    return figures.replace("micros/op", "us/op").replace("MB/s", "MiB/s") if is_of_it else figures


def with_sizes_alike(rows: list[list[str]]) -> list[list[str]]:
    """The rows with one spelling of each size in a column: `4k` where `4K` stands above it."""
    first: dict[tuple[int, str], str] = {}
    return [
        [
            first.setdefault((place, cell.lower()), cell) if SIZE.fullmatch(cell) else cell
            for place, cell in enumerate(row)
        ]
        for row in rows
    ]


def spelled_out(header: list[str]) -> list[str]:
    """The names of columns, with what `IOP/s (R)` beside `IOP/s (W)` stand for."""
    header = [_UNIT_FIRST.sub(r"\g<rest> (\g<unit>)", name) if _UNIT_FIRST.fullmatch(name) else name for name in header]
    header = [_WAY_AND_UNIT.sub(r"\g<way> (\g<unit>)", _EITHER.sub("IOPS", name)) for name in header]
    ways = [_WAY.fullmatch(name) for name in header]
    if len({found["way"] for found in ways if found}) < 2:
        return header
    full = {"r": "read", "w": "write"}
    return [
        f"{full[found['way'].lower()]} {re.sub(r'IOP/s', 'IOPS', found['what'])}" if found else name
        for found, name in zip(ways, header, strict=True)
    ]


def of_both(header: list[str], rows: list[list[str]], above: str) -> Grid:
    """The table with ` (R/W)` in the names of columns whose cells say `R: 693 / W: 300 MiB/s`, or of all rows if
    columns are changes, and `693 MiB/s / 300 MiB/s` in these cells; and of columns of pairs below a line that says
    `read/write`."""
    if _BOTH_WAYS.search(above) and not any(map(_BOTH_WAYS.search, header)):
        are_pairs = [all(_PAIR.fullmatch(row[place]) for row in rows) for place in range(len(header))]
        header = [f"{name} (R/W)" if is_pair else name for name, is_pair in zip(header, are_pairs, strict=True)]
    columns = list(map(list, zip(header, *rows, strict=True)))
    of_both = []
    for column in columns[1:]:
        found = [_OF_BOTH.fullmatch(cell) for cell in column[1:]]
        pairs = [several(f"{one['read']} / {one['write']}") if one else [] for one in found]
        if any(pairs) and all(pair or cell.lower() in ABSENT for pair, cell in zip(pairs, column[1:], strict=True)):
            column[1:] = [" / ".join(pair or "--") for pair in pairs]
            of_both.append(column)
    if of_both and of_both == columns[1:] and name_changes(header[1:]):
        columns[0] = [header[0], *(f"{name} (R/W)" for name in columns[0][1:])]
    else:
        for column in of_both:
            column[0] = f"{column[0]} (R/W)"
    names, *cells = map(list, zip(*columns, strict=True))
    return names, cells


def by_statistic(header: list[str], rows: list[list[str]], problem: Problem) -> Grid:
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
            problem(f"of {what} the mean alone is read, of {len(names)} figures in a cell")
        for part, statistic in enumerate(names):
            if not is_rate or statistic.lower() in ("mean", "avg", "average"):
                unit = unit_in(what)
                bare = what.replace(unit, "").strip() if unit else what
                whole = " ".join(filter(None, (bare, "" if is_rate else statistic, unit)))
                columns.append((whole, *(one[part] if one else "" for one in parts)))
    first, *others = zip(*columns, strict=True)
    return list(first), [list(row) for row in others]


def of_cpu(header: list[str]) -> list[str]:
    """The names of columns, with a share of the CPU called after what stands left of it: bonnie++'s `%CP`, whose
    `K/sec` are kibibytes."""
    are_cpu = list(map(_CPU_SHARE.fullmatch, header))
    if sum(map(bool, are_cpu)) < 2:
        return header
    bare = [_KIB_PER_S.sub("", name).strip() for name in header]
    named = [f"{name} KiB/s" if one != name else name for name, one in zip(header, bare, strict=True)]
    return [f"{bare[place - 1]} CPU %".strip() if place and one else named[place] for place, one in enumerate(are_cpu)]


def by_way(header: list[str], rows: list[list[str]]) -> Grid:
    """The table with rows and columns of their own for reads and writes, where `IOPS (Read/Write)` names both."""
    parted = [part for row in rows for part in _parted(row)]
    columns = list(zip(header, *parted, strict=True)) if all(len(row) == len(header) for row in parted) else []
    if not any(_BOTH_WAYS.search(name) for name in header[1:]) or not columns:
        return header, parted
    first, *others = (list(part) for column in columns for part in _parted(list(column)))
    names, *cells = zip(first, *others, strict=True)
    return list(names), [list(row) for row in cells]


def by_side(header: list[str], rows: list[list[str]]) -> Grid:
    """The table with a column for each side and a row for each way, where columns are called `write - old`, `write -
    new`, `read - old` and so on."""
    named = [_way_and_side(name) for name in header[1:]]
    sides = list(dict.fromkeys(side for _, side in named))
    ways = list(dict.fromkeys(way for way, _ in named))
    if len(sides) < 2 or "" in sides or len(named) != len(sides) * len(ways) or len(set(named)) < len(named):
        return header, rows
    places = {key: place for place, key in enumerate(named, 1)}
    parted = [[f"{way} {row[0]}", *(row[places[way, side]] for side in sides)] for row in rows for way in ways]
    return [header[0], *sides], parted


def _way_and_side(name: str) -> tuple[str, str]:
    """`write - old` or `old - write`; no side if it names none."""
    one, _, other = (part.strip() for part in _DASH.sub(" - ", name, count=1).partition(" - "))
    if _IS_WAY.fullmatch(one):
        return one.lower(), other
    return (other.lower(), one) if _IS_WAY.fullmatch(other) else ("", "")


def _parted(row: list[str]) -> list[list[str]]:
    pairs = [cell.split(" / ") if " / " in cell else cell.split("/") for cell in row[1:]]
    if not _BOTH_WAYS.search(row[0]) or any(len(pair) != 2 for pair in pairs):
        return [row]
    return [
        [f"{way} {_BOTH_WAYS.sub('', row[0]).strip()}", *(pair[place].strip() for pair in pairs)]
        for place, way in enumerate(("read", "write"))
    ]
