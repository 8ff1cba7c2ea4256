"""The command line, or a module, in a fork of a process that has imported it: importing takes longer
than most commands.

A prepared process is started once by each process of the tests. It listens on a socket, and forks for each command line
that it is sent, with the sender's arguments, directory, environment and standard streams; the fork ends as any Python
does. Tests whose environment changes what Python does when it starts, or whose program another one starts, start the
real one.
"""

import atexit
import contextlib
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
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Self, TextIO

from iolab.base import child_process
from iolab.machines import module_process

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


class Forked:
    """A command line in a fork of the prepared process, leader of a session of its own, with what tests ask of a
    `subprocess.Popen`."""

    returncode: int | None = None

    def __init__(self, arguments: list[str], cwd: Path, environment: dict[str, str]) -> None:
        (out, out_theirs), (err, err_theirs) = os.pipe(), os.pipe()
        self.stdout, self.stderr = (os.fdopen(fd, errors="surrogateescape", newline="") for fd in (out, err))
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(address()))
        request = {"arguments": arguments, "cwd": str(cwd), "environment": environment}
        with Path(os.devnull).open("rb") as stdin:
            streams = [stdin.fileno(), out_theirs, err_theirs]
            socket.send_fds(self._connection, [json.dumps(request).encode() + b"\n"], streams)
        os.close(out_theirs)
        os.close(err_theirs)
        self._said = b""
        self._readers: list[_Reader] = []
        self.pid = int(self._line(None) or "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """What fails while it runs is reported, not waited for."""
        if kind is not None:
            self.kill()
        self.wait()
        self._connection.close()
        if not any(reader.is_alive() for reader in self._readers):  # closing would wait for it
            self.stdout.close()
            self.stderr.close()

    def ended(self, cpu_limit_s: float = patience.CPU_LIMIT_S) -> tuple[str, str]:
        """What it wrote to stdout and stderr until its end; see `patience.wait`."""
        readers = self._readers = [_Reader(stream) for stream in (self.stdout, self.stderr)]

        def read_and_ended(within_s: float) -> int | None:
            for reader in readers:
                reader.join(within_s)
            return None if any(reader.is_alive() for reader in readers) else self._ended(within_s)

        try:
            patience.wait(read_and_ended, self.pid, cpu_limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        return readers[0].text, readers[1].text

    communicate = ended

    def poll(self) -> int | None:
        """As of a `subprocess.Popen`."""
        return self._ended(0)

    def wait(self) -> int:
        """As of a `subprocess.Popen`."""
        return patience.wait(self._ended, self.pid)

    def kill(self) -> None:
        """With what it has started in its session."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """As of a `subprocess.Popen`."""
        os.kill(self.pid, number)

    def _ended(self, within_s: float) -> int | None:
        if self.returncode is None and (said := self._line(within_s)) is not None:
            self.returncode = int(said)
        return self.returncode

    def _line(self, within_s: float | None) -> str | None:
        """The next that the prepared process says, or None if it says nothing within that time."""
        while b"\n" not in self._said:
            if not select.select([self._connection], [], [], within_s)[0]:
                return None
            if not (more := self._connection.recv(64)):
                raise RuntimeError("the prepared process has ended")
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return line.decode()


class Module:
    """A module of iolab's in a fork of the prepared process, with what `ForkServer` asks of a `subprocess.Popen`."""

    def __init__(self, module: str, arguments: Sequence[str], fd: int, environment: dict[str, str]) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(address()))
        request = {
            "module": module,
            "arguments": list(arguments),
            "fd": fd,
            "cwd": str(Path.cwd()),
            "environment": environment,
        }
        socket.send_fds(self._connection, [json.dumps(request).encode() + b"\n"], [fd, 2])
        self._said = self._connection.makefile("rb")
        self.pid = int(self._said.readline())
        self._has_ended = False

    def poll(self) -> int | None:
        """None while it runs."""
        if not self._has_ended and not select.select([self._connection], [], [], 0)[0]:
            return None
        return self.wait()

    def wait(self) -> int:
        """Returns when it has ended."""
        if not self._has_ended:
            self._said.readline()
            self._has_ended = True
            self._said.close()
            self._connection.close()
        return 0

    def kill(self) -> None:
        """Sends SIGKILL, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


Process = Module | module_process.Fork | subprocess.Popen[bytes]


def start_module(module: str, arguments: Sequence[str], fd: int) -> Process:
    """As `module_process.start`, which starts a new Python in a process that has threads, as those of the tests."""
    if not fits(dict(os.environ)):
        return module_process.start(module, arguments, fd)
    return Module(module, arguments, fd, child_process.python_environment())


class _Reader(threading.Thread):
    """Reads a stream to its end. Nobody has to wait for it: what was left behind may keep the stream open for good."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self.text = ""
        self.start()

    def run(self) -> None:
        self.text = self._stream.read()


@functools.cache
def program() -> Path:
    """A program called iolab for shells and terminals, which has the prepared process run its command line."""
    path = address().parent / "programs" / "iolab"
    path.parent.mkdir()
    path.write_text(PROGRAM.format(python=sys.executable, address=str(address())))
    path.chmod(0o755)
    return path
