"""Functions that the compiler inlined, and lines: from the kernel's file with debug information, by addr2line."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.adapters.guest.symbols import USER_MAX, Symbols
from iolab.adapters.system import command
from iolab.base import child_process
from iolab.base.errors import MachineError
from iolab.domain.phase_record import Lines

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LINES_MAX = 200
"""That are told, the dearest."""
LIMIT_S = 300.0
_UNKNOWN = "??"


@dataclass(frozen=True)
class SourceLine:
    """Where an instruction was written."""

    inlined: str | None
    """The function, if it was inlined into another; None: it was not, or the file does not say."""
    line: str | None
    """`FILE:LINE`; None: the file does not say."""


@dataclass(frozen=True)
class Source:
    """A kernel's file with debug information (DWARF)."""

    debug: Path

    def places(self, addresses: Sequence[int]) -> list[SourceLine]:
        """Of each address.

        Raises:
            MachineError: binutils is not installed, or does not read the file in time.
        """
        tool = command.find("addr2line")
        if tool is None:
            raise MachineError(
                "addr2line is not installed",
                where="probe instructions",
                remedy="install it: sudo apt-get install binutils",
            )
        try:
            done = subprocess.run(
                [tool, "--addresses", "--inlines", "--functions", "--exe", str(self.debug)],
                input="".join(f"{address:x}\n" for address in addresses),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT_S,
                env=child_process.environment(),
                preexec_fn=command.die_with_parent,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise MachineError(f"addr2line has not read it after {LIMIT_S:.0f} s", where=str(self.debug)) from error
        found = _parsed(done.stdout)
        if done.returncode != 0 or len(found) != len(addresses):
            why = (done.stderr.strip().splitlines() or ["it does not answer"])[-1]
            raise MachineError(f"addr2line does not read it: {why}", where=str(self.debug))
        return found


def lines_of(
    blocks: NDArray[np.void],
    sizes: NDArray[np.uint8],
    symbols: Symbols,
    source: Source,
    sums: dict[tuple[str, str], list[int]],
) -> Lines:
    """Moves what inlined functions executed, in `sums`, to their own names; the dearest lines of the kernel.

    Args:
        blocks, sizes: of a window (`counted.Window`).
        sums: instructions and calls, by function and module.

    Raises:
        MachineError: the source cannot be read, or is another kernel's.
    """
    import numpy as np

    lengths = blocks["instructions"].astype(np.int64)
    offsets = np.cumsum(sizes, dtype=np.uint64) - sizes
    firsts = np.cumsum(lengths) - lengths
    addresses = np.repeat(blocks["start"] - offsets[firsts], lengths) + offsets
    times = np.repeat(blocks["executed"], lengths)
    at = np.searchsorted(symbols.starts, addresses, side="right").astype(np.int64) - 1
    in_image = np.array([not module for module in symbols.modules], dtype=bool)
    wanted = (addresses >= USER_MAX) & (at >= 0)
    wanted[wanted] = in_image[at[wanted]]
    unique, which = np.unique(addresses[wanted], return_inverse=True)
    amounts = np.zeros(len(unique), dtype=np.uint64)
    np.add.at(amounts, which, times[wanted])
    holders = np.searchsorted(symbols.starts, unique, side="right") - 1
    lines: dict[str, int] = {}
    places = source.places(unique.tolist())
    if not any(place.line for place in places):
        raise MachineError("it has no debug information of this kernel", where=str(source.debug))
    for place, holder, amount in zip(places, holders.tolist(), amounts.tolist(), strict=True):
        if place.line is not None:
            lines[place.line] = lines.get(place.line, 0) + amount
        if place.inlined is not None:
            _move(sums, symbols.names[holder], place.inlined, amount)
    dearest = sorted(lines, key=lambda line: (-lines[line], line))[:LINES_MAX]
    absolute = [Path(line).parent for line in lines if line.startswith("/")]
    top = f"{os.path.commonpath(absolute)}/" if absolute else ""
    return {
        "lines": [line.removeprefix(top) for line in dearest],
        "instructions": [lines[line] for line in dearest],
    }


def _move(sums: dict[tuple[str, str], list[int]], holder: str, inlined: str, amount: int) -> None:
    """A block lies wholly in the function that it begins in, all but some; what that function has not is left."""
    has = sums.get((holder, ""))
    if has is None or has[0] < amount:
        return
    has[0] -= amount
    sums.setdefault((inlined, ""), [0, 0])[0] += amount


def _parsed(text: str) -> list[SourceLine]:
    """After each address a pair of lines for each function that it lies in, the innermost first."""
    found: list[SourceLine] = []
    frames: list[tuple[str, str]] = []
    lines = iter(text.splitlines())
    for line in lines:
        if not line.startswith("0x"):
            frames.append((line, next(lines, _UNKNOWN)))
            continue
        if frames:
            found.append(_place(frames))
        frames = []
    return [*found, _place(frames)] if frames else found


def _place(frames: Sequence[tuple[str, str]]) -> SourceLine:
    function, place = frames[0]
    inlined = function if len(frames) > 1 and function != _UNKNOWN else None
    return SourceLine(inlined, None if place.startswith(_UNKNOWN) else _normal(place))


def _normal(place: str) -> str:
    """Without what addr2line adds, and without detours in the path."""
    path, _, number = place.partition(" ")[0].rpartition(":")
    return f"{os.path.normpath(path)}:{number}"
