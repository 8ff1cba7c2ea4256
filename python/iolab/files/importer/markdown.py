"""Tables of Markdown, and those that clients of databases and libraries draw with `+`: `| setting | iops |` above
`|---|---|`, or between lines such as `+---+---+`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest

from iolab.base.plain_text import counted
from iolab.files.importer.columns import MEASURED, OF_RESULT, OF_TEST, RATIO, is_amount, stated_in, unit_in
from iolab.files.importer.format import Format
from iolab.files.importer.headings import of_bars, of_cells
from iolab.files.importer.quantity_cell import LATENCY, left_out_behind, quantities, several, without_spread
from iolab.files.importer.results import Results, Table
from iolab.files.importer.source import Line, Source
from iolab.files.importer.stated_units import StatedUnits
from iolab.files.importer.table_axes import STATISTIC
from iolab.files.importer.table_rest import without_multiples
from iolab.files.importer.text_table import add

_RULE = re.compile(
    r"\s*+\|?(?>(?:\s*+:?-{2,}+:?\s*+\|)+)(?:\s*+:?-{2,}+:?)?\s*+$"
    r"|\s*+-{3,}+\s*+(?>(?:\|\s*+-{3,}+ ++-{3,}+\s*+)+)$|\s*+\|(?>(?::?-:?\|){2,})\s*+$"
)
"""`|---|---|`; `------ | --- ---- | --- ----` as YABS has it."""
_DRAWN = re.compile(r"\s*+[+|]?(?>(?:[-=]{2,}+\+)+)(?:[-=]{2,}+\|?)?\s*+$")
"""`+------+------+`, above the header, below it, and below rows; `------+------` below the header."""
_OF_PLOT = re.compile(r"\s*+\|(?=.*[x+*%#@O_])[ x+*%#@O|_AM]++\s*+$")
"""A line of what ministat draws: it has no cells."""
_DASHES = re.compile(r"\s*+-{8,}+\s*+$")
"""Above the heading, below it and below the rows, where columns are parted by bars alone."""
_CROSSINGS = "┌┬┐├┼┤└┴┘┏┳┓┡╇┩┣╋┫┗┻┛╞╪╡╒╤╕╘╧╛╭╮╰╯╔╦╗╠╬╣╚╩╝"
_BOX = str.maketrans(
    {**dict.fromkeys("│┃║", "|"), **dict.fromkeys("─━═╌", "-"), **dict.fromkeys(_CROSSINGS, "+")},
)
_MARKS = "*_` "
_REFERENCE = re.compile(r"^\[([^\[\]]{1,80})\]\[[\w.-]{0,60}\]$")
"""A link to an address that stands elsewhere."""
BARS_COLUMNS_MIN = 3
AMOUNTS_MIN = 2
TITLE_MAX = 100
"""Of the line above a table that may state its unit: a longer one is a sentence. Chosen."""
ROWS_MIN = 2
"""Of a table without a rule: so many cells and rows are no prose."""


def _parse(source: Source, results: Results) -> None:
    lines, before = _with_corners(list(source.lines(results.problem))), set(results.lines_read)
    _add_all(source, lines, results)
    for place, (above, line) in enumerate(pairwise((Line(0, ""), *lines))):
        begins = not _cells(above.text) and not _ends_heading(above.text, []) and line.number not in before
        if begins and _header_in([one.text for one in lines[place : place + 1 + ROWS_MIN]]) is not None:
            results.problem(
                "no rule such as |---|---|---| below this header, as other tables have: left out", line.number
            )


def _parse_bars(source: Source, results: Results) -> None:
    _add_all(source, list(_ruled(_with_corners(list(source.lines(results.problem))))), results)


def _with_corners(lines: Sequence[Line]) -> list[Line]:
    """The lines, with a bar at the side of headings whose first cell is empty, and that begin with the bar behind it:
    `  | old | new` above `read | 1 | 2`."""
    made, heading = list(lines), list[int]()
    for place, line in enumerate(lines):
        cells = _cells(line.text)
        if cells and line.text.lstrip().startswith("|"):
            heading.append(place)
            continue
        # A heading without a rule is right above its rows.
        if not cells and heading and _is_rule(line.text):
            continue
        if heading and len(_cells(lines[heading[-1]].text)) + 1 == len(cells):
            for one in heading:
                text = lines[one].text
                made[one] = Line(lines[one].number, f"|{text[1:]}" if text[:1].isspace() else f"| {text}")
        heading = []
    return made


def _ruled(lines: Sequence[Line]) -> Iterator[Line]:
    """The lines, with a rule below each header that has none."""
    for place, line in enumerate(lines):
        header = _header_in([one.text for one in lines[place : place + 1 + ROWS_MIN]])
        yield line if header is None else Line(line.number, header)
        if header is not None:
            yield Line(line.number, "---|---")


def _header_in(lines: Sequence[str]) -> str | None:
    """The first line, if it names columns and those below it are rows: as many cells, some of them figures."""
    text, *below = lines
    header, rows = _cells(text), list(map(_cells, below))
    are_names = all(map(_is_filled, header[1:])) and not any(map(quantities, header))
    are_rows = all(len(row) == len(header) and any(map(quantities, row)) for row in rows)
    is_table = len(header) >= BARS_COLUMNS_MIN and len(rows) == ROWS_MIN
    return text if is_table and are_names and are_rows else None


def _add_all(source: Source, lines: Sequence[Line], results: Results) -> None:
    for what in left_out_behind(cell for line in source.text_lines for cell in _cells(line)):
        results.problem(what)
    header: list[str] = []
    before: list[str] = []
    above = ""
    """The last line of the heading."""
    heading: list[str] = []
    """Lines of names since the last rule."""
    is_whole = False
    """Whether the heading's second line, below a rule, is in the header."""
    rows: list[list[str]] = []
    is_parted = False
    """Whether rules part its rows."""
    table: Table | None = None
    what = over = ""
    """The last line above the table that is none of it."""
    was_drawn = is_framed = has_rules = False
    """Whether the line above is a rule, the one above that, and the one above the table's heading."""
    last = 0
    units = StatedUnits(lines)
    below_no_rule: list[Line] = []
    """Rows, as their figures show, of no table."""
    for line in lines:
        cells = _cells(line.text)
        if cells:
            results.lines_read.add(line.number)
        if len(cells) < 2 and line.text.strip() and not _is_rule(line.text) and not _DASHES.match(line.text):
            over = line.text
        is_drawn = _is_rule(line.text) or bool(_DASHES.match(line.text))
        begins = not rows or table is None or (not has_rules and bool(_RULE.match(line.text)))
        is_rule = _ends_heading(line.text, before) and begins
        if is_rule and len(before) > 1:
            if below_no_rule and below_no_rule[-1].number >= line.number - 1:
                below_no_rule.pop()
            if table is not None and len(rows) > 1:
                add(table, *_with_stated(what, header, rows[:-1]), source, results)
            if table is not None and not rows and is_whole:
                before = cells
                continue
            header = (_names_in(heading) if len(heading) > 1 else None) or before
            header += [""] * (len(_cells(line.text)) - len(header))
            what, has_rules = _stated(over), is_framed
            above, is_whole = heading[-1] if heading else "", len(heading) > 1
            rows, is_parted, table = [], False, results.table(line.number, caption=header[0] or None)
        elif table is not None and not rows and not is_whole and (names := _below(above, header, line.text)):
            header, is_whole = names, True
        elif table is not None and rows and is_drawn:
            is_parted = True  # Between two rows, or at the end.
        elif (
            table is not None
            and rows
            and is_parted
            and not was_drawn
            and len(cells) == len(header)
            and _are_shares(cells[1:])
        ):
            results.problem("lines of changes below figures are left out: they are computed anew", line.number)
            rows[-1][0] += cells[0]
        elif (
            table is not None
            and len(cells) in (len(header), max(len(header) - 1, 2))
            and not (rows and was_drawn and not any(map(quantities, cells[1:])))
        ):
            # A last cell that is empty may be left out.
            cells = [*cells, ""][: len(header)]
            if rows and cells[0] == header[0] and cells != header:
                # A header among the rows, as of YABS' second half.
                add(table, *_with_stated(what, header, rows), source, results)
                header, rows = cells, []
                continue
            if not any(map(_is_filled, cells)):
                continue
            rows.append([without_spread(cell) for cell in cells])
        else:
            if table is not None:
                add(table, *_with_stated(what or units.below(last), header, rows), source, results)
                if len(cells) > 1:
                    results.problem(
                        f"{counted(len(cells), 'cell')}, and the header has {len(header)}: left out", line.number
                    )
            elif len(cells) >= BARS_COLUMNS_MIN and any(map(quantities, cells[1:])):
                below_no_rule.append(line)
            table = None
        heading = [] if is_drawn else _heading(heading, before, line.text)
        before, is_framed, was_drawn = cells, was_drawn, is_drawn
        last = line.number
    if table is not None:
        add(table, *_with_stated(what or units.below(last), header, rows), source, results)
    if below_no_rule:
        of = counted(len(below_no_rule), "row has", "rows have")
        results.problem(f"{of} no header with a rule such as |---|---| below it: left out", below_no_rule[0].number)


