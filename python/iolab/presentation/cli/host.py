"""`iolab host`: this machine as one of several hosts."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def host(
    join: Annotated[
        str,
        typer.Option(
            metavar="HOST[:PORT]", help="The head of a Ray cluster, as `ray start --head` prints it.  [port: 6379]"
        ),
    ],
    name: Annotated[
        str | None, typer.Option(help="What this host is called in the cluster.  [default: its host name]")
    ] = None,
) -> None:
    """Offer this machine to a Ray cluster, for trials of `iolab run --on ray`, one at a time.

    Anyone who can reach the cluster can run any program here, as the user of this command: Ray trusts its network.
    Before it begins, whatever a killed trial left changed is restored. Ends with Ctrl-C, or when the cluster is lost.
    """
    from iolab.base.stop import stop_flag
    from iolab.machines.cluster import serve

    with stop_flag() as stop:
        serve(join, name, _print_line, stop)


def _print_line(line: str) -> None:
    from iolab.base.plain_text import one_line

    print(one_line(line), file=sys.stderr, flush=True)
