"""`iolab record`: the block events of a device, live."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iolab.base.plain_text import counted
from iolab.presentation.cli.options import Json, duration_s, size_bytes
from iolab.presentation.cli.output import print_json


def record(
    device: Annotated[
        Path, typer.Argument(metavar="DEVICE", help="The block device, such as /dev/sda.", readable=False)
    ],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND...]", help="Record while this command runs.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write, a trace.dat.")
    ] = Path("trace.dat"),
    for_: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="End after this time.  [default: Ctrl-C ends it]")
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Keep only the events of this time before the end, in memory."),
    ] = None,
    until_slower: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="End when a request took this long, or has been in flight for this long; with --keep, the trace holds "
            "the time before it.",
        ),
    ] = None,
    layers: Annotated[
        bool,
        typer.Option(
            "--layers",
            help="Record the devices below too, if this is one of device mapper or md, and what it sends them.",
        ),
    ] = False,
    buffer: Annotated[str, typer.Option(metavar="SIZE", help="The kernel's buffer of each CPU.")] = "8MiB",
    json: Json = False,
) -> None:
    """Record the block events of a device through tracefs, also if blktrace is refused, for `iolab trace`.

    The kernel filters by device, and its buffers are written as they are. It counts events that found no room. It needs
    root, and restores everything at the end. The file is a trace.dat, which trace-cmd and kernelshark read too.
    """
    from iolab.studies.trace.record import record as record_device

    recorded = record_device(
        device,
        output,
        command=command or (),
        seconds=_seconds(for_, "--for"),
        keep_s=_seconds(keep, "--keep"),
        slower_s=_seconds(until_slower, "--until-slower"),
        buffer_kib=max(64, size_bytes("--buffer", buffer) // 1024),
        layers=layers,
    )
    if json:
        print_json(
            {
                "trace": str(recorded.path),
                "bytes": recorded.bytes,
                "seconds": recorded.seconds,
                "events_lost": recorded.events_lost,
                "command_status": recorded.status,
                "slow_ns": recorded.slow_ns,
            }
        )
        return
    print(f"Recorded: {recorded.path}, {recorded.bytes} bytes in {recorded.seconds:.3g} s")
    if recorded.slow_ns is not None:
        print(f"Ended by a request of {recorded.slow_ns / 1e6:.4g} ms")
    if recorded.events_lost:
        print(f"! {counted(recorded.events_lost, 'event')} found no room: give a larger --buffer")
    if recorded.status:
        print(f"! the command ended with status {recorded.status}")


def _seconds(text: str | None, option: str) -> float | None:
    return None if text is None else duration_s(option, text)
