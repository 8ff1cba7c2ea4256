"""iolab guest: boot a kernel and look around."""

from __future__ import annotations

from typing import Annotated

import typer

from iolab.presentation.cli.options import Json, size_bytes
from iolab.presentation.cli.output import print_json


def guest(
    kernel: Annotated[
        str,
        typer.Argument(
            metavar="KERNEL", help="A version, an image's path, TREE@COMMIT or running (iolab list kernels)."
        ),
    ],
    argv: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND]", help="A program of this machine; without one, a shell."),
    ] = None,
    memory: Annotated[str, typer.Option(help="Memory of the machine.")] = "1GiB",
    cpus: Annotated[int, typer.Option(help="Virtual CPUs.", min=1, max=64)] = 1,
    module: Annotated[list[str] | None, typer.Option(help="A kernel module to load first; may be repeated.")] = None,
    json: Json = False,
) -> None:
    """Boot a kernel in an emulated machine and run a command there, or a shell.

    The emulated machine has no network and no drive of this machine; it ends with the command. Exit status 1: the
    command failed. With --json the console goes to standard error.
    """
    from iolab.base.errors import InputError
    from iolab.base.quantity import format_bytes
    from iolab.domain.trial.guest import MEMORY_BYTES_MAX, MEMORY_BYTES_MIN
    from iolab.machines.guest import session

    memory_bytes = size_bytes("--memory", memory)
    if not MEMORY_BYTES_MIN <= memory_bytes <= MEMORY_BYTES_MAX:
        least, most = format_bytes(MEMORY_BYTES_MIN), format_bytes(MEMORY_BYTES_MAX)
        raise InputError(f"{memory} given; expected a size from {least} to {most}", where="--memory")
    modules = module or []
    status = session.run(kernel, argv or [], memory_bytes=memory_bytes, cpus=cpus, modules=modules, to_stderr=json)
    if json:
        print_json({"kernel": kernel, "exit_status": status})
    if status:
        raise typer.Exit(1)
