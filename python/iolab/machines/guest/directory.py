"""Where a guest machine's files lie while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iolab.machines.system import state
from iolab.machines.system.own_directory import make_own_directory
from iolab.machines.system.undo import UndoJournal

FOLDER = "guests"


@contextmanager
def made_directory(parent: str | None) -> Iterator[Path]:
    """A directory of the machine's own, gone with it. It is in the undo journal, so that `iolab restore` removes what a
    killed process left. Raises as `make_own_directory`."""
    place = state.state_subdirectory(FOLDER) if parent is None else Path(parent)
    with UndoJournal.open() as undo:
        yield make_own_directory(place, undo).path
