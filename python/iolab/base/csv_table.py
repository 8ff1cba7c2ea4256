"""Anybody's CSV as a frame of numbers, or an error that names the line and the column."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import InputError, unknown

if TYPE_CHECKING:
    import polars as pl

ABSENT = ("", "na", "n/a", "nan", "null", "none", "-")
"""What stands for a missing number, in any case."""


def read(
    path: Path, keys: Sequence[str], metrics: Sequence[str] | None, text: pl.DataFrame | None = None
) -> tuple[pl.DataFrame, list[str]]:
    """The frame, with `keys` as text and metrics as numbers (null: missing), and which columns are the metrics.

    Separators: commas, semicolons or tabs; the first line is the header. `metrics` None: every column with a number.
    `text`: the file's entries, if they had to be written in another way first.
    """
    frame = _text(path) if text is None else text
    columns = frame.columns
    for column in (*keys, *(metrics or ())):
        if column not in columns:
            raise InputError(f"{column}: {unknown('column', column, columns)}", where=str(path))
    for column in keys:
        missing = frame[column].fill_null("") == ""
        if missing.any():
            raise InputError("empty, expected a value", where=_place(path, int(missing.arg_max() or 0), column))
    numbers = _numbers(frame[list(metrics or [name for name in columns if name not in keys])])
    if metrics is None:
        metrics = [column.name for column in numbers if column.null_count() < len(column)]
    if not metrics:
        raise InputError("no column with numbers to compare", where=str(path))
    chosen = numbers[list(metrics)]
    _refuse_text(frame, chosen, path)
    return frame.with_columns(*chosen), list(metrics)


def with_rounds(frame: pl.DataFrame, keys: Sequence[str]) -> tuple[pl.DataFrame, str]:
    """The frame and its column of rounds: the one that counts the rows with the same keys from 0 or 1, else a new one
    with the place of each row among them."""
    import polars as pl

    place = pl.int_range(pl.len()).over(keys)
    counts = [name for name in frame.columns if name not in keys and _counts_rows(frame, name, keys)]
    if len(counts) == 1:
        return frame, counts[0]
    name = "round"
    while name in frame.columns:
        name += "_"
    return frame.with_columns(place.alias(name)), name


def _counts_rows(frame: pl.DataFrame, column: str, keys: Sequence[str]) -> bool:
    """Whether the column numbers several rows of the same keys, in any order."""
    import polars as pl

    numbers = frame.select(*keys, pl.col(column).cast(pl.Float64, strict=False).alias("\0")).group_by(keys)
    found = numbers.agg(
        pl.len().alias("rows"), pl.col("\0").n_unique().alias("values"), *_extremes("\0"), pl.col("\0").null_count()
    )
    least = found["least"].min()
    return bool(
        least in (0, 1)
        and (found["least"] == least).all()
        and (found["rows"] > 1).all()
        and (found["values"] == found["rows"]).all()
        and (found["most"] == found["rows"] - 1 + least).all()
    )


def _extremes(column: str) -> list[pl.Expr]:
    import polars as pl

    return [pl.col(column).min().alias("least"), pl.col(column).max().alias("most")]


def entries(path: Path, column: str, text: pl.DataFrame | None = None) -> list[str]:
    """What the rows have in the column, each once. InputError as of `read`."""
    frame, _ = read(path, [column], None, text)
    if not frame.height:
        raise InputError("nothing below the header", where=str(path), remedy="expected a line per measurement")
    return [str(one) for one in frame[column].unique(maintain_order=True)]


def header(path: Path) -> list[str]:
    """The names of the columns. InputError as of `read`."""
    return _text(path).columns


def _text(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        with path.open(encoding="utf-8-sig") as file:
            header = file.readline()
        frame = pl.read_csv(path, infer_schema=False, separator=max(",;\t", key=header.count))
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(path)) from error
    except (UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        why = str(error).splitlines()[0]
        raise InputError(f"not a CSV table ({why})", where=str(path), remedy="expected UTF-8 with a header") from error
    frame.columns = [name.strip() for name in frame.columns]
    return frame.with_columns(pl.all().str.strip_chars())


def _numbers(text: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    found = pl.all().cast(pl.Float64, strict=False)
    return text.select(pl.when(found.is_finite()).then(found))


def _refuse_text(text: pl.DataFrame, numbers: pl.DataFrame, path: Path) -> None:
    """InputError at the first entry that is neither a number nor a mark for a missing one."""
    for column in numbers:
        if not column.null_count():
            continue
        for row, (number, entry) in enumerate(zip(column, text[column.name], strict=True)):
            if number is None and (entry or "").lower() not in ABSENT:
                raise InputError(
                    f"'{entry}' is not a number",
                    where=_place(path, row, column.name),
                    remedy="leave a missing value empty, or name the metrics to compare",
                )


def _place(path: Path, row: int, column: str) -> str:
    """file:line, column. A quoted field may span lines, so the line is found by reading."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        for index, _ in enumerate(fields for fields in reader if fields):
            if index == row + 1:
                return f"{path}:{reader.line_num}, column {column}"
    return f"{path}, row {row + 1}, column {column}"
