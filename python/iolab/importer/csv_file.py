"""Any CSV: a column for the setting, one for the round if there is one, and numbers.

Columns are known by their names (`SETTING`, `WORKLOAD`, `ROUND` below); without a setting's column the first column of
text is taken, without any the file is one setting. Other columns of numbers are metrics, under their own names. Rows
of one round are averaged. Without a column of rounds each row is one; where that would be more than 20,000,
consecutive rows are averaged into about 100 batches.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from iolab.csv_table import ABSENT
from iolab.errors import InputError
from iolab.importer import stream
from iolab.importer.format import Format
from iolab.importer.results import Results
from iolab.importer.source import Source
from iolab.importer.text import is_number
from iolab.metric import OPS

if TYPE_CHECKING:
    import polars as pl

SETTING = ("setting", "kernel", "variant", "config", "configuration", "scheduler", "identifier", "version", "label")
WORKLOAD = ("workload", "benchmark", "test", "job", "case")
ROUND = ("round", "run", "iteration", "iter", "repeat", "rep", "trial")
IGNORED = ("trial", "status", "seed", "position", "attempt")
"""Of iolab's own `show --as csv`, beside a column of rounds."""

ROWS_LOOKED_AT = 1000
ROUNDS_MAX = 20_000
BATCHES = 100
ROWS = "rows of a group"


@dataclass
class Layout:
    """Which column is what."""

    separator: str
    columns: list[str]
    setting: str | None = None
    workload: str | None = None
    round: str | None = None
    rounds_are_whole: bool = False
    """As far as the head shows: whole numbers, which are grouped faster than text."""
    metrics: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    rows_about: int = 0
    """From the file's size and the length of its first lines."""

    @property
    def keys(self) -> list[str]:
        return [column for column in (self.setting, self.workload) if column]


def _parse(source: Source, results: Results) -> None:
    import polars as pl

    layout = layout_of(source)
    if layout is None or not layout.metrics:
        raise InputError("no column with numbers", where=source.name, remedy="expected a header and numbers below it")
    if layout.left_out:
        what = ", ".join(layout.left_out)
        results.problem(f"columns of text are left out: {what}; a column named 'workload' tells workloads apart")
    stream.report_cut_end(source.path, len(layout.columns), layout.separator, results)
    try:
        frame = _averaged(_scan(source, layout), layout, results)
    except pl.exceptions.PolarsError:
        frame = _from_text(source, layout, results)
    _add(frame, layout, source, results)


def layout_of(source: Source) -> Layout | None:
    """What the head of the file shows; None if it is no table."""
    rows = _head_rows(source)
    if len(rows) < 2:
        return None
    separator, (header, *body) = max(",;\t", key=source.head_lines[0].count), rows
    names = [name.strip() for name in header]
    whole = [row for row in body if len(row) == len(names)]
    is_regular = len(whole) >= max(1, len(body) - 1)
    if not is_regular or len(set(names)) != len(names) or not all(names) or all(map(is_number, names)):
        return None
    layout = Layout(separator, names, rows_about=source.lines_about)
    lower = {name.lower(): name for name in reversed(names)}
    layout.setting, layout.workload, layout.round = (
        next((lower[name] for name in known if name in lower), None) for known in (SETTING, WORKLOAD, ROUND)
    )
    values = dict(zip(names, zip(*whole, strict=True), strict=True))
    layout.rounds_are_whole = layout.round is not None and all(map(_is_whole, values[layout.round]))
    numeric = [name for name in names if _is_numeric(values[name])]
    text = [name for name in names if name not in numeric]
    if layout.setting is None:
        layout.setting = next((name for name in text if name not in (layout.workload, layout.round)), None)
    special = {layout.setting, layout.workload, layout.round}
    ignored = {lower[name] for name in IGNORED if layout.round and name in lower}
    layout.metrics = [name for name in numeric if name not in special | ignored]
    layout.left_out = [name for name in text if name not in special | ignored]
    return layout


def _head_rows(source: Source) -> list[list[str]]:
    lines = source.head_lines[: ROWS_LOOKED_AT + 1]
    separator = max(",;\t", key=lines[0].count) if lines else ","
    if not lines or separator not in lines[0]:
        return []
    try:
        return [row for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=separator) if row]
    except csv.Error:
        return []


def _is_numeric(entries: tuple[str, ...]) -> bool:
    """Mostly numbers, so that what else stands in the column is a mistake."""
    present = [entry.strip() for entry in entries if entry.strip().lower() not in ABSENT]
    return bool(present) and 2 * sum(map(_parses, present)) > len(present)


def _is_whole(entry: str) -> bool:
    return re.fullmatch(r"0|[1-9]\d{0,17}", entry) is not None


def _parses(entry: str) -> bool:
    try:
        float(entry)
    except ValueError:
        return False
    return True


def _scan(source: Source, layout: Layout) -> pl.LazyFrame:
    import polars as pl

    schema: dict[str, Any] = {name: pl.Float64 if name in layout.metrics else pl.String for name in layout.columns}
    if layout.round and layout.rounds_are_whole:
        schema[layout.round] = pl.Int64
    return pl.scan_csv(source.path, schema=schema, separator=layout.separator, truncate_ragged_lines=True)


