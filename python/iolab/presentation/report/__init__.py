"""The report: a run as one HTML file that opens without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base import output_file
from iolab.base.errors import InputError
from iolab.presentation.report.page import render

if TYPE_CHECKING:
    from iolab.adapters.store import RunData


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
    output_file.write(path, page)
    return len(page)
