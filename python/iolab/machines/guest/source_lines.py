"""Functions that the compiler inlined, and the most expensive lines, of what was counted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import MachineError
from iolab.domain.phase_record import Lines
from iolab.machines.guest.debug_files import Source, SourceLine
from iolab.machines.guest.symbols import USER_MAX, Symbols

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LINES_MAX = 200
"""How many are named, the most expensive first."""


def lines_of(
    blocks: NDArray[np.void],
    sizes: NDArray[np.uint8],
    symbols: Symbols,
    source: Source,
    sums: dict[tuple[str, str], list[int]],
) -> Lines:
    """Moves what inlined functions executed, in `sums`, to their own names; the most expensive lines of the kernel.

    Args:
        blocks, sizes: of a window (`counted.Window`).
        sums: instructions, calls, bytes of string instructions and locked instructions, by function and module.

    Raises:
        MachineError: the source cannot be read, or is another kernel's.
    """
    import numpy as np

    lengths = blocks["instructions"].astype(np.int64)
    offsets = np.cumsum(sizes, dtype=np.uint64) - sizes
    firsts = np.cumsum(lengths) - lengths
    addresses = np.repeat(blocks["start"] - offsets[firsts], lengths) + offsets
    times = np.repeat(blocks["executed"], lengths)
    # What repeats is a block's last instruction, and is executed once.
    times[firsts + lengths - 1] -= np.minimum(blocks["repetitions"], blocks["executed"])
    wanted = (addresses >= USER_MAX) & (addresses >= symbols.starts[0])
    unique, which = np.unique(addresses[wanted], return_inverse=True)
    amounts = np.zeros(len(unique), dtype=np.uint64)
    np.add.at(amounts, which, times[wanted])
    holders = np.searchsorted(symbols.starts, unique, side="right") - 1
    lines: dict[str, int] = {}
    for place, holder, amount in zip(
        _places(unique.tolist(), holders.tolist(), symbols, source), holders.tolist(), amounts.tolist(), strict=True
    ):
        if place.line is not None:
            lines[place.line] = lines.get(place.line, 0) + amount
        if place.inlined is not None:
            _move(sums, (symbols.names[holder], symbols.modules[holder]), place.inlined, amount)
    dearest = sorted(lines, key=lambda line: (-lines[line], line))[:LINES_MAX]
    absolute = [Path(line).parent for line in lines if line.startswith("/")]
    top = f"{os.path.commonpath(absolute)}/" if absolute else ""
    return {
        "lines": [line.removeprefix(top) for line in dearest],
        "instructions": [lines[line] for line in dearest],
    }


def _places(addresses: list[int], holders: list[int], symbols: Symbols, source: Source) -> list[SourceLine]:
    """The source line of each address; the kernel's image and each of its modules is read once."""
    found: dict[int, SourceLine] = {}
    modules = [symbols.modules[holder] for holder in holders]
    of_image = [address for address, module in zip(addresses, modules, strict=True) if not module]
    found.update(zip(of_image, source.places(of_image), strict=True))
    if of_image and not any(place.line for place in found.values()):
        raise MachineError("it has no debug information of this kernel", where=str(source.image))
    for module in sorted(set(modules) - {""}):
        own = [
            (address, int(symbols.starts[holder]), symbols.names[holder])
            for address, holder, of in zip(addresses, holders, modules, strict=True)
            if of == module
        ]
        found.update(zip((address for address, *_ in own), source.places_in(module, own), strict=True))
    return [found[address] for address in addresses]


def _move(sums: dict[tuple[str, str], list[int]], holder: tuple[str, str], inlined: str, amount: int) -> None:
    """A block lies wholly in the function that it begins in, all but some; what that function has not is left."""
    has = sums.get(holder)
    if has is None or has[0] < amount:
        return
    has[0] -= amount
    sums.setdefault((inlined, holder[1]), [0, 0, 0, 0])[0] += amount
