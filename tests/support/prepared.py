"""The command line in a fork of a process that has imported it: importing takes longer than most commands.

A prepared process is started once by each process of the tests. It listens on a socket, and forks for each command line
that it is sent, with the sender's arguments, directory, environment and standard streams; the fork ends as any Python
does. Tests that kill, signal or limit the program start the real one (`CommandLine.start`), as do those whose
environment changes what Python does when it starts.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from iolab.machines import module_process

HEAVY = ("numpy", "polars", "scipy.special", "rich.console", "rich.live", "rich.table", "jinja2", "plotly")
EXTRAS = ("fastapi", "h11", "uvicorn", "ray", "grpc", "optuna")
"""What a few commands need and iolab is installed without."""
AT_START = ("PYTHON", "LC_", "LANG", "LD_", "POLARS", "RAYON", "OPENBLAS", "GLIBC", "MALLOC")
"""Variables that a process reads when it starts begin so."""
REQUEST_BYTES_MAX = 1 << 20

PROGRAM = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({address!r})
    request = dict(arguments=sys.argv[1:], cwd=os.getcwd(), environment=dict(os.environ))
    socket.send_fds(connection, [json.dumps(request).encode() + b"\\n"], [0, 1, 2])
    said = connection.makefile("r")
    said.readline()
    status = int(said.readline())
sys.exit(status if status >= 0 else 128 - status)
"""


@functools.cache
def address() -> Path:
    """The socket of this process's prepared one, which is started by the first call and ends with this process."""
    path = Path(tempfile.mkdtemp(prefix="iolab-prepared-")) / "socket"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(64)
    lifeline_theirs, lifeline = os.pipe()
    subprocess.Popen(
        [sys.executable, "-P", __file__, str(listener.fileno()), str(lifeline_theirs)],
        env=_environment_of_tests() | {"OPENBLAS_NUM_THREADS": "1"},
        cwd="/",
        stdin=subprocess.DEVNULL,
        pass_fds=(listener.fileno(), lifeline_theirs),
    )
    os.close(lifeline_theirs)
    listener.close()
    atexit.register(_end, path, lifeline)
    return path


def _environment_of_tests() -> dict[str, str]:
    """Without what belongs to the one test that happened to ask first."""
    return {name: value for name, value in os.environ.items() if not name.startswith("IOLAB_")}


def _end(path: Path, lifeline: int) -> None:
    os.close(lifeline)
    path.unlink()
    shutil.rmtree(path.parent)


@functools.cache
def _environment_at_start() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(AT_START)}


def fits(environment: dict[str, str]) -> bool:
    """Whether a process that was started with this environment would be like the prepared one."""
    here = {name: value for name, value in environment.items() if name.startswith(AT_START)}
    return here == _environment_at_start()


def run(
    arguments: list[str], cwd: Path, environment: dict[str, str], time_limit_s: float
) -> subprocess.CompletedProcess[str]:
    """The command line's output and exit status; negative, it is the signal that ended it.

    Raises:
        subprocess.TimeoutExpired: it took longer, and was killed with its process group.
    """
    with (
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
        Path(os.devnull).open("rb") as stdin,
        socket.socket(socket.AF_UNIX) as connection,
    ):
        connection.connect(str(address()))
        request = {"arguments": arguments, "cwd": str(cwd), "environment": environment}
        streams = [stdin.fileno(), stdout.fileno(), stderr.fileno()]
        socket.send_fds(connection, [json.dumps(request).encode() + b"\n"], streams)
        said = connection.makefile("r")
        pid = int(said.readline())
        connection.settimeout(time_limit_s)
        try:
            status = int(said.readline())
        except TimeoutError:
            os.killpg(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(["iolab", *arguments], time_limit_s) from None
        texts = []
        for stream in (stdout, stderr):
            stream.seek(0)
            texts.append(stream.read().decode(errors="surrogateescape"))
    return subprocess.CompletedProcess(arguments, status, *texts)


@functools.cache
def program() -> Path:
    """A program called iolab for shells and terminals, which has the prepared process run its command line."""
    path = address().parent / "programs" / "iolab"
    path.parent.mkdir()
    path.write_text(PROGRAM.format(python=sys.executable, address=str(address())))
    path.chmod(0o755)
    return path


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
    """Returns in each fork, with the arguments of its command line. The prepared process itself ends here."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait for a fork
    while True:
        ready, _, _ = select.select([listener.fileno(), lifeline], [], [])
        if lifeline in ready:
            os._exit(0)
        connection, _ = listener.accept()
        with connection:
            if os.fork() == 0:
                return _wait_for_fork(listener, lifeline, connection)


def _wait_for_fork(listener: socket.socket, lifeline: int, connection: socket.socket) -> list[str]:
    """Tells the sender the fork's number and, at its end, its exit status. Returns in the fork only."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    listener.close()
    os.close(lifeline)
    said, streams, _, _ = socket.recv_fds(connection, REQUEST_BYTES_MAX, 3)
    while not said.endswith(b"\n"):
        said += connection.recv(REQUEST_BYTES_MAX)
    pid = os.fork()
    if pid == 0:
        connection.close()
        return _become(json.loads(said), streams)
    for stream in streams:
        os.close(stream)
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


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
    # /proc shows whose process this is, and each that it forks, as it does for a new one.
    texts = [f"{name}={text}" for name, text in sorted(environment.items(), key=_is_not_ours)]
    module_process.write_over(module_process.ENVIRONMENT_FIELDS, texts)
    os.chdir(str(request["cwd"]))
    tempfile.tempdir = None
    return arguments


def _is_not_ours(variable: tuple[str, str]) -> bool:
    return not variable[0].startswith("IOLAB_")


def _main() -> None:
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
