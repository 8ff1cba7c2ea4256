"""The mount table of this process, from /proc/self/mountinfo (format: proc(5))."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from iolab.base.errors import InputError

MOUNTINFO = Path("/proc/self/mountinfo")
NAMESPACE_PATIENCE_S = 5.0
KERNEL_PLACES = (Path("/dev"), Path("/proc"), Path("/sys"))
STORING_PLACES = (Path("/dev/shm"),)
"""A tmpfs for everybody's files; any other that is mounted in the kernel's places holds mount points and nodes."""
IN_MEMORY = ("tmpfs", "ramfs", "hugetlbfs", "devtmpfs", "rootfs")
"""Filesystems whose files are memory; tmpfs's can be swapped themselves."""
WITHOUT_FILES = (
    *(
        "autofs",
        "binder",
        "binfmt_misc",
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "cpuset",
        "debugfs",
        "devpts",
        "devtmpfs",
    ),
    *("efivarfs", "functionfs", "fusectl", "hugetlbfs", "mqueue", "nfsd", "nsfs", "proc", "pstore", "resctrl"),
    *("rpc_pipefs", "securityfs", "selinuxfs", "smackfs", "sysfs", "tracefs", "xenfs"),
)
"""Filesystems that show the kernel's state, or its devices: a file there is a setting, a node or nothing."""


@dataclass(frozen=True)
class Mount:
    """A line of /proc/self/mountinfo."""

    number: tuple[int, int]
    """Major and minor of the filesystem; (0, n) for btrfs, tmpfs and others that have no single block device."""
    mount_point: str
    filesystem: str
    source: str
    options: str
    """Per mount, then of the filesystem itself."""


def mounts() -> list[Mount]:
    """All mounts, oldest first."""
    return [_parse(line) for line in MOUNTINFO.read_text().splitlines()]


def mount_at(path: Path) -> Mount | None:
    """The mount whose mount point is exactly `path`; the topmost one when they are stacked."""
    found = [mount for mount in mounts() if mount.mount_point == str(path)]
    return found[-1] if found else None


def mount_of(path: Path) -> Mount | None:
    """The mount that an existing path lies on."""
    resolved = path.resolve()
    topmost = {mount.mount_point: mount for mount in mounts()}
    return next((topmost[str(place)] for place in (resolved, *resolved.parents) if str(place) in topmost), None)


def check_keeps_files(directory: Path) -> None:
    """Raises InputError for a directory on a filesystem that is not for files. In containers /dev is a tmpfs."""
    mount = mount_of(directory)
    if mount is not None and (mount.filesystem in WITHOUT_FILES or _is_kernel_place(Path(mount.mount_point))):
        raise InputError(
            f"lies on {mount.filesystem} ({mount.mount_point}), which is not for files",
            where=str(directory),
            remedy="name a directory or a file on a filesystem that stores data",
        )


def _is_kernel_place(mount_point: Path) -> bool:
    places = (mount_point, *mount_point.parents)
    return any(place in places for place in KERNEL_PLACES) and not any(place in places for place in STORING_PLACES)


def mounts_below(path: Path) -> list[Mount]:
    """Mounts at `path` or below it."""
    prefix = str(path).rstrip("/") + "/"
    return [mount for mount in mounts() if (mount.mount_point + "/").startswith(prefix)]


@dataclass(frozen=True)
class Process:
    """A process, as error lines name it."""

    pid: int
    name: str

    @property
    def text(self) -> str:
        """`name (pid)`, for error lines."""
        return f"{self.name} ({self.pid})"


def seen_elsewhere(is_meant: Callable[[Mount], bool]) -> tuple[Process, Mount] | None:
    """A process in another mount namespace, and such a mount there. None if there is none soon: whoever makes a
    namespace, as a service that starts does, has copies of all mounts until it has put its own in place."""
    give_up = time.monotonic() + NAMESPACE_PATIENCE_S
    while found := next((pair for pair in _in_other_namespaces() if is_meant(pair[1])), None):
        if time.monotonic() > give_up:
            return found
        time.sleep(0.05)
    return None


def _in_other_namespaces() -> Iterator[tuple[Process, Mount]]:
    """The mounts of every other mount namespace that has processes, as far as we may look, each with one of these."""
    seen = {_namespace(Path("/proc/self"))}
    for directory in Path("/proc").iterdir():
        namespace = _namespace(directory) if directory.name.isdigit() else None
        if namespace is None or namespace in seen:
            continue
        with suppress(OSError):
            lines = (directory / "mountinfo").read_text().splitlines()
            seen.add(namespace)
            process = Process(int(directory.name), _comm(directory))
            for line in lines:
                yield process, _parse(line)


def _namespace(process: Path) -> str | None:
    try:
        return str((process / "ns" / "mnt").readlink())
    except OSError:
        return None


def users_of(path: Path) -> list[str]:
    """Processes with a working directory, root or open file at or below `path`, as "name (pid)"."""
    prefix = str(path).rstrip("/") + "/"
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and any((link + "/").startswith(prefix) for link in _links(process)):
            found.append(f"{_comm(process)} ({process.name})")
    return found


def _parse(line: str) -> Mount:
    before, _, after = line.partition(" - ")
    fields = before.split(" ")
    filesystem, source, super_options = after.split(" ", 2)
    major, minor = fields[2].split(":")
    return Mount(
        number=(int(major), int(minor)),
        mount_point=unescape(fields[4]),
        filesystem=filesystem,
        source=unescape(source),
        options=_joined(fields[5], super_options),
    )


def _joined(mount_options: str, super_options: str) -> str:
    return ",".join(dict.fromkeys([*mount_options.split(","), *super_options.split(",")]))


def unescape(text: str) -> str:
    r"""A word of the kernel's mount tables with its octal escapes (`\040`) as characters."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


def _links(process: Path) -> Iterator[str]:
    """What the process's directories and open files point to, as far as we may look."""
    links = [process / "cwd", process / "root"]
    with suppress(OSError):
        links += (process / "fd").iterdir()
    for link in links:
        with suppress(OSError):
            yield str(link.readlink())


def _comm(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return "ended"
