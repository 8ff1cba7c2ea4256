"""The command line in a fork of a process that has imported it: importing takes longer than most commands.

A prepared process is started once by each process of the tests. It listens on a socket, and forks for each command line
that it is sent, with the sender's arguments, directory, environment and standard streams; the fork ends as any Python
does. Tests that kill, signal or limit the program start the real one (`CommandLine.start`), as do those whose
environment changes what Python does when it starts.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from support import patience

PROCESS = Path(__file__).with_name("prepared_process.py")
AT_START = ("PYTHON", "LC_", "LANG", "LD_", "POLARS", "RAYON", "OPENBLAS", "GLIBC", "MALLOC")
"""Variables that a process reads when it starts begin so."""

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
        [sys.executable, "-P", str(PROCESS), str(listener.fileno()), str(lifeline_theirs)],
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
    arguments: list[str], cwd: Path, environment: dict[str, str], cpu_limit_s: float
) -> subprocess.CompletedProcess[str]:
    """The command line's output and exit status; negative, it is the signal that ended it.

    Raises:
        subprocess.TimeoutExpired: see `patience.wait`; it was killed with its process group.
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
        said = Lines(connection)
        pid = int(said.next() or "")
        try:
            status = int(patience.wait(said.next, [pid], cpu_limit_s))
        except subprocess.TimeoutExpired:
            os.killpg(pid, signal.SIGKILL)
            raise
        texts = []
        for stream in (stdout, stderr):
            stream.seek(0)
            texts.append(stream.read().decode(errors="surrogateescape"))
    return subprocess.CompletedProcess(arguments, status, *texts)


class Lines:
    """What a socket says, by lines."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = b""

    def next(self, within_s: float | None = None) -> str | None:
        """None if there is none within that time; "" at the end."""
        while b"\n" not in self._rest:
            if not select.select([self._connection], [], [], within_s)[0]:
                return None
            if not (more := self._connection.recv(4096)):
                return ""
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()


@functools.cache
def program() -> Path:
    """A program called iolab for shells and terminals, which has the prepared process run its command line."""
    path = address().parent / "programs" / "iolab"
    path.parent.mkdir()
    path.write_text(PROGRAM.format(python=sys.executable, address=str(address())))
    path.chmod(0o755)
    return path
