"""`iolab wear`: what writes do to a simulated flash drive."""

from __future__ import annotations

from typing import Annotated

import typer

from iolab.base.errors import InputError, unknown
from iolab.presentation.cli.options import Json, size_bytes
from iolab.presentation.cli.output import print_json


def wear(
    drive: Annotated[
        str, typer.Argument(metavar="DRIVE", help="A simulated drive: a name of `iolab list devices`, or its file.")
    ],
    workload: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD|TRACE",
            help="What is written: sequential, random, zipf, pareto, normal or permutation; an experiment's file with "
            "one workload of kind io; or a trace.",
        ),
    ],
    amount: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Bytes to transfer, about.  [default: as many as the drive has]")
    ] = None,
    block_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Bytes of one operation.  [default: 128KiB, or the file's]")
    ] = None,
    queue_depth: Annotated[
        int | None, typer.Option(min=1, max=4096, help="Operations in flight.  [default: 32, or the file's]")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="STATE",
            help="What the drive holds at first: new, filled, steady (of this workload), steady-random or "
            "steady-sequential.  "
            "[default: as its file states]",
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a key of the drive, such as firmware.collector=windowed; may be repeated.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write to a simulated flash drive, and show write amplification, erases and the rate over the bytes written.

    The drive is in a machine with four CPUs (model:nvme) and keeps its state from slice to slice. `--start
    steady` begins where a long run of this workload ends.
    """
    from iolab.presentation.table.wear import wear_tables
    from iolab.presentation.terminal import show
    from iolab.studies import wear as study

    amount_bytes = None if amount is None else size_bytes("--amount", amount)
    given = {"block_size": block_size, "queue_depth": queue_depth}
    asked = study.workload(workload, {name: value for name, value in given.items() if value is not None})
    machine = study.drive(drive, [*_of_start(start), *(changes or [])])
    passes = 0
    if start == "steady":
        first = study.own_steady_state(asked, study.size_of(machine))
        machine = study.drive(drive, [*first, *(changes or [])])
        passes = study.passes_before(machine, asked)
    found = study.wear(machine, asked, amount_bytes, passes=passes)
    if json:
        print_json({"drive": drive, "workload": workload, **found.as_dict()})
    else:
        show(*wear_tables(found))


_STARTS = {
    "new": ("firmware.filled=false",),
    "filled": ("firmware.filled=true",),
    "steady-random": ("firmware.filled=true", "firmware.steady=random"),
    "steady-sequential": ("firmware.filled=true", "firmware.steady=sequential"),
}


def _of_start(start: str | None) -> tuple[str, ...]:
    if start in (None, "steady"):
        return ()
    if start not in _STARTS:
        raise InputError(unknown("state", start, [*_STARTS, "steady"]), where="--start")
    return _STARTS[start]
