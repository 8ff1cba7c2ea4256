"""The file of a calibrated device: its keys, and how far it can be trusted."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from iolab.base.plain_text import counted
from iolab.base.toml import TomlTable, written
from iolab.domain.calibration.fit import FittedKey
from iolab.domain.calibration.result import Calibration

WIDTH = 98


def text(calibration: Calibration, title: str, source: str) -> str:
    """TOML, for `devices/` beside a machine's file.

    Args:
        source: what was measured, a line.
    """
    comments = [title, f'source = "{source}"', *_comments(calibration)]
    head = "\n".join(line for comment in comments for line in comment_lines(comment))
    return f"{head}\n\n{table_text(calibration.device)}"


def table_text(device: TomlTable) -> str:
    """A device's table as TOML: its keys, then its tables, in the order that they have; tables within those in a
    line."""
    keys = [f"{key} = {written(value)}" for key, value in device.items() if not isinstance(value, dict)]
    tables = [(name, value) for name, value in device.items() if isinstance(value, dict)]
    parts = ["\n".join(keys)]
    parts += [
        "\n".join([f"[{name}]", *(f"{key} = {written(one)}" for key, one in table.items())]) for name, table in tables
    ]
    return "\n\n".join(parts) + "\n"


def comment_lines(comment: str) -> list[str]:
    """The comment in lines of a TOML file; those after the first are indented."""
    return textwrap.wrap(
        comment, WIDTH, initial_indent="# ", subsequent_indent="#   ", break_long_words=False, break_on_hyphens=False
    )


def _comments(calibration: Calibration) -> Iterator[str]:
    shown = [one for one in calibration.keys if not one.kept]
    kept = [one.key.name for one in calibration.keys if one.kept]
    cells = ", ".join(answer.cell.name for answer in calibration.part(fitted=True))
    yield f"fitted, to the cells {cells}: {'; '.join(map(_interval, shown)) or 'no key'}"
    if kept:
        why = "not shown by these cells" if calibration.unfinished is None else "no better value was found"
        yield f"{why}, and so of {calibration.base}: {', '.join(kept)}"
    if calibration.unfinished is not None:
        yield f"no interval is known: {calibration.unfinished}"
    for name, found in calibration.summary():
        yield f"{name} ({counted(found.cells, 'cell')}): {found}"
    yield f"estimates (E): all other keys, of {calibration.base}"


def _interval(one: FittedKey) -> str:
    within = f"[{one.low}, {one.high}]" if one.shown else "(no interval)"
    return f"{one.key.name} = {one.value} {within}"
