"""The list of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from iolab.base.version import VERSION
from iolab.presentation.cli.attribute import attribute
from iolab.presentation.cli.bisect import bisect
from iolab.presentation.cli.characterise import characterise
from iolab.presentation.cli.claim import claim, claims
from iolab.presentation.cli.compare import compare
from iolab.presentation.cli.complete import Install, Show
from iolab.presentation.cli.cost import cost
from iolab.presentation.cli.demo import demo
from iolab.presentation.cli.doctor import doctor
from iolab.presentation.cli.explain import explain
from iolab.presentation.cli.guest import guest
from iolab.presentation.cli.history import history
from iolab.presentation.cli.host import host
from iolab.presentation.cli.import_ import import_files
from iolab.presentation.cli.list import list_names
from iolab.presentation.cli.ls import ls
from iolab.presentation.cli.machine import machine
from iolab.presentation.cli.note import note
from iolab.presentation.cli.record import record
from iolab.presentation.cli.replay import replay
from iolab.presentation.cli.report import report
from iolab.presentation.cli.reproduce import reproduce
from iolab.presentation.cli.restore import restore
from iolab.presentation.cli.rm import rm
from iolab.presentation.cli.run import run
from iolab.presentation.cli.serve import serve
from iolab.presentation.cli.show import show
from iolab.presentation.cli.site import site
from iolab.presentation.cli.sweep import sweep
from iolab.presentation.cli.tag import tag
from iolab.presentation.cli.trace import trace
from iolab.presentation.cli.tune import tune
from iolab.presentation.cli.wear import wear


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"iolab {VERSION}")
        raise typer.Exit


def iolab(
    version: Annotated[
        bool,
        typer.Option("-V", "--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
    show_completion: Show = None,
    install_completion: Install = None,
) -> None:
    """A laboratory for storage I/O on Linux: change one thing, measure, and learn whether the difference is real.

    Start with `iolab demo`: a comparison on this machine in about a minute. `man iolab` has the help of all commands,
    if iolab was installed from a wheel.

    Exit status: 0 done; 1 done, but a --fail-on condition holds or every trial failed; 2 the input is wrong; 3 this
    machine can't do it; 130 interrupted, everything restored.
    """


COMMANDS = (
    (demo, "demo", "Compare two or three settings on this machine, in a minute."),
    (doctor, "doctor", "Show what iolab can control and observe here, and how to get the rest."),
    (run, "run", "Run an experiment, or resume a run."),
    (sweep, "sweep", "Run experiments on many simulated machines, and show the grid of verdicts."),
    (host, "host", "Offer this machine to a cluster, for trials of other machines' runs."),
    (show, "show", "Print a run, or a file of another tool, as a table."),
    (compare, "compare", "Judge whether settings differ, in a run, two runs, or other tools' files."),
    (explain, "explain", "Show what changed together with a difference, and what did not."),
    (bisect, "bisect", "Find which of many versions changed a metric."),
    (cost, "cost", "Count what a change of the kernel costs on the I/O path, in instructions."),
    (attribute, "attribute", "Find which of many keys make two settings differ."),
    (tune, "tune", "Find the best setting, and whether it beats the default."),
    (history, "history", "Find when metrics changed over many runs."),
    (ls, "ls", "List the runs below a directory."),
    (tag, "tag", "Give a run tags to find it by."),
    (note, "note", "Give a run a note."),
    (rm, "rm", "Remove runs; asks first."),
    (serve, "serve", "Show the runs below a directory as live pages."),
    (site, "site", "Write the same pages as files for any web server."),
    (guest, "guest", "Boot a kernel in an emulated machine, and run a command there."),
    (machine, "machine", "Write this machine as the file of a simulated one."),
    (wear, "wear", "Show what writes do to a simulated flash drive."),
    (import_files, "import", "Make a run from files of other tools: fio, tiobench, iozone, any CSV ..."),
    (record, "record", "Record the block events of a device."),
    (trace, "trace", "Show what a trace of block I/O holds, or write it in another form."),
    (replay, "replay", "Issue a trace's I/Os again, and compare settings by them."),
    (characterise, "characterise", "Write a workload with the characteristics of a trace."),
    (report, "report", "Write a run as one HTML file that opens without a network."),
    (reproduce, "reproduce", "Print published figures beside a simulated machine's, with the error of each."),
    (claims, "claims", "List published claims, with what asking them here came to."),
    (claim, "claim", "Show a published claim, start one from a mail, or ask it here."),
    (list_names, "list", "List machines, workloads, controls, probes and metrics, with help."),
    (restore, "restore", "Undo what a killed iolab left changed."),
)
"""Each with its name and its line in the list of commands."""
NAMES = frozenset(name for _, name, _ in COMMANDS)


def app_of(only: str | None = None) -> typer.Typer:
    """The program with all of its commands, or with the one of this name alone: to read what all of them take costs
    more than many a command takes to run."""
    app = typer.Typer(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(iolab)
    for command, name, summary in COMMANDS:
        if only in (None, name):
            app.command(name, short_help=summary)(command)
    return app
