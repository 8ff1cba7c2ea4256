"""Where iolab keeps what must outlive a process: undo journals, locks, scratch files."""

from __future__ import annotations

import os
from pathlib import Path

from iolab.errors import MachineError
from iolab.machine.reach import status_of


def state_directory() -> Path:
    """`$IOLAB_STATE_DIR`; else /var/lib/iolab as root, `$XDG_STATE_HOME/iolab` or ~/.local/state/iolab otherwise."""
    chosen = os.environ.get("IOLAB_STATE_DIR")
    if chosen:
        return Path(chosen).absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/iolab")
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "iolab"


def state_subdirectory(name: str) -> Path:
    """A directory below the state directory, made when it is missing.

    Raises:
        MachineError: it cannot be made or written.
    """
    path = state_directory() / name
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(
            f"cannot keep state there: {error.strerror}",
            where=str(path),
            remedy="choose a writable directory: export IOLAB_STATE_DIR=DIR",
        ) from error
    return path


def nearest_existing(path: Path) -> Path:
    """The path itself or the nearest of its parents that exists: where it would be made. Raises as `status_of`."""
    return nearest_existing(path.parent) if status_of(path) is None else path


def boot_id() -> str:
    """Changes with every boot of the kernel."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
