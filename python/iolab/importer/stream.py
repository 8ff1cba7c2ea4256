"""Large files of numbers through polars' streaming engine: in parallel, and in memory that does not grow with them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from iolab.csv_table import ABSENT
from iolab.errors import InputError
from iolab.importer.results import Results

if TYPE_CHECKING:
    import polars as pl


def collect(frames: Sequence[pl.LazyFrame]) -> list[pl.DataFrame]:
    """Several results of one scan in one pass. PolarsError if the file is not what the schema says."""
    import polars as pl

    return pl.collect_all(list(frames), engine="streaming")


def text_scan(path: Path, columns: Sequence[str], numeric: Sequence[str], **options: Any) -> pl.LazyFrame:
    """The file with numeric columns cast from text, null where they can't be: slower, and takes any spelling."""
    import polars as pl

    frame = pl.scan_csv(path, schema=dict.fromkeys(columns, pl.String), **options)
    return frame.with_columns(pl.col(name).str.strip_chars().cast(pl.Float64, strict=False) for name in numeric)


def refuse_text(path: Path, numeric: dict[str, int], *, separator: str, header_lines: int) -> None:
    """InputError at the first entry of a numeric column (name -> place) that is neither a number nor says that one is
    missing."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=separator)
        try:
            for number, fields in enumerate(reader):
                if number < header_lines or not fields:
                    continue
                for name, place in numeric.items():
                    entry = fields[place].strip() if place < len(fields) else ""
                    if entry.lower() not in ABSENT and not _is_number(entry):
                        raise InputError(
                            f"'{entry[:40]}' is not a number",
                            where=f"{path}:{reader.line_num}, column {name}",
                            remedy="leave a missing value empty",
                        )
        except csv.Error as error:
            raise InputError(f"not a table: {error}", where=f"{path}:{reader.line_num}") from None


def unreadable(path: Path, error: Exception) -> NoReturn:
    raise InputError(f"not a table ({' '.join(str(error).split())[:120]})", where=str(path)) from error


def report_cut_end(path: Path, columns: int, separator: str, results: Results) -> None:
    """A problem if the last line has fewer fields than the others and no end: the file was cut off."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - (1 << 16)))
        tail = file.read()
    last = tail.rpartition(b"\n")[2]
    if last and last.count(separator.encode()) + 1 < columns:
        results.problem(f"the last line is cut off: {last.count(separator.encode()) + 1} of {columns} fields")


def _is_number(entry: str) -> bool:
    try:
        float(entry)
    except ValueError:
        return False
    return True
