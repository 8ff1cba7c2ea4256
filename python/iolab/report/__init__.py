"""The report: a run as one HTML file that opens without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.errors import InputError, MachineError

if TYPE_CHECKING:
    from iolab.store import RunData


def write(run: RunData, path: Path, metrics: Sequence[str] = ()) -> None:
    """Writes the page to `path`, whole or not at all.

    InputError if it can't be written, or if the run was measured with a debug build.
    """
    from iolab.report.page import render
    from iolab.store.durable import write_atomically

    if run.build_profile == "debug":
        raise InputError(
            "measured with a debug build of iolab, whose numbers are not to be reported",
            where=str(run.path),
            remedy="build iolab in release mode and run it again",
        )
    page = render(run, metrics)
    try:
        write_atomically(path, page.encode())
    except MachineError as error:
        raise InputError(error.what, where=str(path), remedy="choose another place: -o FILE.html") from error
