"""A filesystem on a loop device on tmpfs: fast enough that the load generator is what is measured."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from iolab.machines.system import driver_tags
from iolab.machines.system.block import device_at

HOME = Path("/dev/shm/iolab-bench")
BACKING = HOME / "backing"
MIB = 1 << 20
UNMOUNT_PATIENCE_S = 10.0


@contextlib.contextmanager
def mounted(filesystem: str, *, size_mib: int, file_mib: int, mount: str = "relatime") -> Iterator[Path]:
    """Yields a file of random bytes on it. `mount`: options of mount(8)."""
    with empty(filesystem, size_mib=size_mib, mount=mount) as root:
        target = root / "data"
        with target.open("wb") as file:
            for _ in range(file_mib):
                file.write(os.urandom(MIB))
            os.fsync(file.fileno())
        yield target


@contextlib.contextmanager
def empty(filesystem: str, *, size_mib: int, options: Sequence[str] = (), mount: str = "relatime") -> Iterator[Path]:
    """Yields its root. All of it lies in one place, so that what a killed bench left is found."""
    clean()
    HOME.mkdir()
    try:
        yield _make(filesystem, size_mib, options, mount)
    finally:
        clean()


@contextlib.contextmanager
def bare(*, size_mib: int) -> Iterator[Path]:
    """Yields a device of random bytes, without a filesystem."""
    clean()
    HOME.mkdir()
    try:
        with BACKING.open("wb") as file:
            for _ in range(size_mib):
                file.write(os.urandom(MIB))
        device = Path(system("losetup", "--find", "--show", str(BACKING)).strip())
        fill_tags()
        yield device
    finally:
        clean()


def _make(filesystem: str, size_mib: int, options: Sequence[str], mount: str) -> Path:
    mount_point = HOME / "mnt"
    with BACKING.open("wb") as file:
        file.truncate(size_mib * MIB)
    mount_point.mkdir()
    system(f"mkfs.{filesystem}", "-q", *options, str(BACKING))
    system("mount", "-o", f"loop,{mount}", str(BACKING), str(mount_point))
    fill_tags()
    return mount_point


def fill_tags() -> None:
    """A loop device has as few tags as its last user gave it, whatever nr_requests shows."""
    for line in system("losetup", "--associated", str(BACKING)).splitlines():
        driver_tags.fill(device_at(Path(line.split(":")[0])))


def clean() -> None:
    """Unmounting lets go of the loop device, which `mount -o loop` made to detach itself."""
    if (HOME / "mnt").is_mount():
        unmount()
    if BACKING.exists():
        for line in system("losetup", "--associated", str(BACKING)).splitlines():
            system("losetup", "--detach", line.split(":")[0])
    shutil.rmtree(HOME, ignore_errors=True)


def unmount() -> None:
    """A ring lets go of its registered files a moment after its process has ended."""
    give_up = time.monotonic() + UNMOUNT_PATIENCE_S
    while True:
        try:
            system("umount", str(HOME / "mnt"))
            return
        except subprocess.CalledProcessError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.1)


def system(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
