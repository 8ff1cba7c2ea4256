"""Which of the formats a path has."""

from __future__ import annotations

from pathlib import Path

from iolab.base.bounded_file import is_file, read_bounded
from iolab.base.errors import InputError
from iolab.files.measured import fio, io_cost, run_directory
from iolab.files.measured.found import MeasuredCells

BYTES_MAX = 1 << 26
WHAT = "fio's JSON, a result of io.cost's benchmark (the six rates of io.cost.model), or iolab's run directory"


def is_run(path: Path) -> bool:
    """Whether the path is a run directory of iolab's."""
    return path.is_dir() and is_file(path / "journal.jsonl")


def read(path: Path) -> MeasuredCells:
    """The cells of a file or of a run directory.

    Raises:
        InputError: it is none of them; says what was expected.
    """
    if path.is_dir():
        return run_directory.read(path)
    text = read_bounded(path, BYTES_MAX, "a result").decode(errors="replace")
    if (rates := io_cost.read(text)) is not None:
        return rates
    if '"jobname"' in text and '"jobs"' in text:
        return fio.read(text, str(path))
    raise InputError("holds no measurements that a device can be calibrated by", where=str(path), remedy=f"give {WHAT}")
