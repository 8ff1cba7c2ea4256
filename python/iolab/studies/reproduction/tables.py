"""Published tables: read, checked, and each cell's place in a run resolved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from iolab.base.errors import unknown
from iolab.base.option import shown
from iolab.base.plain_text import counted
from iolab.base.problem import Problems
from iolab.base.toml import TomlTable
from iolab.domain.metric import ALL
from iolab.studies.reproduction.options import (
    AimOptions,
    CellOptions,
    FollowsOptions,
    KeyPath,
    NullOptions,
    TableOptions,
    by_name,
    check_metric,
)

Role = Literal["fit", "chosen", "prediction", "not compared"]
SERVED: tuple[Role, ...] = ("fit", "chosen")
"""What is served by a fit and by a choice counts as fitted."""
Served = Mapping[str, Mapping[Role, list[str]]]
"""By table: the patterns of the cells that fits serve, and those that choices serve."""


@dataclass(frozen=True)
class CellSelector:
    """Where a run has what a cell is about. `job` is "all" for all jobs together; `per` is a second metric that the
    first is divided by, `against` a second setting."""

    workload: str
    setting: str
    metric: str
    per: str | None
    against: str | None
    job: str
    divide_by: float
    runs: int
    """How many runs the published figure adds up."""


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
    """None: no metric corresponds to it."""
    follows: bool = False
    """Whether it follows from other cells: then it is no evidence of its own."""

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
    follows: dict[str, FollowsOptions]
    """By pattern, what the cells follow from."""
    null: NullOptions

    @property
    def key(self) -> str:
        """Its name in the file."""
        return self.name.partition("/")[2]


def read_tables(file: str, tables: TomlTable, cell: TomlTable, served: Served, problems: Problems) -> Iterator[Table]:
    """The tables of [tables.NAME] that are right; `cell` is the file's [cell]."""
    of_all = problems.validated(CellOptions, cell, ("cell",), "a cell") or CellOptions()
    for name, options in by_name(TableOptions, tables, ("tables",), "a table", problems).items():
        if table := _table(f"{file}/{name}", options, of_all, served.get(name, {}), problems):
            yield table


def _table(
    name: str, options: TableOptions, of_all: CellOptions, served: Mapping[Role, list[str]], problems: Problems
) -> Table | None:
    path = ("tables", name.partition("/")[2])
    fault = _shape_fault(options)
    if fault:
        problems.add((*path, *fault[0]), fault[1])
        return None
    of_table = problems.validated(CellOptions, options.cell, (*path, "cell"), "a cell")
    of_some = by_name(CellOptions, options.cells, (*path, "cells"), "a cell", problems)
    aims = by_name(AimOptions, options.aim, (*path, "aim"), "an aim", problems)
    follows = by_name(FollowsOptions, options.follows, (*path, "follows"), "what cells follow from", problems)
    null = problems.validated(NullOptions, options.null, (*path, "null"), "null predictors") or NullOptions()
    cells = [
        _cell(
            row,
            column,
            figure,
            options,
            served,
            _CellLayers(of_all, of_table or CellOptions(), of_some),
            path,
            problems,
        )
        for row, figures in options.rows.items()
        for column, figure in zip(options.columns, figures, strict=True)
    ]
    for key, patterns in (
        ("cells", options.cells),
        ("follows", options.follows),
        ("not_compared", options.not_compared),
        ("notes", options.notes),
        ("aim", options.aim),
    ):
        for pattern in patterns:
            if not any(cell.matches(pattern) for cell in cells):
                problems.add((*path, key), f"{shown(pattern)}: no cell is named so; names are ROW/COLUMN")
    if 2 * sum(cell.role == "fit" for cell in cells) > len(cells):
        problems.add(path, "more than half of its cells are served by fits; expected at most half")
    for key, what in _null_faults(null, options):
        problems.add((*path, "null", key), what)
    return Table(
        name,
        options.title,
        options.unit,
        options.columns,
        list(options.rows),
        cells,
        options.notes,
        aims,
        follows,
        null,
    )


def _null_faults(null: NullOptions, table: TableOptions) -> Iterator[tuple[str, str]]:
    if null.baseline_row is not None and null.baseline_row not in table.rows:
        yield "baseline_row", unknown("row", null.baseline_row, list(table.rows))
    columns = [("baseline_column", null.baseline_column), ("total", null.total)]
    columns += [("weights", column) for column in null.weights]
    for key, column in columns:
        if column is not None and column not in table.columns:
            yield key, unknown("column", column, table.columns)
    if (null.total is None) != (not null.weights):
        yield "total", "expected total and weights together"
    if any(weight <= 0 for weight in null.weights.values()):
        yield "weights", "expected weights above 0"


def _shape_fault(options: TableOptions) -> tuple[KeyPath, str] | None:
    columns = options.columns
    if not columns or len(set(columns)) < len(columns):
        return ("columns",), "expected at least one column, each with a name of its own"
    for row, figures in options.rows.items():
        if len(figures) != len(columns):
            return ("rows", row), f"{counted(len(figures), 'figure')} given for {counted(len(columns), 'column')}"
    return None if options.rows else (("rows",), "expected at least one row")


@dataclass(frozen=True)
class _CellLayers:
    """How cells are found: the more specific pattern wins."""

    of_all: CellOptions
    of_table: CellOptions
    of_some: Mapping[str, CellOptions]

    def options(self, cell: Cell) -> CellOptions:
        layers = [self.of_all, self.of_table, *(one for pattern, one in self.of_some.items() if cell.matches(pattern))]
        given = {key: getattr(layer, key) for layer in layers for key in layer.model_fields_set}
        return CellOptions.model_construct(**given)


def _cell(
    row: str,
    column: str,
    figure: float,
    table: TableOptions,
    served: Mapping[Role, list[str]],
    found: _CellLayers,
    path: KeyPath,
    problems: Problems,
) -> Cell:
    cell = Cell(row, column, figure, "prediction", None, None)
    reason = next((why for pattern, why in table.not_compared.items() if cell.matches(pattern)), None)
    role: Role = next((role for role in SERVED if any(map(cell.matches, served.get(role, [])))), "prediction")
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
        against=None if options.against is None else filled(options.against),
        job=ALL if options.job is None else filled(options.job),
        divide_by=options.divide_by,
        runs=options.runs,
    )
