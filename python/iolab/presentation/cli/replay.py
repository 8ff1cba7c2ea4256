"""`iolab replay`: a trace's I/Os once more, somewhere, under settings that are compared."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from iolab.presentation.cli import complete
from iolab.presentation.cli.options import FailOn, Json, Out, Patience, seconds
from iolab.presentation.cli.outcome import check_conditions, show_outcome
from iolab.presentation.cli.trace import Columns, Separator


def replay(
    trace: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE", help="The trace, from any of the tools; for blktrace, the name before .blktrace.0."
        ),
    ],
    on: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="The place: a block device, a directory, or a simulated machine, model:NAME.",
            autocompletion=complete.machines,
        ),
    ],
    setting: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONTROL=VALUE",
            help="A setting to compare, such as scheduler=bfq; several controls with ; between them. May be given "
            "several times; the first is the baseline.  [default: everything as it is]",
            autocompletion=complete.controls,
        ),
    ] = None,
    timing: Annotated[
        str,
        typer.Option(
            metavar="recorded|dependent",
            help="When I/Os are due: at their times, or when what their process waited for is done.",
        ),
    ] = "recorded",
    time_scale: Annotated[float, typer.Option(help="Factor on all times of the trace.")] = 1.0,
    side: Annotated[
        str, typer.Option(metavar="issued|queued", help="Requests as the driver got them, or bios as asked for.")
    ] = "issued",
    mapping: Annotated[
        str, typer.Option(metavar="wrap|scale|regions", help="How offsets fit on a smaller place.")
    ] = "wrap",
    size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="How much of the place is used.  [default: as far as the trace reaches, or there is room]",
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this device of the trace, such as 8:0.")
    ] = None,
    skip: Annotated[str | None, typer.Option(metavar="DURATION", help="Leave out the beginning of the trace.")] = None,
    take: Annotated[str | None, typer.Option(metavar="DURATION", help="Replay only this much of the trace.")] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="io_uring|libaio",
            help="How I/O is issued; libaio is faster than io_uring on devices in memory, which do the I/O in the call "
            "itself.",
        ),
    ] = "io_uring",
    realtime: Annotated[
        bool,
        typer.Option("--realtime", help="Issue from threads of real-time priority, before other work on the CPUs."),
    ] = False,
    rounds: Annotated[int, typer.Option(help="Rounds, each with every setting once.")] = 5,
    destroy: Annotated[
        bool, typer.Option("--destroy", help="Write to the device whatever it holds, if nothing uses it.")
    ] = False,
    out: Out = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the order of trials.  [default: drawn and recorded]")
    ] = None,
    columns: Columns = None,
    separator: Separator = None,
    patience: Patience = None,
    fail_on: FailOn = None,
    json: Json = False,
) -> None:
    """Issue a trace's reads, writes, flushes and discards again, and compare settings by them: which scheduler for
    this workload?

    The run directory is one of `iolab run`, with verdicts, and keeps a copy of the trace's I/Os (their times, places
    and sizes; no contents). iolab writes to no place that holds data, unless you give --destroy. It reports how
    faithful the replay was: late arrivals, the rate, the queue's depth. See docs/traces.md.
    """
    conditions = check_conditions(fail_on)

    from iolab.files.experiment import loads
    from iolab.presentation.progress import display
    from iolab.studies.run import run as start
    from iolab.studies.run.machine_executor import MachineExecutor
    from iolab.studies.trace import replay as adapter

    options = {
        "timing": timing,
        "time_scale": time_scale,
        "side": side,
        "mapping": mapping,
        "file_size": size,
        "device": device,
        "skip": skip,
        "take": take,
        "engine": None if engine == "io_uring" else engine,
        "realtime": realtime or None,
        "columns": columns,
        "separator": separator,
    }
    place = adapter.place_of(on, destroy=destroy)
    text = adapter.experiment(trace, place, setting or (), options, rounds=rounds)
    if count := adapter.left_out(trace, options):
        print(
            f"left out: {count} of the trace's I/Os, which are commands of drivers or longer than any I/O",
            file=sys.stderr,
        )
    if (found := adapter.expected(trace, on, place, options)) is not None:
        print(found, file=sys.stderr)
    with MachineExecutor(seconds(patience)) as executor:
        done = start(
            loads(text, "iolab replay"),
            out,
            executor=executor,
            progress=display(as_json=json),
            seed=seed,
        )
    show_outcome(done.path, as_json=json, fail_on=conditions)
