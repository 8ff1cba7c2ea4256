"""`iolab demo`: an A/B experiment on this machine, from nothing to a verdict."""

from __future__ import annotations

from typing import Annotated

import typer

from iolab.presentation.cli.options import Json, Out
from iolab.presentation.cli.outcome import show_outcome


def demo(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer and shorter rounds, for the largest differences alone.")
    ] = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """Run an A/B experiment on this machine in about a minute: a table, verdicts in words, and a report to open.

    As root: how far ahead the kernel reads a file, and one other I/O scheduler, on a device that iolab makes from a
    file and removes again. Otherwise: small requests, large ones and small ones through a queue, in a directory of
    iolab's own. One difference is many times the noise of a busy machine, the other is likely to stay undecided.
    """
    from iolab.files import experiment
    from iolab.files.store import read
    from iolab.files.store.directory import default_path
    from iolab.machines.host.local_process import LocalProcess
    from iolab.presentation.demo import experiment_text
    from iolab.presentation.progress import display
    from iolab.presentation.report import write
    from iolab.studies.run import run

    planned = experiment.loads(experiment_text(quick=quick), "demo.toml")
    with LocalProcess() as executor:
        done = run(planned, out or default_path("demo"), executor=executor, progress=display(as_json=json))
    report = done.path / "report.html"
    write(read(done.path), report)
    show_outcome(done.path, as_json=json, fail_on=(), report=report)
