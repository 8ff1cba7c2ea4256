"""What in a table of a text is no result: changes, what is computed over rounds, spreads, remarks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from iolab.files.importer.columns import Grid, Problem, is_change, settings_of, unit_in
from iolab.files.importer.quantity_cell import (
    AS_ROUNDED,
    NAME_OF_SPREAD,
    Quantity,
    quantities,
    quantity,
    with_unit,
    without_unit,
)
from iolab.files.importer.table_axes import NUMBERED, STATISTIC, SUMMARY, counts, is_result, is_text
from iolab.files.importer.text import QUOTED_MAX
from iolab.files.importer.titles import NUMBERED_ROUND
from iolab.files.importer.written_number import number

_CHANGE_OR_NONE = re.compile(r"[-+\u2212~\u00b1]?[\d.,]{1,12} ?%|[-\u2013]?")
_VERSION = re.compile(r"v?\d+\.\d+\.\d")
_OF_INVENTORY = re.compile(
    r"(?:(?:raw|usable|total|disk|drive|used) )?(?:capacity|size|used|free|disks?|drives?|devices?|layout|cores?|cpus?"
    r"|ram|memory|year|rpm|firmware|interface|model|slots?)",
    re.IGNORECASE,
)
"""Columns of what was tested, beside two of text. Chosen."""
_OF_VERSION = re.compile(r"\bversions?\b", re.IGNORECASE)
_OF_LINK = re.compile(r"\d ?[kKMG]?i?bits?/s", re.IGNORECASE)
_OF_RATE = re.compile(r"\d ?[kKMG]?i?(?:bits?|b|B)(?:/s|ps)\b")
_MEAN = re.compile(r"(?:mean|average|avg|median)\.?", re.IGNORECASE)
_OVER_ROUNDS = re.compile(rf"(?:{SUMMARY}|std ?dev|total|sum)\.?", re.IGNORECASE)
"""The name of a row below rounds that is computed from them."""
_NUMBERING = re.compile(r"#|n[or\u00b0\u00ba]\.?|\u2116|idx", re.IGNORECASE)
"""How a column is called that numbers the rows."""
_SPECIFIED = re.compile(
    r"(?:theor\w*|spec(?:s|ified|ifications?)?|rated|advertised|claimed|vendor|data ?sheet)"
    r"(?: (?:max(?:imum)?|peak|value|targets?|limits?)){0,2}(?: ?\([^()]{1,40}\))?|expected\b.{0,40}",
    re.IGNORECASE,
)
_OF_SHEET = re.compile(
    r"form factor|pcie(?: gen\w*)?|nand(?: type)?|tbw|dwpd|endurance|suitable for|quota\b.{0,40}"
    r"|(?:nb )?max(?:imum|\.)? .{2,60} (?:per|par) (?:disks?|disque|volume|drive|vm|instance)\b.*",
    re.IGNORECASE,
)
"""Columns of what a maker says. Chosen, as the other words of sheets and plans are."""
_OF_PLAN = re.compile(
    r"\b(?:performance|throughput|latency|sizing|sl[ao]|system|hardware|product|technical|minimum)"
    r" (?:\w+ )?(?:targets|specifications?|specs|requirements|limits)\b|^\W*recommended\b",
    re.IGNORECASE,
)
_OF_SHARE = re.compile(r"(?:%|percent(?:age)?) of\b|\brelative to\b|\bnormali[sz]ed\b", re.IGNORECASE)
_OF_TESTS = re.compile(r"\b(?:measured|benchmarks?|results?|fio|dd|tested|ran)\b", re.IGNORECASE)
_CHANGES = re.compile(
    r"[~\u2248]?(?:[-+\u2212][\d.,]{1,12} ?%|[\d.,]{1,12} ?[x\u00d7]"
    r"|[-+\u2212]?[\d.,]{1,12}(?:\u2026|\.{2,3}|\u2013|-| to )[-+\u2212]?[\d.,]{1,12} ?[%x\u00d7])(?: \([^()]{1,40}\))?"
)
"""`+10...+17 %`, `1.8x (noise)`."""
_DESCRIBES = re.compile(r"(?:capacity|price|cost|failed|failures)\b.{0,20}", re.IGNORECASE)
_IS_SHARE = re.compile(rf"{_CHANGES.pattern}|[~\u2248]?[\d.,]{{1,12}} ?%")
_FIGURE = re.compile(r"[-+~<>≈]?\d")


def describes_machine(header: list[str], rows: list[list[str]]) -> bool:
    """Whether the table says what the machine was: two columns, most of whose figures are versions and names, or
    columns of text among which figures are sizes and numbers of what was tested."""
    if len(header) > 2:
        figures = [place for place in range(1, len(header)) if any(_FIGURE.match(row[place]) for row in rows)]
        are_of_text = len(header) - 1 - len(figures) >= 2
        return bool(figures) and are_of_text and all(_OF_INVENTORY.fullmatch(header[place]) for place in figures)
    cells = [row[1] for row in rows if row[1]] if len(header) == 2 else []
    known = [one for cell in cells for one in quantities(cell)]
    are_results = any(map(is_result, (*header, *(row[0] for row in rows)))) or any(one.metric for one in known)
    texts = sum(not _FIGURE.match(cell) or bool(_VERSION.match(cell)) for cell in cells)
    return not are_results and (2 * texts > len(cells) or bool(cells and _OF_VERSION.search(header[1])))


def is_of_link(rows: list[list[str]], problem: Problem) -> bool:
    """Whether all rates in its cells are those of a network, in bits."""
    rates = [cell for row in rows for cell in row[1:] if _OF_RATE.search(cell) or _OF_LINK.search(cell)]
    if not rates or not all(map(_OF_LINK.search, rates)):
        return False
    problem("rates of a network in bits: left out")
    return True


def are_changes(rows: list[list[str]], above: str, problem: Problem) -> bool:
    """Whether all figures are changes, or shares of something, as the text above says."""
    cells = [cell for row in rows for cell in row[1:] if any(map(str.isdigit, cell))]
    are_changes = any(map(_CHANGES.fullmatch, cells)) or bool(_OF_SHARE.search(above))
    if not cells or not are_changes or not all(map(_IS_SHARE.fullmatch, cells)):
        return False
    problem("a table of changes alone: left out; give the figures that they were computed of")
    return True


def is_specified(header: list[str], rows: list[list[str]], above: str, problem: Problem) -> bool:
    """Whether columns or rows are those of a data sheet, or the text above says that figures are asked for."""
    are_asked_for = _OF_PLAN.search(above) and not _OF_TESTS.search(above)
    columns = [name for place, name in enumerate(header) if place and any(_FIGURE.match(row[place]) for row in rows)]
    are_expected = bool(columns) and all(map(_SPECIFIED.fullmatch, columns))
    is_sheet = are_expected or any(map(_OF_SHEET.fullmatch, (*header, *(row[0] for row in rows))))
    if not are_asked_for and not is_sheet:
        return False
    problem("a table of what is specified or asked for: left out; iolab compares measurements")
    return True


def without_specified(header: list[str], rows: list[list[str]], problem: Problem) -> Grid:
    """The table less columns and rows that are called by what was specified, beside others that were measured."""
    kept = [place for place, name in enumerate(header) if not (place and _SPECIFIED.fullmatch(name))]
    measured = [row for row in rows if not _SPECIFIED.fullmatch(row[0])]
    if not measured or len(kept) < 2 or (len(measured), len(kept)) == (len(rows), len(header)):
        return header, rows
    problem("what is specified is left out: it was not measured")
    return [header[place] for place in kept], [[row[place] for place in kept] for row in measured]


def without_numbering(header: list[str], rows: list[list[str]]) -> Grid:
    """The table less a first column that numbers the rows, where the second names them."""
    numbers = {row[0] for row in rows}
    are_numbers = _NUMBERING.fullmatch(header[0]) and all(map(str.isdecimal, numbers)) and len(numbers) == len(rows)
    if not are_numbers or len(header) < 3 or not all(is_text(row[1]) for row in rows):
        return header, rows
    return header[1:], [row[1:] for row in rows]


def of_mean(header: list[str], rows: list[list[str]], problem: Problem) -> Grid:
    """The table with the mean alone, where columns are statistics of what the rows are called by."""
    means = [place for place, name in enumerate(header) if place and _MEAN.fullmatch(name)]
    if len(header) < 3 or not all(map(STATISTIC.fullmatch, header[1:])):
        return header, rows
    problem("columns of statistics are left out, but for the mean: they are no settings")
    return [header[0], "value"], [[row[0], row[means[0]] if means else ""] for row in rows]


_WITH_MULTIPLE = re.compile(r"(?P<figure>\d[\d.,]*+) ?\((?P<multiple>\d++(?:\.\d++)?) ?[xX\u00d7]?\)")
MULTIPLES_MIN = 3
MOST = 0.8


def without_changed(rows: list[list[str]], problem: Problem) -> list[list[str]]:
    """The rows less those of changes between the others: `delta | +34% | -25%`."""
    changed = [row for row in rows if any(row[1:]) and all(map(_CHANGE_OR_NONE.fullmatch, row[1:]))]
    if (
        not changed
        or len(rows) - len(changed) < 2
        or not all(is_change(row[0]) or row[1][:1] in "+-" for row in changed)
    ):
        return rows
    problem("rows of changes are left out: they are computed anew")
    return [row for row in rows if row not in changed]


def without_multiples(rows: list[list[str]]) -> list[list[str]]:
    """The cells less how many times that of another column they are, as in `1001 (4.0)`, if that is what most say."""
    found = [
        (row, place, cell)
        for row in rows
        for place, text in enumerate(row)
        if place and (cell := _WITH_MULTIPLE.fullmatch(text))
    ]
    if len(found) < MULTIPLES_MIN or not rows:
        return rows
    for base in range(1, len(rows[0])):
        known = [(number(row[base]), cell) for row, place, cell in found if place != base and number(row[base])]
        right = sum(
            abs((number(cell["figure"]) or 0) / value - float(cell["multiple"])) <= 0.1 + 0.02 * float(cell["multiple"])
            for value, cell in known
            if value
        )
        if right >= MULTIPLES_MIN and right >= MOST * len(found):
            return [[row[0], *(_WITH_MULTIPLE.sub(r"\g<figure>", text) for text in row[1:])] for row in rows]
    return rows


def without_text(header: list[str], rows: list[list[str]], problem: Problem) -> Grid:
    """The table less columns of text right of the first, such as options of commands, where the others are settings of
    one metric and the first column tells the rows apart."""
    kept = [place for place in range(len(header)) if not place or any(quantities(row[place]) for row in rows)]
    bare = [header[place] for place in kept]
    if len(kept) in (len(header), 1) or len({row[0] for row in rows}) < len(rows) or settings_of(bare) is None:
        return header, rows
    left_out = ", ".join(name for place, name in enumerate(header) if place not in kept)
    problem(f"columns of text are left out: {left_out}")
    return bare, [[row[place] for place in kept] for row in rows]


def of_rounds(header: list[str], rows: list[list[str]], problem: Problem) -> Grid:
    """The table less what is computed over rounds, with the unit of all in the cells, where columns are numbered
    rounds that share one."""
    bare = [name.replace(unit_in(name), "").strip() for name in header]
    units = {unit_in(name) for name in header[1:]}
    over_all = [place for place, name in enumerate(bare) if place and _OVER_ROUNDS.fullmatch(name)]
    # What has a mean beside it was repeated, even if it is called a test.
    is_round = NUMBERED if over_all else re.compile(NUMBERED_ROUND)
    numbered = [place for place, name in enumerate(bare) if place and is_round.fullmatch(name)]
    if len(numbered) < 2 or len(numbered) + len(over_all) < len(header) - 1 or len(units) > 1 or units == {""}:
        return header, rows
    if over_all:
        problem(f"columns over all rounds are left out: {', '.join(bare[one] for one in over_all)}")
    unit = units.pop()
    cells = [[row[0], *(with_unit(row[place], unit) for place in numbered)] for row in rows]
    return [bare[0], *(bare[place] for place in numbered)], cells


def without_numbers(rows: list[list[str]], problem: Problem) -> list[list[str]]:
    """Rows that are rounds, without the numbers that they are called by, and without statistics over them."""
    numbered = [row for row in rows if re.fullmatch(NUMBERED_ROUND, row[0])]
    over_all = [row[0] for row in rows if _OVER_ROUNDS.fullmatch(row[0])]
    if len({row[0] for row in numbered}) < 2 or len(numbered) + len(over_all) < len(rows):
        return rows
    if over_all:
        problem(f"rows over all rounds are left out: {', '.join(over_all)[:QUOTED_MAX]}")
    return [["", *row[1:]] for row in numbered]


def without_prefix(header: list[str]) -> list[str]:
    """`data.size | data.iops` -> `size | iops`."""
    prefixes = {name.rpartition(".")[0] for name in header}
    bare = [name.rpartition(".")[2] for name in header]
    return bare if len(prefixes) == 1 and re.fullmatch(r"[A-Za-z_]\w*", prefixes.pop()) and all(bare) else header


def without_spreads(header: list[str], rows: list[list[str]], problem: Problem) -> Grid:
    """The table less columns that are called by spreads alone, beside others of figures."""
    kept = [place for place, name in enumerate(header) if not place or not NAME_OF_SPREAD.fullmatch(name)]
    if not 1 < len(kept) < len(header):
        return header, rows
    problem("columns of spreads are left out: they are no rounds")
    return [header[place] for place in kept], [[row[place] for place in kept] for row in rows]


def without_remarks(header: list[str], rows: list[list[str]]) -> Grid:
    """The table less text right of its last figures, where names or counts stand left of them."""
    end = 1 + max((place for row in rows for place, cell in enumerate(row) if _FIGURE.match(cell)), default=0)
    are_named = any(is_text(row[0]) for row in rows) or counts(header[0], [row[0] for row in rows])
    return (header[:end], [row[:end] for row in rows]) if end > 2 and are_named else (header, rows)


def without_descriptions(header: list[str], rows: list[list[str]], problem: Problem) -> Grid:
    """The table less columns that describe what was tested, or count what failed."""
    measured = {place for row in rows for place, cell in enumerate(row) if any(one.metric for one in quantities(cell))}
    kept = [one for one, name in enumerate(header) if not one or one in measured or not _DESCRIBES.fullmatch(name)]
    if not 1 < len(kept) < len(header):
        return header, rows
    left_out = ", ".join(name for place, name in enumerate(header) if place not in kept)
    problem(f"columns that describe what was tested, or count failures, are left out: {left_out}")
    return [header[place] for place in kept], [[row[place] for place in kept] for row in rows]


def without_same(header: list[str], rows: list[list[str]], problem: Problem) -> Grid:
    """The table less columns that say the same as one left of them in another unit: `Rate (GB/s)`, `Rate (MiB/s)`."""
    columns = [[quantity(with_unit(row[place], name)) for row in rows] for place, name in enumerate(header)]
    kept: list[int] = []
    for place, name in enumerate(header):
        alike = [one for one in kept if without_unit(header[one]) == without_unit(name) != name]
        if not any(_are_same(columns[one], columns[place]) for one in alike):
            kept.append(place)
    if len(kept) < len(header):
        problem("columns that say the same in another unit are left out")
    return [header[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _are_same(first: Sequence[Quantity | None], second: Sequence[Quantity | None]) -> bool:
    return all(
        one is not None and other is not None and abs(one.value - other.value) <= AS_ROUNDED * one.value
        for one, other in zip(first, second, strict=True)
    )


def without_repeated(header: list[str], rows: list[list[str]], problem: Problem) -> Grid:
    """The table less columns of figures that share their name: what parts them is not stated."""
    again = [name for name, count in Counter(name for name in header[1:] if name).items() if count > 1]
    if not again:
        return header, rows
    problem(f"{header.count(again[0])} columns are called {again[0]}: left out; give each a name")
    kept = [place for place, name in enumerate(header) if not place or name not in again]
    return [header[place] for place in kept], [[row[place] for place in kept] for row in rows]
