"""The list of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from iolab.cli.compare import compare
from iolab.cli.demo import demo
from iolab.cli.doctor import doctor
from iolab.cli.explain import explain
from iolab.cli.import_ import import_files
from iolab.cli.list import list_names
from iolab.cli.report import report
from iolab.cli.reproduce import reproduce
from iolab.cli.restore import restore
from iolab.cli.run import run
from iolab.cli.show import show

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from iolab import __version__

        print(f"iolab {__version__}")
        raise typer.Exit


@app.callback()
def iolab(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """A laboratory for storage I/O on Linux: change something, measure, learn whether the difference is real.

    Start with `iolab demo`: an A/B experiment on this machine in about a minute.

    Exit status: 0 done; 1 done, and a --fail-on condition holds, or every trial of a run failed; 2 the input is wrong;
    3 this machine can't do it; 130 interrupted, everything restored.
    """


for command, name, summary in (
    (demo, "demo", "A one-minute A/B on this machine, with table, verdicts and report."),
    (doctor, "doctor", "What can be controlled and observed here, and how to get the rest."),
    (run, "run", "Run an experiment, or go on with one."),
    (show, "show", "A run, or another tool's file, as a table."),
    (compare, "compare", "Is the difference real? Of a run, two runs, or other tools' files."),
    (explain, "explain", "Why? What moved together with a difference, and what did not."),
    (import_files, "import", "Make a run of other tools' files: fio, tiobench, iozone, any CSV ..."),
    (report, "report", "A run as one HTML file that opens without a network."),
    (reproduce, "reproduce", "Published figures beside the modelled machine's, with the error of each."),
    (list_names, "list", "The words of an experiment, with units, defaults and help."),
    (restore, "restore", "Put back what a killed iolab left changed."),
):
    app.command(name, short_help=summary)(command)
