"""`iolab.trace`: what a trace of block I/O shows, as frames. docs/reference/python.md explains it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from iolab.base.errors import InputError, unknown
from iolab.presentation.notebook import html
from iolab.presentation.table.trace import STAGES, doubts, shown
from iolab.studies.trace import shortened, study, trace_of
from iolab.studies.trace.export import frames, task_names

if TYPE_CHECKING:
    import polars as pl

    from iolab.base.trace_files import Trace as Files
    from iolab.domain import native_types as native

GROUPS: dict[str, Literal["by_operation", "by_size", "by_process", "by_cpu"]] = {
    "operation": "by_operation",
    "size": "by_size",
    "process": "by_process",
    "cpu": "by_cpu",
}

_COUNTS: tuple[Literal["name", "count", "bytes", "errors"], ...] = ("name", "count", "bytes", "errors")
_STATISTICS: tuple[Literal["count", "mean", "min", "p50", "p90", "p99", "p99_9", "p99_99", "max"], ...] = (
    *("count", "mean", "min", "p50", "p90", "p99", "p99_9", "p99_99", "max"),
)


class Trace:
    """A trace that was read. Frames are polars; `.to_pandas()` turns one into a pandas frame."""

    def __init__(self, files: Files) -> None:
        """Users call `iolab.trace`."""
        self._files = files
        self._figures = study(files)

    @property
    def figures(self) -> dict[str, Any]:
        """What `iolab trace --json --short` prints."""
        return shortened(self._figures)

    @property
    def problems(self) -> list[str]:
        """What is missing, and what the figures therefore leave out; a line each."""
        return list(doubts(self._figures))

    @cached_property
    def requests(self) -> pl.DataFrame:
        """A row per request in the order of completion, with the columns of `--to parquet` (docs/traces.md): the whole
        trace in memory."""
        import polars as pl

        rows = list(frames(self._files))
        if not rows:
            raise InputError("no request ended in it", where=self._files.name)
        names = task_names(self._files)
        called = pl.DataFrame(
            {"pid": list(names), "process": list(names.values())}, schema={"pid": pl.UInt32, "process": pl.String}
        )
        return pl.concat(rows).join(called, on="pid", how="left", maintain_order="left")

    def by(self, what: str) -> pl.DataFrame:
        """A row per operation, size, process or cpu: name, count, bytes, errors, and of each stage that is known its
        statistics, such as `device_ns_p99`.

        Raises:
            InputError: nothing that requests are grouped by.
        """
        if what not in GROUPS:
            raise InputError(unknown("group", what, GROUPS), where="by")
        return _frame([_group(group) for group in self._figures[GROUPS[what]]])

    @property
    def devices(self) -> pl.DataFrame:
        """A row per device, with the figures of the table `Devices` and the statistics of its requests' stages."""
        kept = (int, float, str, type(None))
        return _frame(
            [
                {
                    **{key: value for key, value in device.items() if isinstance(value, kept)},
                    **_group(device["requests"]),
                }
                for device in self._figures["devices"]
            ]
        ).drop("count", "errors", strict=False)

    @property
    def slowest(self) -> pl.DataFrame:
        """The slowest requests: where, what, who, and the nanoseconds in each stage."""
        return _frame(
            [
                {
                    **{key: value for key, value in slow.items() if key not in ("ahead", "stages_ns")},
                    **dict(zip((stage for stage, _ in STAGES), slow["stages_ns"], strict=True)),
                }
                for slow in self._figures["slowest"]
            ]
        )

    def __repr__(self) -> str:
        everything = self._figures["all"]
        return f"Trace({self._files.name!r}, {self._figures['format']}, requests={everything['count']})"

    def _repr_html_(self) -> str:
        return html(*shown(self._figures))


def trace(
    source: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    columns: str | None = None,
    separator: str | None = None,
    gaps: str | None = None,
) -> Trace:
    """Reads a trace of block I/O from any of the tools.

    Args:
        source: its file, or its files; of blktrace, the name before `.blktrace.0` stands for the files of all CPUs.
        columns: of a table of a format that is not known, what each column holds (`iolab trace --columns`).
        separator: between its columns.
        gaps: `filtered` or `lost`: what numbers of events are that a text of blkparse leaves out.

    Raises:
        InputError: it can't be read, or holds no block I/O.
    """
    paths = [source] if isinstance(source, str | PathLike) else list(source)
    return Trace(trace_of([Path(path) for path in paths], columns, separator, gaps))


def _group(group: native.GroupFigures) -> dict[str, Any]:
    row: dict[str, Any] = {key: group[key] for key in _COUNTS}
    for stage, _ in STAGES:
        values = group[stage]
        row |= {f"{stage}_{name}": None if values is None else values[name] for name in _STATISTICS}
    return row


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(rows, infer_schema_length=None)
