"""`show --as fs_mark_verbose`: the table of `fs_mark -v`, with minimum, mean and maximum of each system call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab.presentation.table import fs_mark

if TYPE_CHECKING:
    from iolab.files.store import RunData


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """As `fs_mark.render`, with the calls."""
    return fs_mark.render(run, metrics, calls=True)
