"""The Parquet of one trial: one long table, and the specification and record beside it as metadata.
docs/reference/store.md lists the columns."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from iolab.base.bounded_file import read_bounded
from iolab.base.durable import write_atomically
from iolab.base.errors import InputError
from iolab.base.gc_pause import gc_paused
from iolab.domain.phase_record import without_series
from iolab.domain.record import Record
from iolab.files.store import parquet
from iolab.files.store.rows import TableRow, table_rows

if TYPE_CHECKING:
    import polars

METADATA_SPEC = "iolab.spec"
METADATA_RECORD = "iolab.domain.record"
OF_TRIAL = ("trial", "round", "workload", "setting")
"""The columns that are the same in every row."""


@dataclass(frozen=True)
class TrialFileDigest:
    """What identifies a trial's file: the journal's entry for it."""

    size_bytes: int
    sha256: str

    @staticmethod
    def of(content: bytes) -> TrialFileDigest:
        """What the content of a trial's file is known by: size and SHA-256."""
        return TrialFileDigest(len(content), hashlib.sha256(content).hexdigest())


def write(path: Path, record: Record, rows: list[TableRow] | None = None) -> TrialFileDigest:
    """Writes the record's file, whole and durable on return. MachineError if the disk refuses.

    `rows`: the table of a record that comes from elsewhere; without them it is computed from the record.
    """
    with gc_paused():
        content = encode(record, rows)
    write_atomically(path, content, path.parent.parent)
    return TrialFileDigest.of(content)


def encode(record: Record, rows: list[TableRow] | None = None) -> bytes:
    """The file's content: a function of the record and its rows alone."""
    if rows is None:
        rows = table_rows(record)
    buffer = io.BytesIO()
    _frame(record, rows).write_parquet(
        buffer,
        metadata={METADATA_SPEC: record.spec.model_dump_json(), METADATA_RECORD: summary_of(record).model_dump_json()},
    )
    return buffer.getvalue()


def read_record(path: Path, within: Path | None = None) -> Record:
    """The record in a trial's file, less histograms and intervals. ValueError if the file is not whole or not ours.
    Below `within`, by default the run's directory, no link is followed."""
    import polars as pl

    try:
        content = read_content(path, within)
    except InputError as error:
        raise ValueError(f"not a whole trial file: {error.what}") from None
    check(content)
    with parquet.decoding():
        # Parsing the footer alone would miss pages that were never written: decode everything once.
        table = pl.read_parquet(io.BytesIO(content))
        names = table.select(*OF_TRIAL).unique()
        record = Record.model_validate_json(pl.read_parquet_metadata(io.BytesIO(content))[METADATA_RECORD])
        if names.rows() not in ([], [tuple(getattr(record.spec, name) for name in OF_TRIAL)]):
            raise ValueError("its rows and its record are of different trials")
        if table.filter(pl.col("what") == "metric").select("job", "key").is_duplicated().any():
            raise ValueError("it has a metric twice")
        return record


def read_content(path: Path, within: Path | None = None) -> bytes:
    """InputError if the file can't be read."""
    return read_bounded(path, parquet.FILE_BYTES_MAX, "a trial's file", within=within or path.parent.parent)


def check(content: bytes) -> None:
    """ValueError if a trial's file must not be decoded: not ours, or it claims more than its size accounts for."""
    parquet.check_table(content, table_schema())


def summary_of(record: Record) -> Record:
    """The record less the histograms and intervals, which the table holds, and the traces, which are files."""
    return record.model_copy(update={"phases": [without_series(phase) for phase in record.phases], "traces": {}})


TableSchema: TypeAlias = "dict[str, type[polars.DataType]]"
"""The type of each column of a table."""


def table_schema() -> TableSchema:
    """The table's columns and their polars types."""
    import polars as pl

    types: TableSchema = {"trial": pl.Int64, "round": pl.Int64, "at": pl.Float64, "value": pl.Float64}
    return {name: types.get(name, pl.String) for name in (*OF_TRIAL, *TableRow._fields)}


def _frame(record: Record, rows: list[TableRow]) -> polars.DataFrame:
    import polars as pl

    spec = record.spec
    of_trial = {"trial": spec.trial, "round": spec.round, "workload": spec.workload, "setting": spec.setting}
    of_rows = zip(*rows, strict=True) if rows else ((),) * len(TableRow._fields)
    columns: dict[str, Sequence[object]] = {name: [value] * len(rows) for name, value in of_trial.items()}
    columns |= dict(zip(TableRow._fields, of_rows, strict=True))
    # Each of its type from the start: to have a whole frame cast takes polars' threads, once for each trial.
    return pl.DataFrame([pl.Series(name, columns[name], type) for name, type in table_schema().items()])
