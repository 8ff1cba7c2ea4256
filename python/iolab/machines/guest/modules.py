"""Kernel modules: which there are, and what each needs to be loaded before it."""

from __future__ import annotations

import lzma
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from iolab.base.bounded_file import read_bounded
from iolab.base.errors import InputError, MachineError
from iolab.base.quantity import format_bytes
from iolab.machines.guest.kernel_paths import files_below

MODULE_BYTES_MAX = 64 << 20
"""Unpacked; Debian's largest, of graphics, have some 15 MiB."""
MODULES_MAX = 500
"""That are loaded; a distribution's kernel loads some hundred."""
MODULES_BYTES_MAX = 512 << 20
"""All of those together: they lie in the guest's memory."""
LIST_BYTES_MAX = 4 << 20
UNPACKING_BYTES_MAX = 256 << 20
NAME_MAX = 100
_SUFFIXES = (".ko", ".ko.xz")
_ELF = b"\x7fELF"
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
            InputError: a file is no module, they depend on each other in a circle, or are too many or too large.
            MachineError: the kernel has no such module.
        """
        found: dict[str, bytes] = {}
        if self._directory is not None:
            for name in names:
                self._add(_canonical(name), found)
        return list(found.items())

    def has(self, name: str) -> bool:
        """Whether the kernel has it, in itself or as a module."""
        return self._directory is None or _canonical(name) in {**self._files, **self._built_in}

    def _add(self, name: str, found: dict[str, bytes]) -> None:
        """The module, after all that it needs."""
        if name in found:
            return
        under_way = {name: self._module(name, wanted=True)}
        while under_way:
            module = next(reversed(under_way.values()))
            needed = next((one for one in module.needs if one[0] not in found), None)
            if needed is None:
                del under_way[module.name]
                if module.content is not None:
                    found[module.name] = module.content
                continue
            if needed[0] in under_way:
                raise self._refused(f"modules depend on each other in a circle: {module.name} needs {needed[0]} too")
            under_way[needed[0]] = self._module(needed[0], wanted=needed[1])
            self._check_room([*found.values(), *(one.content or b"" for one in under_way.values())])

    def _module(self, name: str, *, wanted: bool) -> _Module:
        """`wanted`: it must be there, in the kernel or as a module."""
        before = [(one, False) for one in _BY_ALIAS.get(name, ())]
        path = None if name in self._built_in else self._files.get(name)
        if path is None:
            if wanted and name not in self._built_in:
                raise MachineError(f"this kernel has no module {name[:NAME_MAX]}", where=str(self._directory))
            return _Module(name, None, iter(before))
        content = _content(path)
        return _Module(name, content, iter([*before, *((_canonical(one), True) for one in _depends(content))]))

    def _check_room(self, contents: Sequence[bytes]) -> None:
        if len(contents) > MODULES_MAX:
            raise self._refused(f"more than {MODULES_MAX} modules are needed")
        if sum(map(len, contents)) > MODULES_BYTES_MAX:
            raise self._refused(f"the modules that are needed take more than {format_bytes(MODULES_BYTES_MAX)}")

    def _refused(self, what: str) -> InputError:
        return InputError(what, where=str(self._directory))

    @cached_property
    def _files(self) -> dict[str, Path]:
        assert self._directory is not None
        paths = sorted(path for path in files_below(self._directory) if path.name.endswith(_SUFFIXES))
        return {_canonical(path.name.partition(".")[0]): path for path in paths}

    @cached_property
    def _built_in(self) -> dict[str, None]:
        assert self._directory is not None
        listed = self._directory / "modules.builtin"
        if not os.path.lexists(listed):
            return {}
        lines = read_bounded(listed, LIST_BYTES_MAX, "a list of modules").decode(errors="replace").split()
        return dict.fromkeys(_canonical(line.rpartition("/")[2].partition(".")[0]) for line in lines)


@dataclass(frozen=True)
class _Module:
    name: str
    content: bytes | None
    """None: the kernel has it in itself, or not at all."""
    needs: Iterator[tuple[str, bool]]
    """What has to be loaded before, and whether it must be there."""


def _canonical(name: str) -> str:
    return name.replace("-", "_")


def _content(path: Path) -> bytes:
    content = read_bounded(path, MODULE_BYTES_MAX, "a module")
    if path.suffix == ".xz":
        content = _unpacked(content, path)
    if not content.startswith(_ELF):
        raise InputError("is no kernel module (ELF)", where=str(path))
    return content


def _unpacked(content: bytes, path: Path) -> bytes:
    try:
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=UNPACKING_BYTES_MAX)
        unpacked = unpacker.decompress(content, MODULE_BYTES_MAX + 1)
    except lzma.LZMAError as error:
        raise InputError(f"is no whole file of xz: {error}", where=str(path)) from None
    if len(unpacked) > MODULE_BYTES_MAX:
        raise InputError(f"longer than {format_bytes(MODULE_BYTES_MAX)}, the most for a module", where=str(path))
    if not unpacker.eof:
        raise InputError("is no whole file of xz", where=str(path))
    return unpacked


def _depends(content: bytes) -> list[str]:
    """As in the module's own section .modinfo."""
    named = re.findall(rb"\0depends=([\w,-]*)\0", content)
    return [name.decode() for text in named for name in text.split(b",") if name]
