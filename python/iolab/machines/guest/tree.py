"""Kernels of a git tree, built out of it: the tree itself is only read."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from iolab.base import child_process
from iolab.base.errors import InputError, MachineError
from iolab.machines.guest import cache, ccache, configuration
from iolab.machines.guest.configuration import Configuration
from iolab.machines.guest.kernel_paths import path_of
from iolab.machines.system import command, git
from iolab.machines.system.git import Repository

FOLDER = "trees"
BUILD_LIMIT_S = 3600.0
_SHORT_REVISION = 12
FIXED = (
    "KBUILD_BUILD_TIMESTAMP=2020-01-01",
    "KBUILD_BUILD_USER=iolab",
    "KBUILD_BUILD_HOST=iolab",
    "KBUILD_BUILD_VERSION=1",
)
"""What a kernel's text has of its build. The last is else the number of builds at one place (init/build-version, 6.1).
"""
_TOOLS = {"git": "git", "make": "make", "gcc": "gcc", "flex": "flex", "bison": "bison", "bc": "bc"}


class BuildFailed(InputError):
    """The commit's kernel could not be compiled; another one of the tree may."""


@dataclass(frozen=True)
class BuiltKernel:
    """A kernel of a tree."""

    image: Path
    configuration: str
    """The name of its configuration."""
    compiled: str | None = None
    """How many compilations ccache had, if it was built now and by ccache."""

    @property
    def debug(self) -> Path:
        """Where its file with debug information lies, if its configuration asked for some."""
        return self.image.with_name(f"{self.image.name}.debug")

    @property
    def config(self) -> Path:
        """Where its whole configuration lies."""
        return self.image.with_name(f"{self.image.name}.config")

    @property
    def map(self) -> Path:
        """Where its System.map lies; kernels of earlier versions of iolab have none."""
        return self.image.with_name(f"{self.image.name}.map")


def build(name: str, config: str | None = None) -> BuiltKernel:
    """The kernel of the commit, built if it was not before. The first build of a tree takes minutes; one after a small
    change, seconds.

    Args:
        config: its configuration (`configuration.find`).

    Raises:
        InputError: no such tree, commit or configuration; `BuildFailed` if it does not build.
        MachineError: what it takes to build is not installed.
    """
    path, _, commit = name.rpartition("@")
    tree = path_of(path, "kernel")
    _check_tools(name)
    repository = git.repository(tree)
    place = place_of(tree)
    # A series of patches has its commits in the clone alone (`series.apply`).
    clone = Repository(place / "source")
    revision = clone.sha(commit) if _is_only_in(clone, repository, commit) else repository.sha(commit)
    wanted = configuration.find(config, tree)
    built = BuiltKernel(place / f"{revision}-{_digest(wanted, name)}", wanted.name)
    with locked(place):
        if not built.image.exists():
            _build(repository, revision, wanted, place, built, name)
            return replace(built, compiled=ccache.outcome(place))
    return built


def place_of(tree: Path) -> Path:
    """Where kernels of the tree are built, in the cache: the clone `source`, a `build-DIGEST` for each configuration,
    and the kernels."""
    return cache.directory(FOLDER, blake2b(bytes(tree), digest_size=8).hexdigest())


def objects(tree: Path, config: str | None = None) -> Path:
    """Where the object files of the tree's kernels of this configuration are, as the last build left them."""
    wanted = configuration.find(config, tree)
    return place_of(tree) / f"build-{_digest(wanted, str(tree))}"


def clone_of(repository: Repository, place: Path) -> Repository:
    """The clone in which the tree's kernels are built, made if there is none; the caller holds the lock of `place`."""
    source = place / "source"
    return Repository(source) if source.exists() else repository.clone(source)


def _is_only_in(clone: Repository, repository: Repository, commit: str) -> bool:
    is_hash = re.fullmatch(r"[0-9a-f]{40}", commit) is not None
    return is_hash and clone.path.exists() and not repository.has(commit) and clone.has(commit)


def _digest(wanted: Configuration, name: str) -> str:
    """Of what a kernel is built by, apart from its source."""
    compiler = command.run(["gcc", "--version"], package="gcc", where=name).partition("\n")[0]
    return blake2b(f"{wanted.digest} {compiler}".encode(), digest_size=4).hexdigest()


def built() -> list[str]:
    """The kernels of trees that are in the cache, each as it is named in an experiment: `TREE@COMMIT`, or the image's
    path if its tree is gone."""
    images = cache.directory(FOLDER, make=False).glob("*/" + "[0-9a-f]" * 40 + "-" + "[0-9a-f]" * 8)
    return sorted({_name(image) for image in images})


