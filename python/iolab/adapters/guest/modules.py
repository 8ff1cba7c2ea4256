"""Kernel modules: which there are, and what each needs to be loaded before it."""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from iolab.base.bounded_file import MIB, read_bounded
from iolab.base.errors import MachineError

LIST_BYTES_MAX = 16 * MIB
_SUFFIXES = (".ko", ".ko.xz")
_BY_ALIAS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("xfs", "libcrc32c", "ext4"), ("crc32c_generic",)),
    "rdma_rxe": ("crc32_generic",),
    "btrfs": ("crc32c_generic", "xxhash_generic", "sha256_generic", "blake2b_generic"),
}
"""What a module asks the kernel for by what it does, which modprobe would find by its alias."""


class Modules:
    """The modules of one kernel."""

    def __init__(self, directory: Path | None) -> None:
        """`directory`: as /lib/modules/RELEASE; None: the kernel has all in itself."""
        self._directory = directory

    def needed(self, names: Iterable[str]) -> list[tuple[str, bytes]]:
        """The modules and what they depend on, in the order in which they load, each with its file's content. Those
        that the kernel has in itself, or that a kernel without modules is taken to have, are left out.

        Raises:
            MachineError: the kernel has no such module.
        """
        found: dict[str, bytes] = {}
        for name in names:
            self._add(_canonical(name), found, wanted=True)
        return list(found.items())

    def has(self, name: str) -> bool:
        """Whether the kernel has it, in itself or as a module."""
        return self._directory is None or _canonical(name) in {**self._files, **self._built_in}

    def _add(self, name: str, found: dict[str, bytes], *, wanted: bool) -> None:
        if name in found or self._directory is None:
            return
        for before in _BY_ALIAS.get(name, ()):
            self._add(before, found, wanted=False)
        if name in self._built_in:
            return
        path = self._files.get(name)
        if path is None:
            if not wanted:
                return
            raise MachineError(f"this kernel has no module {name}", where=str(self._directory))
        content = _content(path)
        for dependency in _depends(content):
            self._add(_canonical(dependency), found, wanted=True)
        found[name] = content

    @cached_property
    def _files(self) -> dict[str, Path]:
        assert self._directory is not None
        paths = (path for path in sorted(self._directory.rglob("*.ko*")) if path.name.endswith(_SUFFIXES))
        return {_canonical(path.name.partition(".")[0]): path for path in paths}

    @cached_property
    def _built_in(self) -> dict[str, None]:
        assert self._directory is not None
        listed = self._directory / "modules.builtin"
        if not listed.exists():
            return {}
        lines = read_bounded(listed, LIST_BYTES_MAX, "a list of modules").decode(errors="replace").split()
        return dict.fromkeys(_canonical(Path(line).name.partition(".")[0]) for line in lines)


def _canonical(name: str) -> str:
    return name.replace("-", "_")


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    return lzma.decompress(content) if path.suffix == ".xz" else content


def _depends(content: bytes) -> list[str]:
    """As the module's own section .modinfo says."""
    named = re.findall(rb"\0depends=([\w,-]*)\0", content)
    return [name.decode() for text in named for name in text.split(b",") if name]
