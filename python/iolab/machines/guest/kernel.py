"""The kernel that a guest boots: found by its name, fetched or built into the cache if necessary."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from iolab.base.bounded_file import is_file, read_bounded
from iolab.base.errors import InputError, MachineError
from iolab.base.quantity import format_bytes
from iolab.domain.trial.guest import is_commit, is_image
from iolab.machines.guest import cache, debian, tree
from iolab.machines.guest.kernel_paths import path_of

RUNNING = "running"
IMAGE_BYTES_MAX = 512 << 20
"""Some thirty times Debian's."""


@dataclass(frozen=True)
class Kernel:
    """An image that boots, and its modules."""

    name: str
    """As the experiment has it."""
    image: Path
    modules: Path | None
    """As /lib/modules/RELEASE; None: it has everything in itself, or nothing else."""
    debug: Path | None = None
    """Its file with debug information, if its build left one."""
    config: Path | None = None
    """Its whole configuration, if its build or its package left it."""
    map: Path | None = None
    """Its System.map, if its build left one."""
    configuration: str | None = None
    """What a tree's kernel was configured as: `plain`, or a file's path."""
    compiled: str | None = field(default=None, compare=False)
    """How many compilations ccache had, if it was built now and by ccache."""

    @property
    def label(self) -> str:
        """As errors call the guest that boots it."""
        return f"guest {self.name}"

    def identity(self) -> str:
        """The digest of the image's content. InputError if the image can't be read or is too large."""
        content = read_bounded(self.image, IMAGE_BYTES_MAX, "a kernel's image")
        return blake2b(content, digest_size=16).hexdigest()


def find(name: str, modules: str | None = None, config: str | None = None) -> Kernel:
    """The kernel of that name: `running`, a path of an image, `TREE@COMMIT`, or the version of a Debian package such as
    `6.1.0-56-cloud`.

    Args:
        modules: the directory of an image's.
        config: what a tree's kernel is configured as (`configuration.find`).

    Raises:
        InputError: there is no such kernel.
        MachineError: it cannot be fetched or built here.
    """
    if name == RUNNING:
        return _running()
    if is_commit(name):
        built = tree.build(name, config)
        debug, symbols = (path if path.exists() else None for path in (built.debug, built.map))
        return Kernel(name, built.image, None, debug, built.config, symbols, built.configuration, built.compiled)
    if is_image(name):
        return _of_files(name, modules)
    directory = debian.fetch(name)
    packaged = debian.image(directory)
    if packaged is None:
        raise MachineError("its packages hold no kernel", where=name)
    return Kernel(name, packaged, debian.modules(packaged), config=debian.config(packaged))


def listed() -> list[dict[str, str]]:
    """What is in the cache, and what the package index has; `name`, `state` and `help` of each."""
    cached = {path.name for path in cache.directory(debian.FOLDER, make=False).glob("*") if path.is_dir()}
    available = debian.available()
    found = [
        {"name": name, "state": "cached" if name in cached else "to be had", "help": "a Debian package"}
        for name in sorted({*cached, *available}, key=debian.order)
    ]
    found += [{"name": name, "state": "cached", "help": "built of a tree"} for name in tree.built()]
    image = _running_image()
    state = "to be had" if os.access(image, os.R_OK) else "not readable"
    return [*found, {"name": RUNNING, "state": state, "help": f"this machine's own, {image}"}]


def _running_image() -> Path:
    """Where distributions keep it: in /boot, or beside its modules."""
    release = os.uname().release
    places = (Path("/boot") / f"vmlinuz-{release}", Path("/lib/modules") / release / "vmlinuz")
    return next((place for place in places if os.access(place, os.R_OK)), places[0])


def _running() -> Kernel:
    image, modules = _running_image(), Path("/lib/modules") / os.uname().release
    if not os.access(image, os.R_OK):
        raise MachineError(
            "the image of the running kernel is not to be read here",
            where=str(image),
            remedy="name another kernel: iolab list kernels",
        )
    return Kernel(RUNNING, image, modules if modules.is_dir() else None)


def _of_files(name: str, modules: str | None) -> Kernel:
    image = path_of(name, "kernel")
    if not is_file(image):
        raise InputError("no such kernel image", where=name, remedy="expected a bzImage, as in /boot/vmlinuz-*")
    if image.stat().st_size > IMAGE_BYTES_MAX:
        raise InputError(f"longer than {format_bytes(IMAGE_BYTES_MAX)}, the most for a kernel's image", where=name)
    directory = None if modules is None else path_of(modules, "guest.modules")
    if directory is not None and not os.path.isdir(directory):  # noqa: PTH112 (a Path raises for a name too long)
        raise InputError("no such directory of modules", where=modules)
    return Kernel(name, image, directory)
