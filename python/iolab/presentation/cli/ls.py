"""`iolab ls`: which runs are there?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.base.errors import InputError, unknown
from iolab.base.plain_text import counted
from iolab.presentation.cli.options import Collection as Directory
from iolab.presentation.cli.options import Json
from iolab.presentation.cli.output import print_json

if TYPE_CHECKING:
    from iolab.files.collection.listing import Listing
    from iolab.files.collection.run_reader import Read

FORMATS = ("plain", "csv", "json")
TOLD_FROM = 20
"""Reading fewer new runs than this needs no line."""


def ls(
    directory: Directory = Path("iolab-runs"),
    query: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORD...",
            help="Only runs that match every word: a word that stands in a name, a title, a tag ..., or KEY:TEXT "
            "with a key of run, title, machine, kernel, setting, workload, verdict, state, tag, note, since, until. "
            "`not:` in front selects the others.",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Only the newest N.", min=1)] = None,
    as_: Annotated[
        str,
        typer.Option("--as", metavar="FORMAT", help="plain: a line per run; csv: for spreadsheets; json: as --json."),
    ] = "plain",
    json: Json = False,
) -> None:
    """List the runs below a directory, the newest first: title, date, machine, kernel, settings, verdicts.

    iolab keeps what it read of a run in DIR/.iolab-index, or in ~/.cache/iolab if DIR can't be written to. The index is
    derived: a run that changed is read again, and the index can be deleted at any time.
    """
    if as_ not in FORMATS:
        raise InputError(f"{as_}: {unknown('format', as_, FORMATS)}", where="--as")

    from iolab.domain.collection.query import chosen, parse
    from iolab.files.collection.listing import Listing
    from iolab.presentation.table import collection as table

    conditions = parse(query or ())
    runs = Listing(directory, _read_runs, print_line)
    refresh(runs)
    entries = chosen(runs.entries, conditions)[:limit]
    if json or as_ == "json":
        print_json({"runs": [one.as_dict() for one in entries], "of": len(runs.entries)})
    elif as_ == "csv":
        sys.stdout.write(table.as_csv(entries))
    else:
        if entries:
            sys.stdout.write("\n".join(table.lines(entries)) + "\n")
        print(f"{table.summary(entries, len(runs.entries))}: {directory}")


def _read_runs(directory: Path, names: Sequence[str], on_read: Callable[[int], None]) -> Iterable[Read]:
    """Most often there is nothing new to read, and nothing that reads needs to be loaded."""
    from iolab.files.collection.run_reader import read_runs

    return read_runs(directory, names, on_read)


def print_line(line: str) -> None:
    """Errors that were found, and repaired or left out."""
    print(f"iolab: {line}", file=sys.stderr, flush=True)


def refresh(runs: Listing) -> None:
    """Brings the index up to date, and reports it if that takes a while."""
    reported = [False]

    def on_read(done: int, total: int) -> None:
        if total < TOLD_FROM:
            return
        if not reported[0]:
            reported[0] = True
            print(f"iolab: reading {counted(total, 'new or changed run')}, each once", file=sys.stderr)
        if sys.stderr.isatty():
            print(f"\r{done:,} of {total:,}", end="\n" if done == total else "", file=sys.stderr, flush=True)

    runs.refresh(on_read)
