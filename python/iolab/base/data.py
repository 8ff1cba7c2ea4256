"""What comes with iolab: simulated machines, experiments, published figures. The one place that knows where they lie.

The package's folder `data` has a folder of each. In a checkout these are symbolic links to the folders at the
checkout's top; a wheel has the files themselves there. So one path is right for both.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from iolab.base.errors import InputError

PACKAGE = Path(str(files("iolab")))
"""Where this iolab is installed."""
_DATA = PACKAGE / "data"
MACHINES = (_DATA / "machines").resolve()
"""A file per simulated machine; its folders `devices` and `mounts` hold what several machines name."""
EXPERIMENTS = (_DATA / "experiments").resolve()
"""A file per experiment, and the fio job files that they name."""
PUBLISHED = (_DATA / "published").resolve()
"""A file per source of published figures; its folder `results` holds what the models made of them."""


def stems(folder: Path) -> list[str]:
    """The names of the TOML files in `folder`, without their suffix, sorted; none where there is no such folder."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def names(folder: Path) -> list[str]:
    """The names of what comes with iolab in `folder`, sorted. InputError where this installation lacks it."""
    found = stems(folder)
    if not found:
        raise InputError(
            f"this installation of iolab has no {folder.name}", where=str(folder), remedy="install iolab again"
        )
    return found
