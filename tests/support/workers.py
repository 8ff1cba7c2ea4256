"""The processes that run trials, told from the server that forks them (iolab/machines/fork_server.py)."""

import os
from pathlib import Path

from support.leftovers import processes_with

WORKER = b"iolab.machines.worker"


def of_this_process() -> int:
    """The only one that this process started, or that its server forked."""
    (found,) = [pid for pid in _below(os.getpid()) if _is_worker(pid)]
    return found


def of(state_dir: Path) -> list[int]:
    """Those that carry this state directory."""
    return [pid for pid in processes_with(state_dir) if _is_worker(pid)]


def _below(pid: int) -> list[int]:
    children = [int(child) for child in _read(f"/proc/{pid}/task/{pid}/children").split()]
    return [below for child in children for below in (child, *_below(child))]


def _is_worker(pid: int) -> bool:
    """A fork has its server's command line, and its server for a parent."""
    return WORKER in _command(pid) and (not _serves(pid) or _serves(_parent(pid)) or _parent(pid) <= 1)


def _serves(pid: int) -> bool:
    return WORKER in _command(pid) and b"--serve" in _command(pid)


def _parent(pid: int) -> int:
    status = _read(f"/proc/{pid}/status").decode()
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:")), 0)


def _command(pid: int) -> list[bytes]:
    return _read(f"/proc/{pid}/cmdline").split(b"\0")


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
