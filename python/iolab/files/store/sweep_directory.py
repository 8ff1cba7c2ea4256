"""The directory of a sweep: a run for each cell of the matrix, and sweep.json, which states what the cells are.

```
sweep.json             the cells: experiment, machine, the run's directory, or why there is none
NAME/                  a run directory as `iolab run` makes it (directory.py)
```
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from iolab.base import beneath, replaceable
from iolab.base.bounded_file import MIB, read_bounded
from iolab.base.durable import put_in_place, write_durably
from iolab.base.errors import InputError
from iolab.files.store.directory import check_free

FILE = "sweep.json"
FILE_BYTES_MAX = 64 * MIB


class Cell(BaseModel):
    """An experiment on a machine."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    experiment: str
    """The experiment's file, without folder and suffix."""
    machine: str
    run: str
    """The name of the run's directory."""
    impossible: str | None = None
    """Why there is no run."""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: Literal[1]
    iolab_version: str
    cells: list[Cell]


@dataclass(frozen=True)
class SweepDirectory:
    """A sweep as it lies on disk."""

    path: Path
    cells: Sequence[Cell]

    @property
    def runs(self) -> list[tuple[Cell, Path]]:
        """The cells that have a run, each with its directory."""
        return [(cell, self.path / cell.run) for cell in self.cells if cell.impossible is None]

    @staticmethod
    def open(path: Path) -> SweepDirectory:
        """InputError if `path` is no sweep, or its sweep.json can't be read."""
        if not is_sweep(path):
            what = f"is not a sweep: it has no {FILE}" if path.is_dir() else "is not a directory"
            raise InputError(what, where=str(path), remedy="name a directory that `iolab sweep` made")
        try:
            file = _File.model_validate_json(_content(path))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise InputError(f"can't be read: {first['msg']}", where=str(path / FILE)) from None
        if any(os.sep in cell.run or cell.run in ("", ".", "..") for cell in file.cells):
            raise InputError("names a run that is not in its directory", where=str(path / FILE))
        return SweepDirectory(path, file.cells)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else goes on with the sweep meanwhile. InputError if somebody does."""
        replaceable.refuse_strangers(self.path)
        descriptor = beneath.open_file(self.path / FILE, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise InputError(
                "another iolab is running here", where=str(self.path), remedy="wait for it or stop it first"
            ) from None
        finally:
            os.close(descriptor)


def is_sweep(path: Path) -> bool:
    """Whether `iolab sweep` made the directory."""
    return beneath.is_file(path / FILE)


def _content(path: Path) -> bytes:
    return read_bounded(path / FILE, FILE_BYTES_MAX, "a sweep's list of cells", within=path)


def create(path: Path, cells: Sequence[Cell], make_run: Callable[[Cell, Path], object], version: str) -> SweepDirectory:
    """Makes the directory complete with all its runs, by `make_run` of each cell and its path, under another name, then
    renames it: a kill leaves either no sweep or one that can be gone on with. InputError if `path` is taken."""
    check_free(path)
    replaceable.refuse_strangers(path.parent)
    try:
        beneath.make_directories(path.parent)
        with put_in_place(path, [FILE, *(cell.run for cell in cells)]) as nursery:
            for cell in cells:
                if cell.impossible is None:
                    make_run(cell, nursery / cell.run)
            file = _File(format=1, iolab_version=version, cells=list(cells)).model_dump(exclude_none=True)
            write_durably(nursery / FILE, (json.dumps(file, indent=2, ensure_ascii=False) + "\n").encode())
    except OSError as error:
        check_free(path)
        raise InputError(
            f"the sweep's directory can't be made: {error.strerror}", where=str(path), remedy="choose another --out"
        ) from None
    return SweepDirectory(path, list(cells))
