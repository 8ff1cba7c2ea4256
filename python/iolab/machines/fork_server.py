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
from functools import cached_property

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
    """A worker that the server was asked for: what `WorkerProcess` uses of a `subprocess.Popen`."""

    def __init__(self, connection: socket.socket) -> None:
        """`connection`: where the server sends the worker's number and, at its end, its exit status."""
        self.returncode: int | None = None
        self._connection = connection

    @property
    def pid(self) -> int:
        """Its number, once the server has answered. Raises ServerEnded."""
        return self._number_and_pidfd[0]

    @cached_property
    def _number_and_pidfd(self) -> tuple[int, int]:
        try:
            message, (pidfd, *_), _, _ = socket.recv_fds(self._connection, STATUS.size, 1)
            return STATUS.unpack(message)[0], pidfd
        except (OSError, ValueError, struct.error) as error:  # it ended before it answered
            self._connection.close()
            raise ServerEnded.before_it_answered() from error

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout_s: float) -> int:
        """The exit status. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            pid, pidfd = self._number_and_pidfd
            if not select.select([self._connection], [], [], timeout_s)[0]:
                raise subprocess.TimeoutExpired(f"worker {pid}", timeout_s)
            message = self._connection.recv(STATUS.size)
            if not message and not select.select([pidfd], [], [], timeout_s)[0]:
                raise subprocess.TimeoutExpired(f"worker {pid}", timeout_s)
            self.returncode = STATUS.unpack(message)[0] if message else STATUS_LOST
            self._connection.close()
            os.close(pidfd)
        return self.returncode

    def kill(self) -> None:
        """Sends SIGKILL, unless it has ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._number_and_pidfd[1], signal.SIGKILL)


class ServerEnded(MachineError):
    """The server was killed, by a user or for lack of memory. The request was not at fault."""

    @classmethod
    def before_it_answered(cls) -> ServerEnded:
        """The line that reports it."""
        return cls("the process that forks workers has ended", remedy="run it again")


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
        """Asks for a worker with these standard streams, which holds the descriptors `held` open as long as it lives,
        and waits for no answer: the worker's `pid` does.

        Raises:
            ServerEnded: it has ended permanently.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs, self._lock:
                socket.send_fds(self._channel, [b"fork"], [theirs.fileno(), stdin, stdout, stderr, *held])
        except OSError as error:
            ours.close()
            raise ServerEnded.before_it_answered() from error
        return ForkedWorker(ours)

    def kill(self) -> None:
        """For one that has not answered: another takes its place. Returns when it has ended."""
        self._process.kill()
        self._process.wait()

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
    chosen = server()
    try:
        worker = chosen.fork(stdin, stdout, stderr, held)
        _ = worker.pid
    except ServerEnded:
        chosen.kill()
        worker = server().fork(stdin, stdout, stderr, held)
        _ = worker.pid
    return worker


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
