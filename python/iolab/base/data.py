"""What comes with iolab: simulated machines, experiments, published figures. The one place that defines where they lie.

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
"""A folder each: examples, case studies, what the tuner and the demonstration of schedulers run."""
PUBLISHED = (_DATA / "published").resolve()
"""A file per source of published figures; its folder `experiments` asks them again, `results` holds the answers, and
`claims` has the mails and commits that no model is asked."""
CLAIMS = PUBLISHED / "claims"
EXAMPLES = (
    "directory",
    "model",
    "schedulers",
    "queue-depth",
    "open-loop",
    "tiobench",
    "verify",
    "fio-compare",
    "replay",
    "attribute-tunables",
    "commits",
)
"""The order in which a newcomer reads the examples: no root, one machine and one question first."""


def experiments() -> dict[str, Path]:
    """The experiments that run by name: the examples in reading order, then case studies, then reproductions.
    InputError if this installation lacks them."""
    others = (EXPERIMENTS / "case-studies", PUBLISHED / "experiments")
    return {
        **{name: EXPERIMENTS / "examples" / f"{name}.toml" for name in EXAMPLES},
        **{name: folder / f"{name}.toml" for folder in others for name in names(folder)},
    }


def cost_paths() -> dict[str, Path]:
    """The experiments of `iolab cost`, one for each path, by name. InputError if this installation lacks them."""
    folder = EXPERIMENTS / "cost"
    return {name: folder / f"{name}.toml" for name in names(folder)}


def stems(folder: Path) -> list[str]:
    """The names of the TOML files in `folder`, without their suffix, sorted; none if there is no such folder."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def names(folder: Path) -> list[str]:
    """The names of what comes with iolab in `folder`, sorted. InputError if this installation lacks it."""
    found = stems(folder)
    if not found:
        raise InputError(
            f"this installation of iolab has no {folder.name}", where=str(folder), remedy="install iolab again"
        )
    return found
