"""What a guest is made with: QEMU, iolab's own agent and counter, and the host's mkfs packed with its libraries."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from iolab.base import child_process
from iolab.base.data import PACKAGE
from iolab.base.errors import MachineError
from iolab.machines.guest.initramfs import Archive
from iolab.machines.system import command

_BUILT = PACKAGE / "guest"
QEMU = "qemu-system-x86_64"
CONFIGURATIONS = ("/etc/mke2fs.conf",)
LIBRARIES_LIMIT_S = 10.0


def agent() -> Path:
    """The guest's first process. MachineError if this installation has none."""
    return _built("agent")


def counter() -> Path:
    """The plugin that counts. MachineError as of `agent`."""
    return _built("counter.so")


def qemu() -> str:
    """QEMU's path. MachineError if it is not installed."""
    found = command.find(QEMU)
    if found is None:
        raise MachineError(
            f"{QEMU} is not installed", where="guest machine", remedy="install it: sudo apt-get install qemu-system-x86"
        )
    return found


def pack(archive: Archive, name: str, package: str) -> str:
    """Puts a program of this machine and what it needs into the archive; its path there.

    Raises:
        MachineError: the program is not installed.
    """
    found = command.find(name)
    if found is None:
        raise MachineError(
            f"{name} is not installed", where="guest machine", remedy=f"install it: sudo apt-get install {package}"
        )
    path = f"/sbin/{name}"
    if path not in archive:
        archive.add(path, Path(found).read_bytes())
        for library in _libraries(found):
            if library not in archive:
                archive.add(library, Path(library).read_bytes())
        for configuration in CONFIGURATIONS:
            if Path(configuration).exists() and configuration not in archive:
                archive.add(configuration, Path(configuration).read_bytes())
    return path


def _built(name: str) -> Path:
    path = _BUILT / name
    if not path.exists():
        raise MachineError(
            f"this installation of iolab has no guest {path.stem}",
            where=str(path),
            remedy="in a checkout, make demo builds it (x86-64 only)",
        )
    return path


def _libraries(program: str) -> list[str]:
    """Shared libraries as the loader finds them (ldd(1)), and the loader; none of a static program."""
    ldd = subprocess.run(
        ["ldd", program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIBRARIES_LIMIT_S,
        env=child_process.environment(),
        check=False,
    )
    return re.findall(r"(?:=> |^\s+)(/\S+)", ldd.stdout, re.MULTILINE)
