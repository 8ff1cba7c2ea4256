"""A process that has imported what a trial needs, and forks for each worker: importing takes longer than a short trial.

The server is single-threaded and does nothing but fork, so that each fork is as good as a new process. It ends when its
parent closes the channel or dies; the workers that it forked go on until their own input closes.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from iolab.base.errors import MachineError
from iolab.machines import module_process

FDS_MAX = 32
"""Descriptors that one request may carry: a connection, three standard streams, locks."""
OF_THE_GROUP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that a terminal sends to all: the parent and the workers act on them, and the server is needed meanwhile."""
STATUS = struct.Struct("=q")
STATUS_LOST = 256
"""The status of a worker whose server died before it: its exit status is unknown, and no exit status is this large."""


class ForkedWorker:
    """A worker that the server forked: what `WorkerProcess` uses of a `subprocess.Popen`."""

    def __init__(self, connection: socket.socket) -> None:
        """`connection`: where the server sends the worker's number and, at its end, its exit status."""
        message, (self._pidfd, *_), _, _ = socket.recv_fds(connection, STATUS.size, 1)
        self.pid: int = STATUS.unpack(message)[0]
        self.returncode: int | None = None
        self._connection = connection

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout_s: float) -> int:
        """The exit status. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout_s)[0]:
                raise subprocess.TimeoutExpired(f"worker {self.pid}", timeout_s)
            message = self._connection.recv(STATUS.size)
            if not message and not select.select([self._pidfd], [], [], timeout_s)[0]:
                raise subprocess.TimeoutExpired(f"worker {self.pid}", timeout_s)
            self.returncode = STATUS.unpack(message)[0] if message else STATUS_LOST
            self._connection.close()
            os.close(self._pidfd)
        return self.returncode

    def kill(self) -> None:
        """Sends SIGKILL, unless it has ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)


class ServerEnded(MachineError):
    """The server was killed, by a user or for lack of memory. The request was not at fault."""


class ForkServer:
    """Its parent's side, for any thread. `close` it when no more workers are wanted."""

    def __init__(self, module: str, arguments: Sequence[str]) -> None:
        """Runs `python -P -m MODULE ARGUMENTS... --serve FD`, which has to call `serve`."""
        self._lock = threading.Lock()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Blocked also in the server, until it ignores them.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, OF_THE_GROUP)
        try:
            self._process = module_process.start(module, [*arguments, "--serve", str(theirs.fileno())], theirs.fileno())
        finally:
            theirs.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    @property
    def is_alive(self) -> bool:
        """Whether it may be asked for workers."""
        return self._process.poll() is None

    def fork(self, stdin: int, stdout: int, stderr: int, held: Sequence[int]) -> ForkedWorker:
        """A worker with these standard streams, which holds the descriptors `held` open as long as it lives.

        Raises:
            ServerEnded: it has ended permanently.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs, self._lock:
                socket.send_fds(self._channel, [b"fork"], [theirs.fileno(), stdin, stdout, stderr, *held])
            return ForkedWorker(ours)
        except (OSError, ValueError, struct.error) as error:  # it ended before it answered
            ours.close()
            self._process.kill()
            self._process.wait()
            raise ServerEnded("the process that forks workers has ended", remedy="run it again") from error

    def close(self) -> None:
        """Ends the server; its workers continue."""
        self._channel.close()
        self._process.wait()


def living(server: ForkServer | None, module: str, arguments: Sequence[str]) -> ForkServer:
    """The server, or a new one if there is none yet or it has died."""
    if server is not None and server.is_alive:
        return server
    if server is not None:
        server.close()
    return ForkServer(module, arguments)


def forked(server: Callable[[], ForkServer], stdin: int, stdout: int, stderr: int, held: Sequence[int]) -> ForkedWorker:
    """A worker of the living server that `server` gives, which is asked again if that one was killed meanwhile.

    Raises:
        ServerEnded: the other was killed too.
    """
    try:
        return server().fork(stdin, stdout, stderr, held)
    except ServerEnded:
        return server().fork(stdin, stdout, stderr, held)


def serve(number: int) -> None:
    """The server's side, on the channel with this descriptor: returns in each forked worker, and nowhere else."""
    channel = socket.socket(fileno=number)
    for each in OF_THE_GROUP:
        signal.signal(each, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, OF_THE_GROUP)
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake)
    running: dict[int, socket.socket] = {}
    gc.collect()
    gc.freeze()
    while True:
        ready, _, _ = select.select([channel.fileno(), woken], [], [])
        if woken in ready:
            _report_ended(woken, running)
        if channel.fileno() not in ready:
            continue
        message, fds, _, _ = socket.recv_fds(channel, 16, FDS_MAX)
        if not message:
            os._exit(0)
        connection = socket.socket(fileno=fds[0])
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in (channel, connection, *running.values()):
                other.close()
            os.close(woken)
            os.close(wake)
            for stream, fd in enumerate(fds[1:4]):
                os.dup2(fd, stream)
                os.close(fd)
            return
        running[pid] = connection
        for fd in fds[1:]:
            os.close(fd)
        _report_start(connection, pid)


def _report_start(connection: socket.socket, pid: int) -> None:
    pidfd = os.pidfd_open(pid)  # not yet waited for, so the number is still this worker's
    with suppress(OSError):
        socket.send_fds(connection, [STATUS.pack(pid)], [pidfd])
    os.close(pidfd)


def _report_ended(woken: int, running: dict[int, socket.socket]) -> None:
    with suppress(BlockingIOError):
        os.read(woken, 4096)
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with running.pop(pid) as connection, suppress(OSError):
            connection.send(STATUS.pack(os.waitstatus_to_exitcode(status)))
