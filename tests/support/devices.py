"""Block devices for tests: loop devices on sparse files, partition tables, files that give out."""

import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.command_line import wait_until

MIB = 1 << 20
UNMOUNT_PATIENCE_S = 60.0


def command(*arguments: str | Path, ok: tuple[int, ...] = (0,)) -> str:
    """Runs a system program, which has to end with a status that is `ok`; its standard output."""
    done = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True, check=False)
    assert done.returncode in ok, f"{arguments}: {done.stderr or done.stdout}"
    return done.stdout.strip()


def sparse_file(path: Path, size_bytes: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size_bytes)
    return path


def attach(backing: Path, *options: str) -> Path:
    return Path(command("losetup", "--find", "--show", *options, backing))


def detach(device: Path) -> None:
    command("losetup", "--detach", device)


def reattach(device: Path, backing: Path) -> None:
    """The same loop device with another file. Who asks for a free one meanwhile may be given it, and is waited for."""
    detach(device)
    losetup = ["losetup", str(device), str(backing)]
    wait_until(lambda: not subprocess.run(losetup, capture_output=True, check=False).returncode, f"{device} to be free")


def loops_backed_under(directory: Path) -> dict[str, str]:
    """Loop device -> backing file, for those whose backing file lies (or lay, if deleted since) under `directory`."""
    found = {}
    for backing_file in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            backing = backing_file.read_text().strip()
        except OSError:  # detached between the listing and the read
            continue
        if backing.startswith(f"{directory}/"):
            found[f"/dev/{backing_file.parents[1].name}"] = backing
    return found


def write_partition_table(disk: Path, *, sectors: int) -> None:
    """One Linux partition in an MBR: entry at byte 446, signature at 510."""
    entry = struct.pack("<B3sB3sII", 0, b"\0\0\0", 0x83, b"\0\0\0", 2048, sectors)
    with disk.open("r+b") as file:
        file.seek(446)
        file.write(entry)
        file.seek(510)
        file.write(b"\x55\xaa")


@contextmanager
def partitioned(disk: Path, *, sectors: int) -> Iterator[Path]:
    """One partition. `partx` reads the table, since a kernel need not know the format."""
    write_partition_table(disk, sectors=sectors)
    command("partx", "--add", disk)
    try:
        yield Path(f"{disk}p1")
    finally:
        command("partx", "--delete", disk)


@contextmanager
def mounted(device: Path, mount_point: Path, options: str = "rw") -> Iterator[Path]:
    mount_point.mkdir(exist_ok=True)
    command("mount", "-o", options, device, mount_point)
    try:
        yield mount_point
    finally:
        unmount(mount_point)


def unmount(mount_point: Path) -> None:
    """A ring lets go of its files a moment after its process has ended."""
    give_up = time.monotonic() + UNMOUNT_PATIENCE_S
    while subprocess.run(["umount", mount_point], capture_output=True, check=False).returncode:
        assert time.monotonic() < give_up, f"{mount_point} stays busy"
        time.sleep(0.1)


def queue_attribute(device: Path, name: str) -> str:
    """As the kernel shows it; of a choice (`none [bfq]`), the chosen word."""
    text = (Path("/sys/block") / device.name / "queue" / name).read_text().strip()
    return text.partition("[")[2].partition("]")[0] or text


def have_device_mapper() -> bool:
    return "device-mapper" in Path("/proc/misc").read_text() and Path("/dev/mapper/control").exists()


@contextmanager
def tmpfs(directory: Path, *, size_kib: int) -> Iterator[None]:
    """The directory on a filesystem of its own that is soon full. Nothing must swap to it."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", directory], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", directory], check=True)


def fill(directory: Path) -> None:
    with (directory / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
