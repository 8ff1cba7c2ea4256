"""Kernels as Debian packages: fetched with apt's own client and unpacked into the cache. Nothing is installed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from iolab.base import child_process
from iolab.base.errors import InputError, MachineError, unknown
from iolab.machines.guest import cache
from iolab.machines.system import command

FOLDER = "debian"
_PACKAGE, _ARCHITECTURE = "linux-image-", "-amd64"
_PARTS = ("linux-binary-", "linux-modules-")
"""The packages on which an empty one depends: Debian's kernels from 6.19 on."""
_LISTS = "linux-base-"
"""The package that has the list of what is built in, and the configuration: from 7.2 on."""
_NAME = re.compile(r"[0-9][\w.+~-]*")
FETCH_LIMIT_S = 300.0
LOOK_LIMIT_S = 30.0
REACHABLE = "is a package index reachable? sudo apt-get update"
INDEX_MAY_BE_OLD = "if it is newer than this machine's package index: sudo apt-get update"


def fetch(version: str) -> Path:
    """The unpacked package of the kernel with that version, such as `6.1.0-56-cloud`.

    Raises:
        InputError: this machine's package index has none of that version.
        MachineError: there is no apt, or it could not fetch it.
    """
    name = version.removesuffix(_ARCHITECTURE)
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{version!r} names no kernel", where="kernel", remedy="iolab list kernels shows which there are"
        )
    target = cache.directory(FOLDER) / name
    if not target.exists():
        _fetch(name, target)
    return target


def image(directory: Path) -> Path | None:
    """The kernel's image in an unpacked package: beside its modules, in newer ones."""
    found = [*directory.glob("boot/vmlinuz-*"), *directory.glob("usr/lib/modules/*/vmlinuz")]
    return found[0] if found else None


def config(image: Path) -> Path:
    """Where the package has the image's configuration."""
    version = image.name.partition("-")[2]
    return image.with_name(f"config-{version}" if version else "config")


def modules(image: Path) -> Path:
    """Where the modules of a package's kernel are: below lib, below usr/lib from Debian 13 on, or beside the image."""
    if image.parent.name != "boot":
        return image.parent
    root, release = image.parents[1], image.name.removeprefix("vmlinuz-")
    merged = root / "usr" / "lib" / "modules" / release
    return merged if merged.is_dir() else root / "lib" / "modules" / release


def available() -> list[str]:
    """The versions that the package index of this machine has; none without apt."""
    names = (name.removeprefix(_PACKAGE) for name in offered(_PACKAGE) if name.endswith(_ARCHITECTURE))
    # Only packages with a version hold a kernel; the others depend on the newest.
    found = (name.removesuffix(_ARCHITECTURE) for name in names)
    return sorted((name for name in found if re.match(r"\d+\.\d+\.\d+", name) and "-dbg" not in name), key=order)


def order(version: str) -> list[tuple[int, str]]:
    """Sorts versions as people do."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|\D+", version)]


def unpacked(packages: Sequence[str], directory: Path, *, instead: str, limit_s: float = FETCH_LIMIT_S) -> str | None:
    """Fetches the packages and unpacks them into the directory; the reason if they cannot be fetched.

    Args:
        packages: each a name, or NAME=VERSION.
        instead: the remedy without apt.

    Raises:
        MachineError: there is no apt, it did not end in time, or a package cannot be unpacked.
    """
    tool, unpacker = command.find("apt-get"), command.find("dpkg-deb")
    if tool is None or unpacker is None:
        raise MachineError("fetching a package takes apt and dpkg", where=packages[0], remedy=instead)
    done = _run([tool, "download", "--quiet", *packages], limit_s, cwd=directory)
    found = list(directory.glob("*.deb"))
    if done.returncode != 0 or not found:
        return _last(done.stderr)
    for package in found:
        extracted = _run([unpacker, "-x", str(package), str(directory)], limit_s, cwd=directory)
        if extracted.returncode != 0:
            raise MachineError(f"{package.name} cannot be unpacked: {_last(extracted.stderr)}", where=packages[0])
        package.unlink()
    return None


def offered(prefix: str) -> list[str]:
    """The packages of that prefix that the package index of this machine has; none without apt."""
    tool = command.find("apt-cache")
    return [] if tool is None else _run([tool, "pkgnames", prefix], LOOK_LIMIT_S, cwd=None).stdout.split()


def fields(package: str) -> dict[str, str]:
    """What the package index has of the version that would be fetched, such as `Version` and `Size`; empty if there is
    no such package, or no apt."""
    tool = command.find("apt-cache")
    if tool is None:
        return {}
    output = _run([tool, "show", "--no-all-versions", package], LOOK_LIMIT_S, cwd=None).stdout
    return {key: text.strip() for key, colon, text in (line.partition(":") for line in output.splitlines()) if colon}


def _fetch(name: str, target: Path) -> None:
    with cache.filled(target) as directory:
        for prefixes in ((_PACKAGE,), _PARTS, (_LISTS,)):
            packages = [f"{prefix}{name}{_ARCHITECTURE}" for prefix in prefixes]
            refused = unpacked(packages, directory, instead="give the path of an image instead")
            if refused is not None:
                if prefixes == (_LISTS,):
                    return
                raise _refused(name, refused)
            kernel = image(directory)
            if kernel is not None and (prefixes == (_PACKAGE,) or (modules(kernel) / "modules.builtin").exists()):
                return
            if kernel is None and prefixes == _PARTS:
                raise MachineError("its packages hold no kernel", where=name)


def _refused(name: str, why: str) -> InputError | MachineError:
    known = available()
    if known and name not in known:
        return InputError(unknown("kernel", name, known), where="kernel", remedy=INDEX_MAY_BE_OLD)
    return MachineError(
        f"the kernel's package could not be fetched: {why}",
        where=name,
        remedy=REACHABLE,
    )


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def _run(arguments: list[str], limit_s: float, cwd: Path | None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            arguments,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            env={**child_process.environment(), "LC_ALL": "C"},
            preexec_fn=command.dying_with_parent(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise MachineError(f"{' '.join(arguments)} did not end within {limit_s:g} s", where="kernel") from None
