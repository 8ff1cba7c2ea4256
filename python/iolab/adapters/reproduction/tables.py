"""Published tables: read, checked, and each cell's place in a run resolved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from iolab.adapters.reproduction.options import AimOptions, CellOptions, KeyPath, TableOptions, by_name, check_metric
from iolab.base.option import shown
from iolab.domain.metric import ALL

if TYPE_CHECKING:
    from iolab.base.problem import Problems

Role = Literal["fit", "prediction", "not compared"]


@dataclass(frozen=True)
class CellSelector:
    """Where a run has what a cell is about. `job` is "all" for all jobs together; `per` is a second metric that the
    first is divided by."""

    workload: str
    setting: str
    metric: str
    per: str | None
    job: str
    divide_by: float


@dataclass(frozen=True)
class Cell:
    """A published figure, its role, and where a run has its like."""

    row: str
    column: str
    published: float
    role: Role
    reason: str | None
    """Why it is not compared."""
    place: CellSelector | None
    """None: no metric says anything of it."""

    @property
    def name(self) -> str:
        """`row/column`, as patterns name it."""
        return f"{self.row}/{self.column}"

    def matches(self, pattern: str) -> bool:
        """Patterns are a shell's, of ROW/COLUMN: `1/total`, `*/test?`."""
        return fnmatchcase(self.name, pattern)


@dataclass(frozen=True)
class Table:
    """A published table, its cells resolved."""

    name: str
    """FILE/TABLE."""
    title: str
    unit: str
    columns: list[str]
    rows: list[str]
    cells: list[Cell]
    """Row by row."""
    notes: dict[str, str]
    """Pattern -> what those who published the cells doubted."""
    aims: dict[str, AimOptions]
    """By pattern."""


def read_tables(file: str, tables: dict[str, Any], cell: dict[str, Any], problems: Problems) -> Iterator[Table]:
    """The tables of [tables.NAME] that are right; `cell` is the file's [cell]."""
    of_all = problems.validated(CellOptions, cell, ("cell",), "a cell") or CellOptions()
    for name, options in by_name(TableOptions, tables, ("tables",), "a table", problems).items():
        if table := _table(f"{file}/{name}", options, of_all, ("tables", name), problems):
            yield table


def _table(name: str, options: TableOptions, of_all: CellOptions, path: KeyPath, problems: Problems) -> Table | None:
    fault = _shape_fault(options)
    if fault:
        problems.add((*path, *fault[0]), fault[1])
        return None
    of_table = problems.validated(CellOptions, options.cell, (*path, "cell"), "a cell")
    of_some = by_name(CellOptions, options.cells, (*path, "cells"), "a cell", problems)
    aims = by_name(AimOptions, options.aim, (*path, "aim"), "an aim", problems)
    cells = [
        _cell(row, column, figure, options, _Found(of_all, of_table or CellOptions(), of_some), path, problems)
        for row, figures in options.rows.items()
        for column, figure in zip(options.columns, figures, strict=True)
    ]
    for key, patterns in (
        ("cells", options.cells),
        ("fit", options.fit),
        ("not_compared", options.not_compared),
        ("notes", options.notes),
        ("aim", options.aim),
    ):
        for pattern in patterns:
            if not any(cell.matches(pattern) for cell in cells):
                problems.add((*path, key), f"{shown(pattern)}: no cell is named so; names are ROW/COLUMN")
    predictions = sum(cell.role == "prediction" for cell in cells)
    if 2 * predictions < len(cells):
        problems.add(path, f"{predictions} of {len(cells)} cells are predictions; expected at least half")
    return Table(name, options.title, options.unit, options.columns, list(options.rows), cells, options.notes, aims)


def _shape_fault(options: TableOptions) -> tuple[KeyPath, str] | None:
    columns = options.columns
    if not columns or len(set(columns)) < len(columns):
        return ("columns",), "expected at least one column, each with a name of its own"
    for row, figures in options.rows.items():
        if len(figures) != len(columns):
            return ("rows", row), f"{len(figures)} figures given for {len(columns)} columns"
    return None if options.rows else (("rows",), "expected at least one row")


@dataclass(frozen=True)
class _Found:
    """How cells are found: what says more beats what says less."""

    of_all: CellOptions
    of_table: CellOptions
    of_some: Mapping[str, CellOptions]

    def options(self, cell: Cell) -> CellOptions:
        layers = [self.of_all, self.of_table, *(one for pattern, one in self.of_some.items() if cell.matches(pattern))]
        given = {key: getattr(layer, key) for layer in layers for key in layer.model_fields_set}
        return CellOptions.model_construct(**given)


def _cell(
    row: str, column: str, figure: float, table: TableOptions, found: _Found, path: KeyPath, problems: Problems
) -> Cell:
    cell = Cell(row, column, figure, "prediction", None, None)
    reason = next((why for pattern, why in table.not_compared.items() if cell.matches(pattern)), None)
    role: Role = "fit" if any(map(cell.matches, table.fit)) else "prediction"
    if reason is not None:
        role = "not compared"
    return Cell(row, column, figure, role, reason, _place(cell, found.options(cell), role, path, problems))


def _place(cell: Cell, options: CellOptions, role: Role, path: KeyPath, problems: Problems) -> CellSelector | None:
    def filled(template: str) -> str:
        return template.replace("{row}", cell.row).replace("{column}", cell.column)

    if options.metric is None and role == "not compared":
        return None
    missing = [key for key in ("workload", "setting", "metric") if getattr(options, key) is None]
    if missing:
        problems.add((*path, "cell"), f"{', '.join(missing)} missing of cell {cell.name}")
        return None
    assert options.workload is not None and options.setting is not None and options.metric is not None
    metrics = [filled(options.metric), *([] if options.per is None else [filled(options.per)])]
    for key, metric in zip(("metric", "per"), metrics, strict=False):
        check_metric(metric, (*path, "cell", key), problems)
    return CellSelector(
        workload=filled(options.workload),
        setting=filled(options.setting),
        metric=metrics[0],
        per=metrics[1] if len(metrics) > 1 else None,
        job=ALL if options.job is None else filled(options.job),
        divide_by=options.divide_by,
    )
