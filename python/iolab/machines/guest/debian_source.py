"""Debian's source of the kernel, by name, as a git tree of one commit. Nothing is installed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from iolab.base.errors import InputError, MachineError, unknown
from iolab.machines.guest import cache, debian
from iolab.machines.system import command, git_archive

FOLDER = "sources"
INSTALLED = Path("/usr/src")
FETCH_LIMIT_S = 1800.0
_PREFIX = "linux-source-"
_NAME = re.compile(rf"{_PREFIX}\d+\.\d+")


def is_source(name: str) -> bool:
    """Whether this is how such a package is named: `linux-source-6.1`."""
    return _NAME.fullmatch(name) is not None


def tree(name: str, report_line: Callable[[str], None]) -> Path:
    """The git tree of the package: the newest in the cache, else made of the installed package, else of the one that
    apt's own client fetches.

    Args:
        report_line: receives what is fetched and how large it is.

    Raises:
        InputError: this machine's package index has no such package.
        MachineError: there is no apt, or it cannot fetch it.
    """
    made = sorted(cache.directory(FOLDER).glob(f"{name}_*"), key=lambda one: debian.order(one.name))
    if made:
        return made[-1]
    installed = INSTALLED / f"{name}.tar.xz"
    version = _version_installed(name) if installed.exists() else None
    is_installed = version is not None
    version = version or _announced(name, report_line)
    target = cache.directory(FOLDER) / f"{name}_{version}"
    with cache.filled(target) as directory:
        package = directory / "package"
        archive = installed if is_installed else _fetched(name, version, package)
        report_line(f"{name} {version}: making a git tree of {archive.name}")
        git_archive.commit(archive, directory, f"{name} {version}")
        shutil.rmtree(package, ignore_errors=True)
    return target


def _version_installed(name: str) -> str | None:
    """None: the archive in /usr/src is no package's."""
    try:
        return command.run(["dpkg-query", "-W", "-f", "${Version}", name], package="dpkg", where=name).strip() or None
    except MachineError:
        return None


def _announced(name: str, report_line: Callable[[str], None]) -> str:
    """The version that will be fetched, after it has been reported."""
    found = debian.fields(name)
    if "Version" not in found:
        known = [one for one in debian.offered(_PREFIX) if is_source(one)]
        if not known:
            raise MachineError(f"no package index knows {name}", where="--git", remedy=debian.REACHABLE)
        raise InputError(unknown("source", name, known), where="--git", remedy=debian.INDEX_MAY_BE_OLD)
    report_line(f"{name} {found['Version']}: fetching {int(found.get('Size', 0)) / 1e6:.0f} MB with apt-get")
    return found["Version"]


def _fetched(name: str, version: str, to: Path) -> Path:
    """The archive in the package."""
    to.mkdir()
    instead = "give the path of a git tree instead"
    refused = debian.unpacked([f"{name}={version}"], to, instead=instead, limit_s=FETCH_LIMIT_S)
    if refused is not None:
        raise MachineError(f"the package could not be fetched: {refused}", where=name, remedy=debian.REACHABLE)
    archives = list(to.glob(f"usr/src/{name}.tar.xz"))
    if not archives:
        raise MachineError("the package holds no source", where=name, remedy=instead)
    return archives[0]