def _stated(over: str) -> str:
    """What the line above a table says that figures are: a title or a caption, and no sentence with figures."""
    return "" if len(over) > TITLE_MAX or MEASURED.search(over) else stated_in(over)


def _with_stated(what: str, header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The table with the unit that the line above states in the names of its columns, where nothing in it says what its
    figures are."""
    rows = without_multiples(rows)
    names = (*header, *(row[0] for row in rows if row and not STATISTIC.fullmatch(row[0])))
    cells = [cell for row in rows for cell in row[1:]]
    is_known = any(OF_RESULT.search(name) or LATENCY.search(name) or unit_in(name) for name in names)
    if what and is_known and not any(OF_RESULT.search(name) or unit_in(name) for name in header):
        return header, [[f"{row[0]} {what}", *row[1:]] if _is_test_alone(row) else row for row in rows]
    if not what or is_known or any(one.metric for cell in cells for one in quantities(cell)):
        return header, rows
    columns = [[row[place] for row in rows] for place in range(len(header))]
    of_figures = [
        bool(place) and any(quantities(cell) or several(cell) for cell in cells) and not is_amount(name, cells)
        for place, (name, cells) in enumerate(zip(header, columns, strict=True))
    ]
    return [f"{name} {what}".strip() if is_one else name for name, is_one in zip(header, of_figures, strict=True)], rows


def _is_test_alone(row: list[str]) -> bool:
    """Whether the row's name and its figures say what was done, and not what of it was measured."""
    name, *cells = row
    known = [one for cell in cells for one in quantities(cell)]
    says = OF_RESULT.search(name) or LATENCY.search(name) or unit_in(name) or STATISTIC.fullmatch(name)
    return bool(OF_TEST.search(name)) and not says and bool(known) and all(one.metric is None for one in known)


def _ends_heading(text: str, above: list[str]) -> bool:
    return _is_rule(text) or (len(above) > 2 and bool(_DASHES.match(text)))


def _heading(known: list[str], before: list[str], text: str) -> list[str]:
    """The lines of a heading with one more: below a rule, without figures, of as many cells or more."""
    cells = _cells(text)
    begins = not before and bool(cells)
    goes_on = bool(known) and len(cells) >= len(_cells(known[0]))
    return [*known, text] if (begins or goes_on) and not any(map(quantities, cells)) else []


def _names_in(heading: list[str]) -> list[str] | None:
    """The names of columns that the lines of a heading state together."""
    lines = [_cells(text) for text in heading]
    if len(set(map(len, lines))) == 1:
        return of_cells(lines)
    return of_bars(*map(_drawn, heading)) if len(heading) == 2 else None


def _below(above: str, header: list[str], text: str) -> list[str] | None:
    """The names that a line right below the rule makes of a header: it has no figures, and a name for each column that
    shares its name with another, or has none; or amounts. None for any other line."""
    cells = _cells(text)
    if amounts := _amounts_below(header, cells):
        return amounts
    cells += [""] * (len(header) - len(cells))
    are_names = all(cell or not name for cell, name in zip_longest(cells[1:], header[1:], fillvalue=""))
    if len(cells) < 3 or any(map(quantities, cells)) or not are_names or sum(map(_is_filled, cells[1:])) < 2:
        return None
    if len(cells) > len(header) > 1:
        return of_bars(_drawn(above), _drawn(text))
    are_groups = not all(header[1:]) or len(set(header[1:])) < len(header[1:])
    names = of_cells([header, cells]) if len(cells) == len(header) and are_groups else None
    return names and [
        name if cell or not place else "" for place, (name, cell) in enumerate(zip(names, cells, strict=True))
    ]


def _amounts_below(header: list[str], cells: list[str]) -> list[str] | None:
    """The names that a row of amounts makes of a header that is a title alone: `Write speed (MiB/s) | | |` above
    `Size | 10 | 50 | MiB`. None for any other row."""
    are_amounts = len(cells) == len(header) and header[1:].count("") >= AMOUNTS_MIN and all(cells)
    if not are_amounts or not is_amount(cells[0], (amounts := [cell for cell in cells[1:] if cell.isdecimal()])):
        return None
    if len(amounts) < len(cells) - 2 or not unit_in(header[0]):
        return None
    unit = "" if cells[-1].isdecimal() else f" {cells[-1]}"
    return [header[0], *(f"{cell}{unit}" if cell.isdecimal() else "Unit" for cell in cells[1:])]


def _are_shares(cells: Sequence[str]) -> bool:
    return any(cells) and all(RATIO.fullmatch(cell) for cell in cells if cell)


def _is_filled(cell: str) -> bool:
    return bool(cell.strip("\\- "))


def _is_rule(text: str) -> bool:
    return bool(_RULE.match(text) or _DRAWN.match(_drawn(text)))


def _drawn(text: str) -> str:
    return text if text.isascii() else text.translate(_BOX)


def _cells(text: str) -> list[str]:
    text = _drawn(text)
    if "|" not in text or _OF_PLOT.match(text):
        return []
    text = text.replace("`", "").replace("**", "").replace("<br>", " ")
    return [
        _REFERENCE.sub(r"\1", cell.strip(_MARKS))
        for cell in text.strip().removeprefix("|").removesuffix("|").split("|")
    ]


def _recognises(source: Source) -> bool:
    return any(
        len(cells := _cells(above)) > 1 and _ends_heading(line, cells) and bool(_cells(below))
        for above, line, below in zip(source.text_lines, source.text_lines[1:], source.text_lines[2:], strict=False)
    )


def _recognises_bars(source: Source) -> bool:
    lines = [line.text for line in _with_corners([Line(0, text) for text in source.text_lines])]
    headers = (_header_in(lines[place : place + 1 + ROWS_MIN]) for place in range(len(lines)))
    return not _recognises(source) and any(header is not None for header in headers)


FORMAT = Format(
    name="markdown",
    help="tables of Markdown with numbers in them, also drawn with + and lines",
    recognises=_recognises,
    parse=_parse,
    words=("|---", "---|", "| ---", "-+-"),
    titled=True,
    is_written=True,
)
BARS = Format(
    name="bars",
    help="tables with bars between their columns, and no rule below the header",
    recognises=_recognises_bars,
    parse=_parse_bars,
    words=FORMAT.words,
    titled=True,
    is_written=True,
)
