"""Where iolab keeps what must outlive a process (undo journals, scratch files), and what the machine shares (locks)."""

from __future__ import annotations

import os
from pathlib import Path

from iolab.machines.system import trust
from iolab.machines.system.reach import status_of

ELSEWHERE = "name a directory that only you can write: export IOLAB_STATE_DIR=DIR"


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
    """A directory below the state directory, made when it is missing, that only this user can enter.

    Raises:
        MachineError: it cannot be made, or somebody else could write it or replace it.
    """
    return trust.make_private_directory(state_directory() / name, remedy=ELSEWHERE)


def existing_state_subdirectory(name: str) -> Path | None:
    """The same, None if there is none.

    Raises:
        MachineError: somebody else could write it or replace it.
    """
    return trust.check_directory(state_directory() / name, remedy=ELSEWHERE)


def locks_directory() -> Path:
    """Where the locks of this machine are: one place, whatever the state directory. An ordinary user's are that user's,
    since nobody must be able to keep others from running.

    Raises:
        MachineError: it cannot be made, or somebody else could write it or replace it.
    """
    user = trust.user_of_machine()
    of_session = Path(f"/run/user/{user}")
    if user == 0:
        path = Path("/run/iolab")
    else:
        path = of_session / "iolab" if os.access(of_session, os.W_OK) else Path(f"/tmp/iolab-{user}")
    return trust.make_private_directory(path / "locks")


def nearest_existing(path: Path) -> Path:
    """The path itself or the nearest of its parents that exists: where it would be made. Raises as `status_of`."""
    return nearest_existing(path.parent) if status_of(path) is None else path


def boot_id() -> str:
    """Changes with every boot of the kernel."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
