"""Which cells and statements are no evidence about the model: those that a fit or a choice serves, and those that
follow from other cells."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from iolab.base.errors import unknown
from iolab.base.option import shown
from iolab.base.problem import Problems
from iolab.studies.reproduction.options import ChosenOptions, FittedOptions, KeyPath
from iolab.studies.reproduction.tables import Cell, Role, Table

CLAIMS = "claims"
"""The name under which `serves` has statements; no table may have it."""
By = FittedOptions | ChosenOptions
CellKey = tuple[str, str, str]
"""Table, row and column."""


def patterns(
    fitted: Mapping[str, FittedOptions], chosen: Mapping[str, ChosenOptions]
) -> dict[str, dict[Role, list[str]]]:
    """By table, the patterns of the cells that are served, by what serves them."""
    found: dict[str, dict[Role, list[str]]] = {}
    served: list[tuple[Role, By]] = [("fit", one) for one in fitted.values()]
    served += [("chosen", one) for one in chosen.values()]
    for role, one in served:
        for table, cells in one.serves.items():
            found.setdefault(table, {}).setdefault(role, []).extend(cells)
    return found


def serves(one: By, part: str, name: str) -> bool:
    """Whether a cell of a table, or a statement of `CLAIMS`, is served."""
    return any(fnmatchcase(name, pattern) for pattern in one.serves.get(part, []))


def check(
    path: KeyPath, one: By, tables: Sequence[Table], claims: Sequence[str], wrong: Collection[str], problems: Problems
) -> None:
    """Notes a problem for each table, cell and statement in `serves` that the file does not have. `wrong`: tables that
    have problems of their own."""
    known = {table.key: [cell.name for cell in table.cells] for table in tables}
    if claims:
        known[CLAIMS] = list(claims)
    if not one.serves:
        problems.add((*path, "serves"), "serves nothing; expected at least one table with patterns of its cells")
    for part, wanted in one.serves.items():
        if part in wrong:
            continue
        if part not in known:
            problems.add((*path, "serves"), f"{part}: {unknown('table', part, list(known))}")
            continue
        if not wanted:
            problems.add((*path, "serves"), f"{part}: an empty list; expected patterns of cells")
        for pattern in wanted:
            if not any(fnmatchcase(name, pattern) for name in known[part]):
                what = "statement" if part == CLAIMS else "cell"
                problems.add((*path, "serves"), f"{shown(pattern)}: no {what} of {part} is named so")


def with_sources(tables: Sequence[Table], problems: Problems) -> list[Table]:
    """The tables, with the cells marked that follow from others. If all that a cell follows from is served, so
    is the cell."""
    cells = {(table.key, cell.row, cell.column): cell for table in tables for cell in table.cells}
    sources = {place: list(_sources(place, tables, problems)) for place in cells}
    for place, found in sources.items():
        for source in found:
            if source not in cells:
                problems.add(("tables", place[0], "follows"), f"{_name(source)}: there is no such cell")
    roles = {place: _role(place, cells, sources, ()) for place in cells}
    for place, role in roles.items():
        if role is None:
            problems.add(("tables", place[0], "follows"), f"{_name(place)} follows from itself")
    return [
        replace(
            table,
            cells=[
                replace(cell, role=roles[place] or cell.role, follows=bool(sources[place]))
                for cell in table.cells
                for place in [(table.key, cell.row, cell.column)]
            ],
        )
        for table in tables
    ]


def _sources(place: CellKey, tables: Sequence[Table], problems: Problems) -> Iterator[CellKey]:
    """What a cell follows from. A pattern may hold for its own source, which is then the one that counts."""
    key, row, column = place
    table = next(table for table in tables if table.key == key)
    for pattern, one in table.follows.items():
        if not fnmatchcase(f"{row}/{column}", pattern):
            continue
        names = [text.replace("{row}", row).replace("{column}", column) for text in one.source]
        if not names:
            problems.add(("tables", key, "follows", pattern), "an empty source; expected at least one cell")
        places = [_place(name, key) for name in names]
        if place not in places:
            yield from places


def _place(name: str, table: str) -> CellKey:
    other, colon, cell = name.partition(":")
    row, _, column = (cell if colon else name).partition("/")
    return (other if colon else table, row, column)


def _name(place: CellKey) -> str:
    return f"{place[0]}:{place[1]}/{place[2]}"


def _role(
    place: CellKey, cells: Mapping[CellKey, Cell], sources: Mapping[CellKey, list[CellKey]], above: tuple[CellKey, ...]
) -> Role | None:
    """None: it follows from itself."""
    if place in above:
        return None
    own = cells[place].role
    known = [source for source in sources[place] if source in cells]
    of_sources = [_role(source, cells, sources, (*above, place)) for source in known]
    if None in of_sources:
        return None
    if own != "prediction" or not of_sources or not all(role in ("fit", "chosen") for role in of_sources):
        return own
    return "fit" if all(role == "fit" for role in of_sources) else "chosen"
