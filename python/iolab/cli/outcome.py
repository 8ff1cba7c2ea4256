"""How a command that measured ends: the table, the verdicts in words, where the run lies, the exit status."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from iolab.cli.fail_on import exit_if_met
from iolab.cli.output import print_json
from iolab.errors import EXIT_CONDITION

if TYPE_CHECKING:
    from iolab.store import RunData


def show_outcome(path: Path, *, as_json: bool, fail_on: Sequence[str], report: Path | None = None) -> None:
    """Prints the run in `path`, and ends the command with status 1 if a `fail_on` condition holds, or if no trial was
    measured to its end."""
    from iolab.store import read
    from iolab.table.json import as_dict
    from iolab.table.summary import summarise

    data = read(path)
    summary = summarise(data)
    if as_json:
        print_json({**as_dict(summary, data), "report": None if report is None else str(report)})
    else:
        from iolab.table.plain import tables
        from iolab.terminal import show

        show(tables(summary))
        print(f"\nRun:    {path}")
        print(f"Report: {report}" if report is not None else f"Next:   iolab report {path} -o report.html")
    exit_if_met(fail_on, summary.comparisons, trials_not_ok=summary.trials_not_ok)
    _exit_if_all_failed(data)


def _exit_if_all_failed(data: RunData) -> None:
    if set(data.trials["status"]) <= {"failed", "impossible"}:
        none = f"none of the run's {data.trials.height} trials was measured to its end"
        print(f"iolab: {none}; why: iolab show {data.path}", file=sys.stderr)
        raise typer.Exit(EXIT_CONDITION)
