"""Where a kernel's functions are: in what its build left (System.map), else read in the guest itself (/proc/kallsyms),
since packages do not have them."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.bounded_file import read_bounded
from iolab.machines.guest import cache
from iolab.machines.guest.agent_message import SYMBOLS_BYTES_MAX

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FOLDER = "symbols"
_LINE = re.compile(rb"([0-9a-f]{16}) (\w) ([!-~]+)(?:\s+\[([!-~]+)\])?")
_CONTEXTS = (
    (re.compile(r"sysvec_\w+|common_interrupt"), "i"),
    (re.compile(r"__do_softirq|handle_softirqs"), "s"),
    (re.compile(r"__switch_to_asm"), "w"),
    (re.compile(r"entry_SYSCALL_64"), "c"),
    (re.compile(r"__x64_sys_\w+"), "y"),
    (re.compile(r"asm_(sysvec|exc|common|spurious)_\w+"), "e"),
)
"""Functions at which the counter (counter/counter.c) looks."""
_ANY = "f"
_FUNCTIONS = frozenset({b"t", b"T", b"w", b"W", b"i"})
"""What the agent sends of /proc/kallsyms (step.rs)."""
USER_MAX = 1 << 63


@dataclass(frozen=True)
class Symbols:
    """Functions by where they begin, ascending."""

    starts: NDArray[np.uint64]
    names: list[str]
    modules: list[str]

    def watched(self, *, chains: bool) -> str:
        """What the counter needs to distinguish contexts, and chains of calls."""
        ends = [*self.starts[1:].tolist(), USER_MAX * 2 - 1]
        found = []
        for start, end, name in zip(self.starts.tolist(), ends, self.names, strict=True):
            kind = next((kind for pattern, kind in _CONTEXTS if pattern.fullmatch(name)), _ANY)
            if chains or kind != _ANY:
                found.append(f"{start:x} {end:x} {kind}\n")
        return "".join(found)


def parse(text: bytes) -> Symbols:
    """The symbols in the lines of /proc/kallsyms. If a function has several names, the global, shortest and first one
    stands for it."""
    import numpy as np

    best: dict[int, tuple[tuple[bool, int, str], str]] = {}
    for line in text.splitlines():
        found = _LINE.fullmatch(line.strip())
        if found is None:
            continue
        name, module = found[3].decode(errors="replace"), (found[4] or b"").decode(errors="replace")
        rank = (not found[2].isupper(), len(name), name)
        address = int(found[1], 16)
        if address not in best or rank < best[address][0]:
            best[address] = (rank, module)
    addresses = sorted(best)
    return Symbols(
        np.array(addresses, dtype=np.uint64),
        [best[address][0][2] for address in addresses],
        [best[address][1] for address in addresses],
    )


def of_kernel(text: bytes) -> bytes:
    """The lines of functions outside of modules; all other lines of a kernel are left out."""
    return b"".join(
        line for line in text.splitlines(keepends=True) if (at := _LINE.fullmatch(line.strip())) and not at[4]
    )


def of_map(path: Path) -> bytes:
    """The functions in the System.map of a build, at the same places in its kernel: guests boot without KASLR."""
    text = read_bounded(path, SYMBOLS_BYTES_MAX, "a kernel's System.map")
    return b"".join(line for line in of_kernel(text).splitlines(keepends=True) if line.split()[1] in _FUNCTIONS)


def known(identity: str) -> bytes | None:
    """The functions of the kernel with this identity outside of its modules, if they were read before."""
    path = _path(identity)
    return of_kernel(read_bounded(path, SYMBOLS_BYTES_MAX, "a kernel's symbols")) or None if path.exists() else None


def keep(identity: str, text: bytes) -> None:
    """For the kernel's next boots."""
    path = _path(identity)
    beside = path.with_suffix(f".{secrets.token_hex(8)}")
    beside.write_bytes(text)
    beside.rename(path)


def _path(identity: str) -> Path:
    return cache.directory(FOLDER) / identity
