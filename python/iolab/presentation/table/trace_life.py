"""The life of single requests, a line for each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from iolab.base.plain_text import counted, one_line
from iolab.base.quantity import format_bytes
from iolab.presentation.table.trace import error_name

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.studies.trace.life import RequestLives

_STEPS = (
    ("queued_ns", "queued: its first bio entered the block layer"),
    ("inserted_ns", "inserted: the scheduler has it"),
    ("issued_ns", "issued: the driver has it"),
    ("completed_ns", "completed"),
)
_MARKS = ("sync", "read_ahead", "metadata", "fua", "preflush", "zeroes", "split")


def shown(lives: RequestLives) -> Iterator[RenderableType]:
    """Each request with its steps, in the order of arrival."""
    from rich.table import Table

    for row in lives.rows:
        table = Table(title=_title(row), title_justify="left")
        table.add_column("at (s)", justify="right")
        table.add_column("after (µs)", justify="right")
        table.add_column("step")
        before = None
        for key, what in _STEPS:
            at = row[key]
            if at is None:
                table.add_row("", "", f"not known: {key.removesuffix('_ns')}")
                continue
            after = "" if before is None else f"{(at - before) / 1e3:.3f}"
            table.add_row(f"{(at - lives.began_ns) / 1e9:.9f}", after, what)
            before = at
        yield table
    if lives.more:
        yield f"{lives.more} more: --to parquet has all"


def _title(row: dict[str, Any]) -> str:
    who = f"{row['process']}-{row['pid']}" if row["process"] else f"task {row['pid']}"
    marks = [mark.replace("_", " ") for mark in _MARKS if row[mark]]
    marks += [f"{counted(row['merged'], 'bio')} joined it"] if row["merged"] else []
    marks += [f"given back {counted(row['requeues'], 'time')}"] if row["requeues"] else []
    marks += [f"failed with {error_name(row['error'])}"] if row["error"] else []
    size = format_bytes(row["sectors"] * 512)
    text = f"{row['operation']} of {size} at sector {row['sector']} of {row['device']}, by {who} on CPU {row['cpu']}"
    return one_line(", ".join([text, *marks]))
