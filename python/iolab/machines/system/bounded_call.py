"""Calls that may wait for a device without end: made in a child, which is left behind when it gives no sign of life.

Whatever asks the kernel to write to, mount, unmount or sync a device that has stopped answering never returns, and no
signal ends it. So it is not this process that asks.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

from iolab.base.errors import MachineError
from iolab.machines.system import life

PATIENCE_S = 60.0
"""How long a call may show no sign of life. A disk that spins up, or whose controller is reset, takes half of it."""
SPEAK_AFTER_S = 3.0
LOOK_EVERY_S = 0.2
KILLED_AFTER_S = 0.5
"""More than a process takes to die that a signal can reach."""
PR_SET_PDEATHSIG = 1

T = TypeVar("T")
OnWait = Callable[[str], None]

_libc = ctypes.CDLL(None)
_patience_s = PATIENCE_S
_left_behind: list[int] = []


class NoAnswer(MachineError):
    """What was called gave no sign of life; it may still come to its end some day."""


def set_patience(seconds: float) -> None:
    """For all calls of this process from now on."""
    global _patience_s
    _patience_s = seconds


def patience_s() -> float:
    """How long a call of this process may show no sign of life."""
    return _patience_s


def call(function: Callable[[], T], *, doing: str, where: str | None = None, on_wait: OnWait | None = None) -> T:
    """What the function returns, or raises, in a child of this process. Both must be picklable, and what it changes in
    this process's memory is lost. A call may take as long as it likes while it, or a process that it starts, moves.

    The child holds no open file of this process: neither a pipe that somebody waits for the end of, nor a lock.

    Args:
        doing: what it does, for the error: "unmount /mnt".
        where: the device or path that an error line names.
        on_wait: is called once, when it takes long.

    Raises:
        NoAnswer: there was no sign of life for as long as patience lasts. The child was killed; one that no signal
            reaches was left behind.
    """
    _reap()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _be_the_child(function, writing)
    os.close(writing)
    ended = False
    try:
        answer = _answer(reading, child, doing, where, on_wait)
        ended = True
    finally:
        os.close(reading)
        _part_from(child, ended=ended)
    if answer is None:
        raise MachineError(f"cannot {doing}: the process that did it was killed", where=where)
    succeeded, value = answer
    if succeeded:
        return value  # type: ignore[no-any-return]
    raise value


def _answer(fd: int, child: int, doing: str, where: str | None, on_wait: OnWait | None) -> tuple[bool, Any] | None:
    watch = life.Watch()
    received = bytearray()
    spoken = False
    while True:
        if select.select([fd], [], [], LOOK_EVERY_S)[0]:
            chunk = os.read(fd, 1 << 20)
            if not chunk:
                return pickle.loads(received) if received else None
            received += chunk
            continue
        watch.look([child])
        quiet_s = watch.quiet_s
        if on_wait is not None and not spoken and quiet_s > min(SPEAK_AFTER_S, _patience_s / 2):
            on_wait(f"{doing}: no answer for {quiet_s:.0f} s, is given up after {_patience_s:.0f} s")
            spoken = True
        if quiet_s > _patience_s:
            waiting = life.description(watch.stuck()) or f"process {child} waits"
            raise NoAnswer(
                f"cannot {doing}: no answer since {life.clock(quiet_s)}: {waiting}",
                where=where,
                remedy="see to it that the device answers again, then: iolab restore",
            )


def _be_the_child(function: Callable[[], Any], writing: int) -> NoReturn:
    """Never returns into what the parent was doing."""
    try:
        _let_go_of_everything(writing)
        try:
            answer = (True, function())
        except BaseException as error:
            answer = (False, error)
        with open(writing, "wb") as file:
            pickle.dump(answer, file)
    finally:
        os._exit(0)


def _let_go_of_everything(but: int) -> None:
    parent = os.getppid()
    os.setsid()  # Ctrl-C in the terminal is for the parent
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)
    os.closerange(3, but)
    os.closerange(but + 1, os.sysconf("SC_OPEN_MAX"))


def _part_from(child: int, *, ended: bool) -> None:
    if not ended:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    deadline = time.monotonic() + KILLED_AFTER_S
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > deadline:
            _left_behind.append(child)
            return
        time.sleep(0.001)


def _reap() -> None:
    """Abandoned calls that have ended nevertheless."""
    for child in list(_left_behind):
        with suppress(ChildProcessError):
            if os.waitpid(child, os.WNOHANG)[0] == 0:
                continue
        _left_behind.remove(child)
