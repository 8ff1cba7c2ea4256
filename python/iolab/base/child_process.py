"""What every process that iolab starts is given: known variables, and no code out of the current directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

ADMINISTRATORS = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin")
"""sudo and cron may leave them out of PATH."""

_KEPT = ("HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE")
_OURS_BY_XDG = ("XDG_STATE_HOME", "XDG_CACHE_HOME")
"""Where our own files lie."""
_OURS = "IOLAB_"
_PATHS = ("LD_LIBRARY_PATH",)
_PATHS_OF_PYTHON = ("PYTHONHOME", "PYTHONUSERBASE")
"""Without them a Python of one's own may not start, or not find what was installed for one user."""


def environment() -> dict[str, str]:
    """For any program: who and where we are, what is iolab's own, and paths without the current directory.

    Whatever else is set (tools' and loaders' own variables, a make's word to its children) changes what a program does,
    or has it load code, without standing in the experiment.
    """
    kept = {
        name: text for name, text in os.environ.items() if name in (*_KEPT, *_OURS_BY_XDG) or name.startswith(_OURS)
    }
    return {**kept, **_paths(_PATHS), "PATH": search_path()}


def search_path() -> str:
    """PATH and the administrators' directories. An empty or relative entry would be a place of anybody's choice."""
    return os.pathsep.join([*_absolute("PATH"), *ADMINISTRATORS])


def python(module: str) -> list[str]:
    """The command that runs a module of iolab's in this Python.

    With `-m` alone the current directory would come before all other places of code, the standard library's too.
    """
    alike = {"-s": sys.flags.no_user_site, "-E": sys.flags.ignore_environment}
    return [sys.executable, "-P", *(flag for flag, is_ours in alike.items() if is_ours), "-m", module]


def python_environment() -> dict[str, str]:
    """`environment`, with what it takes to find the same iolab: also one that is installed for one user only, that
    PYTHONPATH names, or whose sources are in the current directory."""
    places = _absolute("PYTHONPATH")
    own = str(Path(__file__).resolve().parents[2])
    for_all = sys.path if sys.flags.safe_path else sys.path[1:]
    if own not in (*for_all, *places):
        places.append(own)
    return {**environment(), **_paths(_PATHS_OF_PYTHON), **_joined("PYTHONPATH", places)}


def _paths(names: Iterable[str]) -> dict[str, str]:
    return {key: text for name in names for key, text in _joined(name, _absolute(name)).items()}


def _joined(name: str, places: list[str]) -> dict[str, str]:
    return {name: os.pathsep.join(places)} if places else {}


def _absolute(variable: str) -> list[str]:
    return [place for place in os.environ.get(variable, "").split(os.pathsep) if place.startswith("/")]
