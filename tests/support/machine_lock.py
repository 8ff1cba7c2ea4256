"""Who may change the machine: tests and attacks of every checkout on it, one at a time or side by side."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = Path("/run/iolab-tests.lock")
"""In root's directory: nobody else can hold it, and nobody else's tests change the machine."""
HERE = Path(__file__).parent


@contextmanager
def machine_alone() -> Iterator[None]:
    """For what no test has for itself: a sysctl, control groups, tracing. Nobody else changes the machine."""
    with _locked(fcntl.LOCK_EX):
        yield


@contextmanager
def machine_shared() -> Iterator[None]:
    """For devices, mounts and directories of one's own: beside others of this kind."""
    with _locked(fcntl.LOCK_SH):
        yield


@contextmanager
def _locked(kind: int) -> Iterator[None]:
    is_root = os.geteuid() == 0
    lock = os.open(LOCK if is_root else HERE, os.O_RDONLY | os.O_CLOEXEC | (os.O_CREAT if is_root else 0), 0o600)
    try:
        fcntl.flock(lock, kind)
        yield
    finally:
        os.close(lock)
