"""Compilations that were made before, from ccache if it is installed. A kernel is the same with and without it."""

from __future__ import annotations

import os
from pathlib import Path

from iolab.base import child_process
from iolab.base.plain_text import counted
from iolab.machines.guest import cache
from iolab.machines.system import command

FOLDER = "ccache"
SIZE_MAX = "5G"
"""73 objects of block/ took 3 MB; a kernel of `plain` has some 1,600."""
_HITS = ("direct_cache_hit", "preprocessed_cache_hit")
_MISS = "cache_miss"


def begin(place: Path) -> dict[str, str]:
    """The variables of a build at this place; none without ccache.

    ccache is called as gcc, by a link: the build's commands are those without it, which `make` keeps beside each
    object, so that an object of either is up to date for the other. Its directory is ours, and it reads no settings.
    """
    tool, links, log = command.find("ccache"), place / FOLDER, _log(place)
    log.unlink(missing_ok=True)
    if tool is None:
        return {}
    links.mkdir(exist_ok=True)
    gcc = links / "gcc"
    gcc.unlink(missing_ok=True)
    gcc.symlink_to(tool)
    return {
        "PATH": os.pathsep.join([str(links), child_process.search_path()]),
        "CCACHE_CONFIGPATH": os.devnull,
        "CCACHE_CONFIGPATH2": os.devnull,
        "CCACHE_DIR": str(cache.directory(FOLDER)),
        "CCACHE_MAXSIZE": SIZE_MAX,
        "CCACHE_STATSLOG": str(log),
    }


def outcome(place: Path) -> str | None:
    """How many compilations of the build were found; None without ccache, or with one that keeps no log."""
    log = _log(place)
    lines = log.read_text().splitlines() if log.exists() else []
    hits, misses = sum(map(lines.count, _HITS)), lines.count(_MISS)
    if not hits + misses:
        return None
    share = hits / (hits + misses)
    return f"ccache had {hits:,} of {counted(hits + misses, 'compilation')}, {share:.0%}"


def _log(place: Path) -> Path:
    return place / FOLDER / "log"
