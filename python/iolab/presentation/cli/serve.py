"""`iolab serve`: many runs as pages, as they are now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iolab.base.errors import MachineError
from iolab.base.stop import stop_flag
from iolab.presentation.cli.ls import print_line, refresh
from iolab.presentation.cli.options import Collection as Directory

PORT = 8765


def serve(
    directory: Directory = Path("iolab-runs"),
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Where to listen. Everyone who reaches the address can read every run: there is no password.",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="The port; 0: a free one.", min=0, max=65535)] = PORT,
) -> None:
    """Show the runs below a directory as pages in a browser, also runs in progress. Ends with Ctrl-C.

    The pages are read only and load nothing from elsewhere. /api/openapi.json describes the interface behind them.
    """
    # In the middle of an import an interrupt can be lost: a library may drop what was raised.
    with stop_flag() as stop:
        from iolab.files.collection.collection import Collection

        try:
            from iolab.presentation.site import server
        except ModuleNotFoundError as error:
            raise MachineError(
                f"the Python package {error.name} is missing",
                where="iolab serve",
                remedy="pip install 'iolab[serve]'; without it, `iolab site` writes the pages as files",
            ) from None
        server.load()
    if not stop.is_set():
        runs = Collection(directory, print_line)
        refresh(runs)
        with stop_flag() as stop:
            server.serve(
                runs, host, port, stop, on_ready=lambda address: print(f"Pages: {address}  (Ctrl-C ends)", flush=True)
            )
    raise KeyboardInterrupt
