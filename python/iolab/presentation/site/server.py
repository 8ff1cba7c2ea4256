"""Serves the pages, and keeps what they show up to date."""

from __future__ import annotations

import errno
import importlib
import socket
import threading
import time
from collections.abc import Callable

import uvicorn

from iolab.base.errors import InputError, IolabError, MachineError
from iolab.files.collection.collection import Collection
from iolab.presentation.site.app import Answers, make_app
from iolab.presentation.site.connections import Server

REFRESH_S = 2.0
REST = 20
"""The wait between two looks at all runs, as a multiple of the first look's time: at most 5 % of a CPU."""
END_S = 2
LATE = ("polars", "scipy.special")


def load() -> None:
    """Imports what is needed as soon as there are runs: the first comparison would wait for it, and an interrupt in the
    middle of an import can be lost."""
    for name in LATE:
        importlib.import_module(name)


def serve(runs: Collection, host: str, port: int, stop: threading.Event, on_ready: Callable[[str], None]) -> None:
    """Serves until `stop` is set. `on_ready` gets the address once it listens.

    InputError if the address can't be used; MachineError if the port is taken.
    """
    listener = _listener(host, port)
    app, answers = make_app(runs, host)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=END_S
    )
    server = Server(config, listener, stop)
    ended = threading.Event()
    keeper = threading.Thread(target=_keep_up, args=(runs, answers, ended), daemon=True)
    keeper.start()
    name = f"[{host}]" if ":" in host else host
    on_ready(f"http://{name}:{listener.getsockname()[1]}/")
    try:
        server.run()
    finally:
        ended.set()
        listener.close()


def _listener(host: str, port: int) -> socket.socket:
    """Open before anything is printed, so that the printed address is right."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise InputError(f"no address: {error}", where=f"--host {host}") from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        taken = error.errno == errno.EADDRINUSE
        remedy = "choose another with --port, or 0 for a free one" if taken else "choose another --host or --port"
        raise MachineError(f"cannot listen: {error.strerror}", where=f"{host}:{port}", remedy=remedy) from None
    return listener


def _keep_up(runs: Collection, answers: Answers, ended: threading.Event) -> None:
    """Looks for runs that are new or changed, then for changes in histories that were not examined yet, one at a
    time."""
    wait_s = 0.0
    while not ended.wait(wait_s):
        began = time.monotonic()
        try:
            runs.refresh()
            if _detect_changes(runs):
                answers.forget()
                wait_s = 0.01
                continue
        except (IolabError, OSError):
            pass  # such as a directory that is away for a while: what was seen is still served
        wait_s = max(REFRESH_S, REST * (time.monotonic() - began))


def _detect_changes(runs: Collection) -> bool:
    for one in runs.benchmarks():
        if runs.known_changes(one) is None:
            runs.changes(one)
            return True
    return False