def _name(image: Path) -> str:
    """Images of one commit that differ in their configuration have one name: which is booted, its tree decides."""
    tree = _tree_of(image.parent)
    return str(image) if tree is None else f"{tree}@{image.name[:_SHORT_REVISION]}"


def _tree_of(place: Path) -> Path | None:
    """The tree that the images of this directory were built of; the clone of the build records its origin."""
    configuration = place / "source" / ".git" / "config"
    if not configuration.exists():
        return None
    named = re.search(r"^\s*url = (.+)$", configuration.read_text(), re.MULTILINE)
    tree = Path(named[1]) if named else None
    return tree if tree is not None and (tree / ".git").exists() else None


def _build(tree: Repository, revision: str, wanted: Configuration, place: Path, built: BuiltKernel, name: str) -> None:
    """Each configuration has objects of its own, so that settings may take turns."""
    clone = clone_of(tree, place)
    source, made = clone.path, place / f"build-{built.image.name.rpartition('-')[2]}"
    clone.check_out(revision)
    if not made.exists():
        _begin(made)
    make = ["make", f"O={made}", *FIXED]
    variables = ccache.begin(place)
    _configure(make, wanted, made, source, name, variables)
    try:
        _run([*make, f"-j{len(os.sched_getaffinity(0))}", "bzImage"], name, source, variables)
    except InputError as error:
        raise BuildFailed(error.what, where=name) from None
    config = made / ".config"
    if "CONFIG_DEBUG_INFO=y" in config.read_text().splitlines():
        shutil.copyfile(made / "vmlinux", built.debug)
    shutil.copyfile(config, built.config)
    shutil.copyfile(made / "System.map", built.map)
    beside = built.image.with_suffix(".new")
    shutil.copyfile(made / "arch" / "x86" / "boot" / "bzImage", beside)
    beside.rename(built.image)


def _begin(objects: Path) -> None:
    """A configuration's objects begin as a copy of those that were made last under another one: `make` compiles again
    what the options decide that differ, and links anew."""
    others = objects.parent.glob("build-" + "[0-9a-f]" * 8)
    last = max(others, key=lambda one: one.stat().st_mtime, default=None)
    if last is None:
        objects.mkdir()
        return
    beside = objects.with_suffix(".new")
    shutil.rmtree(beside, ignore_errors=True)  # of a copy that was stopped
    shutil.copytree(last, beside, symlinks=True)
    # The kernel's own tools were made by commands that name the directory. Others would make them again, and with
    # objtool each object.
    for made_by in beside.glob("tools/**/.*.cmd"):
        made_by.write_bytes(made_by.read_bytes().replace(bytes(last), bytes(objects)))
    beside.rename(objects)


def _configure(
    make: Sequence[str],
    wanted: Configuration,
    objects: Path,
    source: Path,
    name: str,
    variables: Mapping[str, str],
) -> None:
    """What the commit makes of the options: whichever it has."""
    options = objects / "wanted.config"
    options.write_bytes(wanted.options)
    if wanted.is_whole:
        shutil.copyfile(options, objects / ".config")
        _run([*make, "olddefconfig"], name, source, variables)
    else:
        _run([*make, f"KCONFIG_ALLCONFIG={options}", "allnoconfig"], name, source, variables)


@contextmanager
def locked(place: Path) -> Iterator[None]:
    """One build of a tree at a time."""
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _check_tools(name: str) -> None:
    missing = [package for tool, package in _TOOLS.items() if command.find(tool) is None]
    if not Path("/usr/include/libelf.h").exists():
        missing.append("libelf-dev")
    if missing:
        remedy = f"install it: sudo apt-get install {' '.join(missing)}"
        raise MachineError(f"building a kernel takes {', '.join(missing)} too", where=name, remedy=remedy)


def _run(arguments: Sequence[str], name: str, cwd: Path, variables: Mapping[str, str]) -> None:
    """InputError with the compiler's first complaint, MachineError after `BUILD_LIMIT_S`."""
    process = subprocess.Popen(
        arguments,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**child_process.environment(), "LC_ALL": "C", **variables},
        start_new_session=True,
        preexec_fn=command.dying_with_parent(),
    )
    try:
        _, errors = process.communicate(timeout=BUILD_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        what = f"{' '.join(arguments[:2])} ... did not end within {BUILD_LIMIT_S:g} s"
        raise MachineError(what, where=name, remedy="give a smaller configuration, or use a faster machine") from None
    except BaseException:
        os.killpg(process.pid, 9)
        process.wait()
        raise
    if process.returncode != 0:
        lines = [line.strip() for line in errors.splitlines() if line.strip()]
        complaint = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "no reason given")
        raise InputError(f"{' '.join(arguments[:2])} ... failed: {complaint}", where=name)
