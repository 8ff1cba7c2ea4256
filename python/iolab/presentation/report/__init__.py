"""The report: a run as one HTML file that opens without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iolab.base import output_file
from iolab.base.errors import InputError
from iolab.files.store import RunData
from iolab.files.store.directory import RunDirectory
from iolab.presentation.report.page import render


def write(run: RunData, path: Path, metrics: Sequence[str] = ()) -> int:
    """Writes the page to `path`, as `iolab.base.output_file` does, and returns its bytes.

    Raises:
        InputError: it can't be written there, or the run was measured with a debug build.
        MachineError: no room.
    """
    if run.build_profile == "debug":
        raise InputError(
            "measured with a debug build of iolab, whose numbers are not to be reported",
            where=str(run.path),
            remedy="build iolab in release mode and run it again",
        )
    page = render(run, metrics).encode()
    output_file.write(path, page, files_of(run.path))
    return len(page)


def files_of(run: Path) -> list[Path]:
    """What a run, or a file of results, is read from, and no page must be written over."""
    if not run.is_dir():
        return [run]
    directory = RunDirectory(run)
    parts = (directory.trials, directory.index, directory.files, directory.traces)
    inside = [file for part in parts if part.is_dir() for file in part.iterdir()]
    return [directory.experiment_file, directory.machine_file, directory.journal_file, *inside]
