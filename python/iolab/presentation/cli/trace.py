"""`iolab trace`: what a trace of block I/O shows, and its other forms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.base.errors import InputError
from iolab.presentation.cli.options import Json
from iolab.presentation.cli.output import print_json

if TYPE_CHECKING:
    from iolab.base.trace_files import Trace
    from iolab.studies.trace import Histogram

TraceFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="The files of one trace, from any of the tools, plain or packed with gzip, zstd or xz; `-`: standard "
        "input. For blktrace, one file or the name before .blktrace.0 selects the files of all CPUs.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="For a table of a format that iolab does not recognise: what each column holds, as time:us, latency:us, "
        "offset:B, size:B, "
        "operation, device, pid, process, or - for something else.",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(metavar="CHARACTER", help="Between the columns: a character, tab or blank.  [default: comma]"),
]
Gaps = Annotated[
    str | None,
    typer.Option(
        metavar="filtered|lost",
        help="Why a text of blkparse leaves out numbers of events: lines were filtered, and all others hold; or "
        "events were lost, and no time across them is reported.  [default: lost, unless numbers are left out often]",
    ),
]


def trace(
    files: TraceFiles,
    to: Annotated[
        str | None,
        typer.Option(metavar="FORM", help="Write it as perfetto, blktrace, iolog or parquet, to the file of -o."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write; FILE.html for a page of maps."),
    ] = None,
    queued: Annotated[
        bool, typer.Option("--queued", help="iolog: the times at which I/Os were queued, not those of issue.")
    ] = False,
    queues: Annotated[
        Path | None,
        typer.Option(
            metavar="DEVICE",
            help="Latency by hardware queue too, with the CPUs that this machine's DEVICE gives each: the events name "
            "no queue.",
        ),
    ] = None,
    sector: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Show the requests that hold this sector, of 512 bytes, each step of them with its time.",
        ),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Show the requests that failed, each step of them with its time.")
    ] = False,
    columns: Columns = None,
    separator: Separator = None,
    gaps: Gaps = None,
    short: Annotated[
        bool, typer.Option("--short", help="With --json: without histograms and without maps over time.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what a trace of block I/O holds: rates, sizes, latency per stage, depth, and the slowest requests.

    The format is recognised by content: blktrace, trace-cmd, perf, tracefs, blkparse, biosnoop, fio's logs, and public
    traces. Times that the events do not determine are left out and counted, never guessed. See docs/traces.md.
    """
    from iolab.studies.trace import export, histograms_of, queues_of, shortened, study, trace_of

    source = trace_of(files, columns, separator, gaps)
    if short and not json:
        raise InputError("shortens what --json prints", where="--short", remedy="give --json too")
    if columns is None and (distributions := histograms_of(source.paths)):
        _distributions(
            distributions, source, wants_requests=bool(to or output or failed or sector is not None), as_json=json
        )
        return
    if to is not None:
        if output is None:
            raise InputError("does not state where to", where="--to", remedy="give -o FILE")
        export(source, to, output, queued=queued)
        if json:
            print_json({"written": str(output), "form": to})
        else:
            print(f"Written: {output}.blktrace.*" if to == "blktrace" else f"Written: {output}")
        return
    if sector is not None or failed:
        _lives(source, sector, failed=failed, as_json=json)
        return
    if output is not None:
        from iolab.presentation.report.trace import INTERVALS, write
        from iolab.studies.trace.export import frames
    figures = study(
        source,
        intervals=None if output is None else INTERVALS,
        queues=() if queues is None else queues_of(queues),
    )
    if output is not None:
        is_there_again = all(path.is_file() for path in source.paths)  # no pipe
        size = write(figures, source.name, output, source.paths, frames(source) if is_there_again else ())
        if json:
            print_json({"report": str(output), "bytes": size})
        else:
            print(f"Report: {output}")
    elif json:
        print_json(shortened(figures) if short else figures)
    else:
        from iolab.presentation.table.trace import shown
        from iolab.presentation.table.trace_conclusion import conclusion
        from iolab.presentation.terminal import show

        show(f"● {conclusion(figures)}", *shown(figures))


def _distributions(found: list[Histogram], source: Trace, *, wants_requests: bool, as_json: bool) -> None:
    if wants_requests:
        raise InputError(
            "holds histograms and no requests", where=source.name, remedy="record requests (iolab record, or biosnoop)"
        )
    if as_json:
        print_json({"histograms": [one.as_dict() for one in found]})
        return
    from iolab.presentation.table.trace_histogram import shown
    from iolab.presentation.terminal import show

    show(*shown(found))


def _lives(source: Trace, sector: int | None, *, failed: bool, as_json: bool) -> None:
    from iolab.studies.trace.life import lives

    found = lives(source, sector, failed=failed)
    if as_json:
        print_json({"began_ns": found.began_ns, "requests": found.rows, "more": found.more})
        return
    from iolab.presentation.table.trace_life import shown
    from iolab.presentation.terminal import show

    show(*shown(found))