def _from_text(source: Source, layout: Layout, results: Results) -> pl.DataFrame:
    """The slow way, which takes `n/a` and spaces, and names the place of what is no number."""
    import polars as pl

    places = {name: layout.columns.index(name) for name in layout.metrics}
    stream.refuse_text(source.path, places, separator=layout.separator, header_lines=1)
    options: dict[str, Any] = {"separator": layout.separator, "truncate_ragged_lines": True, "encoding": "utf8-lossy"}
    try:
        return _averaged(stream.text_scan(source.path, layout.columns, layout.metrics, **options), layout, results)
    except pl.exceptions.PolarsError as error:
        stream.unreadable(source.path, error)


def _averaged(frame: pl.LazyFrame, layout: Layout, results: Results) -> pl.DataFrame:
    """A row per setting, workload and round, in the order in which they first appear."""
    import polars as pl

    metrics = [pl.col(name).fill_nan(None) for name in layout.metrics]
    if layout.round:
        chosen = frame.select(*layout.keys, pl.col(layout.round).alias("round"), *metrics)
        return _means(chosen.with_row_index("row"), layout, results)
    chosen = frame.select(*layout.keys, *metrics).with_row_index("row")
    if layout.rows_about <= ROUNDS_MAX:
        return chosen.with_columns(*_stripped(layout.keys)).collect()
    length = -(-layout.rows_about // BATCHES)
    results.problem(f"many rows and no column of rounds: every {length} rows are averaged, as one round")
    return _means(chosen.with_columns((pl.col("row") // length).alias("round")), layout, None)


def _means(frame: pl.LazyFrame, layout: Layout, results: Results | None) -> pl.DataFrame:
    """Means by setting, workload and round. Spaces around names are taken off the few groups, not the many rows."""
    import polars as pl

    names = [*layout.keys, "round"]
    counts = [pl.col(name).count().alias(f"count of {name}") for name in layout.metrics]
    sums = [pl.col(name).sum() for name in layout.metrics]
    rows = pl.len().cast(pl.Int64).alias(ROWS)
    (groups,) = stream.collect([frame.group_by(names).agg(pl.col("row").min(), rows, *counts, *sums)])
    texts = [name for name in names if groups.schema[name] == pl.String]
    added = [pl.col(ROWS).sum(), pl.col("^count of .*$").sum(), *sums]
    totals = groups.with_columns(*_stripped(texts)).group_by(names).agg(pl.col("row").min(), *added)
    most = int(totals[ROWS].max() or 0)  # type: ignore[arg-type]
    if most > 1 and results is not None:
        results.problem(f"up to {most} rows share their setting and round; they are averaged, as one round")
    means = [(pl.col(name) / pl.col(f"count of {name}")).fill_nan(None) for name in layout.metrics]
    return totals.select(*names, "row", *means).sort("row")


def _stripped(names: list[str]) -> list[pl.Expr]:
    import polars as pl

    return [pl.col(name).str.strip_chars() for name in names]


def _add(frame: pl.DataFrame, layout: Layout, source: Source, results: Results) -> None:
    table = results.table(1)
    names = {name: _metric_of(name) for name in layout.metrics}
    ordered = _by_round(frame) if layout.round else frame
    for values in ordered.iter_rows(named=True):
        setting = (values[layout.setting] if layout.setting else "") or source.stem_without_round
        workload = (values[layout.workload] if layout.workload else "") or source.stem_without_round
        phases: dict[str, Any] = {}
        for column, (phase, op, metric) in names.items():
            row = phases.get(phase) or phases.setdefault(phase, table.row(setting, workload, phase))
            row.add(metric, values[column], op=op, absent="empty in the file")


def _by_round(frame: pl.DataFrame) -> pl.DataFrame:
    """Rounds in their own order, so that those of two settings pair up."""
    import polars as pl

    number = pl.col("round").cast(pl.Float64, strict=False)
    return frame.sort(number, "row", nulls_last=True, maintain_order=True)


def _metric_of(column: str) -> tuple[str, str, str]:
    """`random_read/read.iops`, as iolab writes it -> phase, operation, metric. Other names stay as they are, less the
    signs that a metric's key is made of: `MB/s` becomes `MB_per_s`."""
    phase, _, rest = column.rpartition("/")
    op, _, name = rest.rpartition(".")
    if re.fullmatch(r"[a-z][a-z0-9_]*", name) and (op or "all") in OPS and re.fullmatch(r"[a-z0-9_]*", phase):
        from iolab.metric import METRICS

        if name in METRICS:
            return phase or "main", op or "all", name
    return "main", "all", column.replace("/", "_per_").replace(".", "_")


def _recognises(source: Source) -> bool:
    layout = layout_of(source)
    return layout is not None and bool(layout.metrics)


FORMAT = Format(
    name="csv",
    help="any table of values separated by commas, semicolons or tabs, with a header",
    recognises=_recognises,
    parse=_parse,
    words=("setting,", "round,", "kernel,", "workload,"),
    among_text=False,
)
