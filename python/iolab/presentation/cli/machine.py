"""`iolab machine`: this machine as the file of a simulated one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from iolab.base.errors import InputError
from iolab.presentation.cli.options import Json
from iolab.presentation.cli.output import print_json


def machine(
    action: Annotated[Literal["describe"], typer.Argument(help="describe: write what the kernel shows of it.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.toml", help="The machine file. `-`: standard output.")
    ] = Path("-"),
    json: Json = False,
) -> None:
    """Write this machine's file: what experiments with `machine = "model:FILE.toml"` simulate.

    CPUs, memory, kernel, and each drive with its scheduler and queue are as the kernel shows them; a comment states
    where. CPU times and what is inside a drive are estimates of its class unless a device file of its model is shipped,
    and say so. It needs no privilege and reads no device.
    """
    from iolab.base import output_file
    from iolab.machines.host.machine_file import text

    del action  # the only one
    if json and not output_file.is_stdout(output):
        raise InputError("prints the file on standard output", where="--json", remedy="leave --output out")
    written = text()
    if json:
        print_json({"machine": written})
    else:
        output_file.write(output, written.encode())
