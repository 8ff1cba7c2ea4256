"""`show --as folded`: what functions cost in a guest machine as folded stacks, for programs that draw flame graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.presentation.table import symbols

if TYPE_CHECKING:
    from iolab.files.store import RunData


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """The stacks. InputError if the run is no guest machine's, or if metrics are asked for."""
    if metrics:
        raise InputError("folded stacks hold instructions only", where="--metric", remedy="leave --metric out")
    return symbols.folded(run)
