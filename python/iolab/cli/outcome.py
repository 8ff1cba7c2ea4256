"""How a command that measured ends: the table, the verdicts in words, where the run lies, the exit status."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iolab.cli.fail_on import exit_if_met
from iolab.cli.output import print_json


def show_outcome(path: Path, *, as_json: bool, fail_on: Sequence[str], report: Path | None = None) -> None:
    """Prints the run in `path`, and ends the command with status 1 if a `fail_on` condition holds."""
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
