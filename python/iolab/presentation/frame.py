"""A frame of numbers, read as the command line reads a CSV file of the same columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from iolab.base.csv_table import with_rounds
from iolab.base.errors import InputError, unknown
from iolab.domain.baseline import baseline_of, how_chosen
from iolab.domain.comparison import compare_table
from iolab.files.importer.csv_layout import layout_of
from iolab.files.importer.source import Source
from iolab.presentation.side_by_side import ComparisonRequest, ComparisonResult, compare_paths

if TYPE_CHECKING:
    import polars as pl

    from iolab.domain.definition import Better

NAME = "frame"
"""What messages call it."""


@dataclass(frozen=True)
class FrameColumns:
    """Which column of a frame is what, as far as it is given."""

    setting: str | None
    round: str | None
    workload: str | None
    better: Mapping[str, Better] | None

    def check(self, frame: pl.DataFrame) -> None:
        """InputError for a column that the frame lacks."""
        for role in ("setting", "round", "workload"):
            name = getattr(self, role)
            if name is not None and name not in frame.columns:
                raise InputError(f"{name}: {unknown('column', name, frame.columns)}", where=f"{role}_column")


def compare_frame(frame: pl.DataFrame, columns: FrameColumns, wanted: ComparisonRequest) -> ComparisonResult:
    """Its settings with each other. Columns that are not given are found by the usual names; if none is given, all is
    read as a CSV file is. InputError for what can't be compared."""
    columns.check(frame)
    if frame.is_empty():
        raise InputError("has no rows", where=NAME)
    with TemporaryDirectory() as directory:
        path = Path(directory) / f"{NAME}.csv"
        plain = [name for name, kind in frame.schema.items() if not kind.is_nested()]
        frame.select(plain).write_csv(path)
        try:
            if not any((columns.setting, columns.round, columns.workload, columns.better)):
                found = compare_paths([path], wanted, group_by=None, from_=None)
                return replace(found, problems=[one.replace(str(path), NAME) for one in found.problems])
            columns = _completed(columns, path, wanted)
        except InputError as error:
            where = None if error.where is None else error.where.replace(str(path), NAME)
            raise InputError(error.what, where=where, remedy=error.remedy) from None
    return _compared(frame, columns, wanted)


def _completed(columns: FrameColumns, path: Path, wanted: ComparisonRequest) -> FrameColumns:
    """With the columns that have usual names, unless they are given as something else."""
    if columns.setting and columns.round and columns.workload:
        return columns
    try:
        layout = layout_of(Source(path))
    except InputError:
        if columns.setting and columns.round:
            return columns
        raise
    by_hand = {columns.setting, columns.round, columns.workload, *wanted.metrics}

    def usual(name: str | None) -> str | None:
        return None if name in by_hand else name

    return replace(
        columns,
        setting=columns.setting or usual(layout.setting),
        round=columns.round or usual(layout.round),
        workload=columns.workload or usual(layout.workload),
    )


def _compared(frame: pl.DataFrame, columns: FrameColumns, wanted: ComparisonRequest) -> ComparisonResult:
    if columns.setting is None:
        raise InputError("no column is called as one of settings usually is", where=NAME, remedy="give setting_column")
    names = [str(one) for one in frame[columns.setting].unique(maintain_order=True)]
    baseline = baseline_of(names) if wanted.baseline is None else wanted.baseline
    round_column = columns.round
    if round_column is None:
        frame, round_column = with_rounds(frame, [one for one in (columns.workload, columns.setting) if one])
    found = compare_table(
        frame,
        columns.setting,
        round_column,
        baseline,
        list(wanted.metrics) or None,
        same_within=0.02 if wanted.same_within is None else wanted.same_within,
        workload_column=columns.workload,
        better=columns.better,
        name=NAME,
    )
    chosen = how_chosen(names, baseline, in_any_order=False) if wanted.baseline is None else None
    return ComparisonResult(found, read_as=chosen)
