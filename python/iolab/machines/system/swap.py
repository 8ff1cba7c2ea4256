"""Swap areas: what is on, making one, switching it on and off."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from iolab.base.errors import MachineError
from iolab.machines.system import command, rights, storage_stack

SWAPS = Path("/proc/swaps")

# linux/swap.h
SWAP_FLAG_PREFER = 0x8000
PRIORITY_MAX = 0x7FFF

_libc = ctypes.CDLL(None, use_errno=True)


def is_on(path: Path) -> bool:
    """Whether the kernel swaps to this device or file; a device is known by all its names."""
    return str(path.resolve()) in {area for area, _ in areas()}


def areas() -> list[tuple[str, int]]:
    """Path and bytes in use of each swap area that is on."""
    try:
        lines = SWAPS.read_text().splitlines()[1:]
    except FileNotFoundError:
        return []  # a kernel without swap
    fields = [line.split() for line in lines]
    return [(_unescaped(of_area[0]), int(of_area[3]) * 1024) for of_area in fields]


def make(path: Path, size_bytes: int | None = None, *, uuid: str | None = None) -> None:
    """Writes the swap signature over what the file or device holds; of `size_bytes`, or all of it.

    Args:
        uuid: that the area shall have; None: one that mkswap draws.

    Raises:
        InputError: it lies on what must not be swapped to (`storage_stack.check_swap`).
        MachineError: mkswap is missing or refuses.
    """
    storage_stack.check_swap(path)
    chosen_uuid = [] if uuid is None else ["--uuid", uuid]
    size_kib = [] if size_bytes is None else [str(size_bytes // 1024)]
    command.run(["mkswap", *chosen_uuid, str(path), *size_kib], package="util-linux", where=str(path))


def on(path: Path) -> None:
    """Swaps to it before any other area, so that what is measured goes there.

    Raises:
        InputError: it lies on what must not be swapped to (`storage_stack.check_swap`).
        MachineError: the kernel refuses; states why as far as it is known.
    """
    storage_stack.check_swap(path)
    if _libc.swapon(os.fsencode(path), SWAP_FLAG_PREFER | PRIORITY_MAX) == 0:
        return
    error = ctypes.get_errno()
    raise MachineError(f"the kernel takes no swap there: {os.strerror(error)}", where=str(path), remedy=_remedy(error))


def off(path: Path) -> int:
    """Brings back into memory what is out, and switches it off. errno, 0 for success."""
    return 0 if _libc.swapoff(os.fsencode(path)) == 0 else ctypes.get_errno()


def _remedy(error: int) -> str | None:
    return {
        errno.EPERM: rights.AS_ROOT,
        errno.ENOSYS: "build the kernel with CONFIG_SWAP=y",
        errno.EINVAL: 'the filesystem takes no swap files: use [target] kind = "scratch"',
    }.get(error)


def _unescaped(text: str) -> str:
    return text.encode().decode("unicode_escape") if "\\" in text else text
