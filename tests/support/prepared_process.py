"""The process that forks for each command line or module; see prepared.py, which starts it and asks it.

Without this package on its path: it imports what `iolab` imports.
"""

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from iolab.machines import module_process

HEAVY = ("numpy", "polars", "scipy.special", "rich.console", "rich.live", "rich.table", "jinja2", "plotly")
EXTRAS = ("fastapi", "h11", "uvicorn", "ray", "grpc", "optuna")
"""What a few commands need and iolab is installed without."""
REQUEST_BYTES_MAX = 1 << 20


def _import_all() -> None:
    """What the commands import when they are called, they find imported."""
    import iolab

    for module in pkgutil.walk_packages(iolab.__path__, "iolab."):
        if not module.name.endswith("__main__"):
            _import_unless_an_extra_is_missing(module.name)
    for name in HEAVY:
        importlib.import_module(name)


def _import_unless_an_extra_is_missing(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in EXTRAS:
            raise


def _serve(listener: socket.socket, lifeline: int) -> list[str]:
    """Returns in each fork, with the arguments of its command line. The prepared process itself ends here.

    It tells each sender the number of the fork and, at the fork's end, its exit status.
    """
    forks: dict[int, tuple[int, socket.socket]] = {}
    """Process and sender by the descriptor that says that the process has ended."""
    while True:
        ready, _, _ = select.select([listener.fileno(), lifeline, *forks], [], [])
        if lifeline in ready:
            os._exit(0)
        for ended in forks.keys() & set(ready):
            pid, connection = forks.pop(ended)
            _say(connection, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            connection.close()
            os.close(ended)
        if listener.fileno() not in ready:
            continue
        connection, _ = listener.accept()
        if (asked := _request(connection)) is None:
            continue
        request, streams = asked
        pid = os.fork()
        if pid == 0:
            for number in (listener.detach(), lifeline, connection.detach()):
                os.close(number)
            for number, (_, other) in forks.items():
                os.close(number)
                os.close(other.detach())
            return _become_module(request, streams) if "module" in request else _become(request, streams)
        for stream in streams:
            os.close(stream)
        _say(connection, pid)
        forks[os.pidfd_open(pid)] = pid, connection


def _request(connection: socket.socket) -> tuple[dict[str, object], list[int]] | None:
    """None from a sender that was killed."""
    said, streams, _, _ = socket.recv_fds(connection, REQUEST_BYTES_MAX, 3)
    while not said.endswith(b"\n"):
        if not (more := connection.recv(REQUEST_BYTES_MAX)):
            return None
        said += more
    return json.loads(said), streams


def _say(connection: socket.socket, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(f"{number}\n".encode())


def _become(request: dict[str, object], streams: list[int]) -> list[str]:
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # As a new Python makes them: pipe, file or terminal are written to in different ways.
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        old = getattr(sys, name)
        line_by_line = 1 if name == "stderr" or os.isatty(number) else -1
        new = open(number, mode, line_by_line, old.encoding, old.errors, closefd=False)  # noqa: SIM115 (as long as the process)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    os.environ.clear()
    environment, arguments = request["environment"], request["arguments"]
    assert isinstance(environment, dict) and isinstance(arguments, list)
    os.environ.update(environment)
    _show(environment)
    os.chdir(str(request["cwd"]))
    tempfile.tempdir = None
    return arguments


def _become_module(request: dict[str, object], streams: list[int]) -> NoReturn:
    module, arguments, fd = (request[key] for key in ("module", "arguments", "fd"))
    environment = request["environment"]
    assert isinstance(environment, dict) and isinstance(arguments, list) and isinstance(fd, int)
    kept, error = streams
    error = os.dup(error) if error == fd else error
    os.dup2(error, 2)
    if kept != fd:
        os.dup2(kept, fd)
    os.environ.clear()
    os.environ.update(environment)
    _show(environment)
    os.chdir(str(request["cwd"]))
    module_process.become(str(module), arguments, fd)


def _show(environment: dict[str, str]) -> None:
    """/proc shows whose process this is, and each that it forks, as it does for a new one."""
    texts = [f"{name}={text}" for name, text in sorted(environment.items(), key=_is_not_ours)]
    module_process.write_over(module_process.ENVIRONMENT_FIELDS, texts)


def _is_not_ours(variable: tuple[str, str]) -> bool:
    return not variable[0].startswith("IOLAB_")


def _main() -> None:
    # Whoever asked first may have blocked signals for what it was about to start.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    listener = socket.socket(fileno=int(sys.argv[1]))
    _import_all()
    gc.collect()
    gc.freeze()
    arguments = _serve(listener, int(sys.argv[2]))
    sys.argv[:] = [str(Path(sys.executable).parent / "iolab"), *arguments]
    from iolab.presentation.cli import main

    main()


if __name__ == "__main__":
    _main()
