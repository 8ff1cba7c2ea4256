"""Published figures with their provenance: read, checked, and each cell's place in a run resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TypeVar

from iolab.errors import InputError
from iolab.experiment.problem import Problems
from iolab.experiment.toml import parse
from iolab.metric import ALL, parse_key
from iolab.nearest import unknown
from iolab.option import Options, shown
from iolab.reproduction.options import AimOptions, CellOptions, FileOptions, FittedOptions, TableOptions

DIRECTORY = Path(__file__).parents[3] / "published"
Role = Literal["fit", "prediction", "not compared"]
KeyPath = tuple[str, ...]
OptionsT = TypeVar("OptionsT", bound=Options)


@dataclass(frozen=True)
class Place:
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
    row: str
    column: str
    published: float
    role: Role
    reason: str | None
    """Why it is not compared."""
    place: Place | None
    """None: no metric says anything of it."""

    @property
    def name(self) -> str:
        return f"{self.row}/{self.column}"

    def matches(self, pattern: str) -> bool:
        """Patterns are a shell's, of ROW/COLUMN: `1/total`, `*/test?`."""
        return fnmatchcase(self.name, pattern)


@dataclass(frozen=True)
class Table:
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


@dataclass(frozen=True)
class Published:
    name: str
    title: str
    seed: str
    source: str
    setup: dict[str, str]
    experiment: Path
    fitted: dict[str, FittedOptions]
    tables: list[Table]


def names() -> list[str]:
    """The files that come with iolab. InputError where iolab was installed without them."""
    found = sorted(path.stem for path in DIRECTORY.glob("*.toml"))
    if not found:
        raise InputError(
            "this installation has no published figures", where=str(DIRECTORY), remedy="name a file of your own"
        )
    return found


def load(name: str) -> Published:
    """The figures that `names` lists as `name`, or those of a file NAME.toml. InputError has a line per problem."""
    path = Path(name)
    if path.suffix != ".toml":
        if name not in names():
            raise InputError(f"{name}: {unknown('published figures', name, names())}", where="iolab reproduce")
        path = DIRECTORY / f"{name}.toml"
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise InputError(f"cannot read the published figures: {reason}", where=str(path)) from None
    return loads(text, path)


def loads(text: str, path: Path) -> Published:
    """Checks the text of a file that lies at `path`."""
    document = parse(text, str(path))
    problems = Problems(document)
    top = problems.validated(FileOptions, document.values, (), "a file of published figures")
    if not document.values.get("tables"):
        problems.add(("tables",), "no table; expected at least one, [tables.NAME]")
    if top is None:
        problems.raise_any()
        raise AssertionError("what is not valid has a problem")
    of_all = problems.validated(CellOptions, top.cell, ("cell",), "a cell") or CellOptions()
    published = Published(
        name=path.stem,
        title=top.title,
        seed=top.seed,
        source=top.source,
        setup=top.setup,
        experiment=(path.parent / top.experiment).resolve(),
        fitted=_by_name(FittedOptions, top.fitted, ("fitted",), "a fitted parameter", problems),
        tables=[
            table
            for name, options in _by_name(TableOptions, top.tables, ("tables",), "a table", problems).items()
            if (table := _table(f"{path.stem}/{name}", options, of_all, ("tables", name), problems))
        ],
    )
    problems.raise_any()
    return published


def _table(name: str, options: TableOptions, of_all: CellOptions, path: KeyPath, problems: Problems) -> Table | None:
    fault = _shape_fault(options)
    if fault:
        problems.add((*path, *fault[0]), fault[1])
        return None
    of_table = problems.validated(CellOptions, options.cell, (*path, "cell"), "a cell")
    of_some = _by_name(CellOptions, options.cells, (*path, "cells"), "a cell", problems)
    aims = _by_name(AimOptions, options.aim, (*path, "aim"), "an aim", problems)
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


def _place(cell: Cell, options: CellOptions, role: Role, path: KeyPath, problems: Problems) -> Place | None:
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
        try:
            parse_key(metric)
        except InputError as error:
            problems.add((*path, "cell", key), str(error))
    return Place(
        workload=filled(options.workload),
        setting=filled(options.setting),
        metric=metrics[0],
        per=metrics[1] if len(metrics) > 1 else None,
        job=ALL if options.job is None else filled(options.job),
        divide_by=options.divide_by,
    )


def _by_name(
    model: type[OptionsT], tables: Mapping[str, Any], path: KeyPath, subject: str, problems: Problems
) -> dict[str, OptionsT]:
    """Each of `tables` that is right, as a `model`."""
    found: dict[str, OptionsT] = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            problems.add((*path, name), f"{shown(table)} given; expected a table")
        elif options := problems.validated(model, table, (*path, name), subject):
            found[name] = options
    return found
