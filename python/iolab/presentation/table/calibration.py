"""A calibration as tables: fitted keys, cells beside the simulated device, errors beside predictors without one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from iolab.base.quantity import plain
from iolab.domain.calibration.cell import factor

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from iolab.domain.calibration.fit import FittedKey
    from iolab.domain.calibration.result import Calibration


def calibration_tables(found: Calibration) -> Iterator[RenderableType]:
    """Keys with their intervals; cells, the fitted ones first; the errors in short; what was left out."""
    from rich.text import Text

    yield _keys(found)
    yield Text()
    yield _cells(found)
    yield Text()
    yield _errors(found)
    if found.unfinished is not None:
        yield Text(f"! {found.unfinished}", style="yellow")
    yield from (Text(f"! left out: {line}", style="yellow") for line in found.left_out)


def _keys(found: Calibration) -> RenderableType:
    table = _table("key", "fitted", "95 % interval")
    for one in found.keys:
        why = "none: the search was ended" if found.unfinished else _interval(one, found.base)
        table.add_row(one.key.name, "" if one.kept else f"{one.value:,}", why)
    return table


def _interval(one: FittedKey, base: str) -> str:
    if one.shown:
        return f"{one.low:,} to {one.high:,}"
    return f"not shown by these cells: as of {base}" if one.kept else "none: bounded on one side only, or too few cells"


def _cells(found: Calibration) -> RenderableType:
    table = _table("cell", "", "measured/s", "simulated/s", "off", "nearest", "mean", "p99 off")
    for answer in sorted(found.answers, key=lambda one: not one.fitted):
        tail = answer.p99_factor
        table.add_row(
            answer.cell.name,
            "fit" if answer.fitted else "held back",
            plain(answer.cell.iops, 4),
            plain(answer.iops, 4),
            _times(answer.factor),
            "" if answer.fitted else _times(factor(answer.nearest, answer.cell.iops)),
            "" if answer.fitted else _times(factor(answer.mean, answer.cell.iops)),
            "" if tail is None else _times(tail),
        )
    return table


def _errors(found: Calibration) -> RenderableType:
    table = _table("errors", "cells", "typical", "worst", "within 25 %")
    for name, errors in found.summary():
        table.add_row(name, str(errors.cells), _times(errors.typical), _times(errors.worst), f"{errors.within:.0%}")
    return table


def _times(value: float) -> str:
    return f"x{plain(value, 3)}"


def _table(first: str, *columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right")
    return table
